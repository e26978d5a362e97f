-- model: fct_time_to_hire
-- grain: one row per placement
-- Days from the candidate's creation to the day the placement was agreed.

with

interviews as (
    select
        candidate_id,
        job_id,
        min(start_date) as first_interview_on
    from {{ ref('stg_interviews') }}
    where is_held
    group by candidate_id, job_id
),

hires as (
    select
        placements.*,
        (candidates.created_at at time zone as_of.time_zone)::date as candidate_created_on,
        interviews.first_interview_on
    from {{ ref('fct_placements') }} as placements
    cross join {{ ref('as_of') }} as as_of
    left join {{ ref('dim_candidates') }} as candidates
        on candidates.candidate_id = placements.candidate_id
    left join interviews
        on interviews.candidate_id = placements.candidate_id
        and interviews.job_id = placements.job_id
),

-- A deleted candidate has no creation here, and an imported placement may come before it.
measured as (
    select
        *,
        coalesce(placement_number = 1 and placed_on >= candidate_created_on, false) as is_measured
    from hires
)

select
    measured.booking_id,
    measured.booking_type,
    measured.candidate_id,
    measured.job_id,
    measured.company_id,
    measured.company_name,
    measured.consultant_id,
    measured.consultant_name,
    measured.team,
    measured.source_group,
    measured.placement_number,
    measured.candidate_created_on,
    measured.placed_on as hired_on,
    date_trunc('month', measured.placed_on)::date as hired_month,
    measured.is_measured,
    if(is_measured, placed_on - candidate_created_on, null) as days_to_hire,
    if(is_measured, ends.working_day_number - starts.working_day_number, null)
        as working_days_to_hire,
    if(first_interview_on <= placed_on, placed_on - first_interview_on, null)
        as days_from_first_interview
from measured
left join {{ ref('dim_days') }} as starts on starts.day = measured.candidate_created_on
left join {{ ref('dim_days') }} as ends on ends.day = measured.placed_on
