with

interviews as (
    select
        candidate_id,
        count(*) filter (where is_held) as interviews_held,
        count(*) filter (where not is_held) as interviews_to_come,
        count(distinct job_id) filter (where is_held) as jobs_interviewed_for,
        min(start_datetime) filter (where is_held) as first_interview_at,
        max(start_datetime) filter (where is_held) as last_interview_at,
        min(start_datetime) filter (where not is_held) as next_interview_at
    from {{ ref('stg_interviews') }}
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
        min(interviews.start_datetime) as interviewed_at
    from submissions
    left join {{ ref('stg_interviews') }} as interviews
        on interviews.candidate_id = submissions.candidate_id
        and interviews.is_held
        and interviews.start_datetime >= submissions.submitted_at
    group by submissions.candidate_id, submissions.submitted_at
),

placed as (
    select candidate_id, count(*) as placements, min(placed_on) as first_placed_on
    from {{ ref('fct_placements') }}
    where is_placement
    group by candidate_id
),

booked as (
    select
        candidate_id,
        max(created_at) as last_booked_at,
        max(start_datetime) filter (where is_held) as last_met_at
    from {{ ref('stg_bookings') }}
    group by candidate_id
),

active as (
    select
        candidates.candidate_id,
        greatest(candidates.updated_at, booked.last_booked_at, booked.last_met_at)
            as last_activity_at
    from {{ ref('stg_candidates') }} as candidates
    left join booked on booked.candidate_id = candidates.candidate_id
)

select
    pipeline.candidate_id,
    pipeline.stage,
    pipeline.is_active,
    pipeline.source,
    pipeline.source_group,
    pipeline.consultant_id,
    pipeline.consultant_name,
    pipeline.team,
    pipeline.created_at,
    followed.submitted_at,
    followed.interviewed_at as interviewed_after_submission_at,
    round((epoch(followed.interviewed_at) - epoch(followed.submitted_at)) / 86400, 2)
        as days_submitted_to_interview,
    coalesce(interviews.interviews_held, 0) as interviews_held,
    coalesce(interviews.interviews_to_come, 0) as interviews_to_come,
    coalesce(interviews.jobs_interviewed_for, 0) as jobs_interviewed_for,
    interviews.first_interview_at,
    interviews.last_interview_at,
    interviews.next_interview_at,
    coalesce(placed.placements, 0) as placements,
    placed.first_placed_on,
    active.last_activity_at,
    round(greatest(epoch(as_of.as_of_at) - epoch(active.last_activity_at), 0) / 86400, 2)
        as days_since_last_activity,
    pipeline.is_fully_read
from {{ ref('fct_pipeline_candidates') }} as pipeline
join active on active.candidate_id = pipeline.candidate_id
cross join {{ ref('as_of') }} as as_of
left join interviews on interviews.candidate_id = pipeline.candidate_id
left join followed on followed.candidate_id = pipeline.candidate_id
left join placed on placed.candidate_id = pipeline.candidate_id
