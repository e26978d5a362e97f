with

current_visits as (
    select * from {{ ref('fct_candidate_stages') }} where is_current
),

bookings as (
    select
        candidate_id,
        count(*) filter (where counts_as = 'interview_held') as interviews_held,
        count(*) filter (where counts_as = 'interview_to_come') as interviews_to_come,
        count(distinct job_id) filter (where counts_as = 'interview_held') as jobs_interviewed_for,
        min(starts_at) filter (where counts_as = 'interview_held') as first_interview_at,
        max(starts_at) filter (where counts_as = 'interview_held') as last_interview_at,
        min(starts_at) filter (where counts_as = 'interview_to_come') as next_interview_at,
        max(created_at) as last_booked_at,
        max(starts_at) filter (where is_held) as last_met_at
    from {{ ref('fct_bookings') }}
    group by candidate_id
),

-- The first submission that was observed, and the first interview held after it.
submissions as (
    select candidate_id, min(entered_at) as submitted_at
    from {{ ref('fct_candidate_stages') }}
    where stage = 'submitted' and is_entry_observed
    group by candidate_id
),

followed as (
    select
        submissions.candidate_id,
        submissions.submitted_at,
        min(interviews.starts_at) as interviewed_at
    from submissions
    left join {{ ref('fct_bookings') }} as interviews
        on interviews.candidate_id = submissions.candidate_id
        and interviews.counts_as = 'interview_held'
        and interviews.starts_at >= submissions.submitted_at
    group by submissions.candidate_id, submissions.submitted_at
),

placed as (
    select candidate_id, count(*) as placements, min(placed_on) as first_placed_on
    from {{ ref('fct_placements') }}
    where is_placement
    group by candidate_id
)

select
    candidates.candidate_id,
    candidates.stage,
    stages.stage_order,
    coalesce(stages.stage_kind, 'unknown') as stage_kind,
    coalesce(stages.is_active, false) as is_active,
    current_visits.entered_at,
    current_visits.is_entry_observed,
    current_visits.days_at_least as days_in_stage,
    current_visits.days_min as days_in_stage_min,
    current_visits.days_max as days_in_stage_max,
    candidates.source,
    candidates.source_group,
    candidates.consultant_id,
    candidates.consultant_name,
    candidates.team,
    candidates.employment_type,
    followed.submitted_at,
    followed.interviewed_at as interviewed_after_submission_at,
    round((epoch(followed.interviewed_at) - epoch(followed.submitted_at)) / 86400, 2)
        as days_submitted_to_interview,
    coalesce(bookings.interviews_held, 0) as interviews_held,
    coalesce(bookings.interviews_to_come, 0) as interviews_to_come,
    coalesce(bookings.jobs_interviewed_for, 0) as jobs_interviewed_for,
    bookings.first_interview_at,
    bookings.last_interview_at,
    bookings.next_interview_at,
    coalesce(placed.placements, 0) as placements,
    placed.first_placed_on,
    greatest(candidates.updated_at, bookings.last_booked_at, bookings.last_met_at) as last_activity_at,
    round(greatest(epoch(as_of.as_of_at) - epoch(last_activity_at), 0) / 86400, 2)
        as days_since_last_activity,
    candidates.created_at,
    date_trunc('month', candidates.created_at at time zone as_of.time_zone)::date as created_month,
    candidates.is_fully_read
from {{ ref('dim_candidates') }} as candidates
cross join {{ ref('as_of') }} as as_of
left join current_visits on current_visits.candidate_id = candidates.candidate_id
left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = candidates.stage
left join bookings on bookings.candidate_id = candidates.candidate_id
left join followed on followed.candidate_id = candidates.candidate_id
left join placed on placed.candidate_id = candidates.candidate_id
