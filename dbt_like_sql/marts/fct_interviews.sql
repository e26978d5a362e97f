with

interviews as (
    select
        *,
        case
            when counts_as = 'interview_held' then 'held'
            when counts_as = 'interview_to_come' then 'to_come'
            when booking_status in ('draft', 'cancelled', 'rescheduled') then booking_status
            else 'unknown'
        end as outcome
    from {{ ref('fct_bookings') }}
    where booking_type = 'interview'
),

placed as (
    select candidate_id, job_id, max(placed_on) as placed_on
    from {{ ref('fct_placements') }}
    where is_placement
    group by candidate_id, job_id
)

select
    interviews.booking_id,
    interviews.booking_status,
    interviews.outcome,
    interviews.candidate_id,
    interviews.job_id,
    interviews.job_title,
    interviews.company_id,
    interviews.company_name,
    interviews.is_company_deleted,
    interviews.consultant_id,
    interviews.consultant_name,
    interviews.team,
    case when interviews.is_fully_read then coalesce(interviews.interview_type, 'not stated')
        else 'unread'
    end as interview_type,
    case when interviews.is_fully_read then coalesce(interviews.meeting_platform, 'not stated')
        else 'unread'
    end as meeting_platform,
    case when interviews.outcome in ('held', 'to_come')
        then count(*) filter (where interviews.outcome in ('held', 'to_come')) over (
            partition by interviews.candidate_id, interviews.job_id
            order by interviews.starts_at, interviews.booking_id
        )
    end as interview_number,
    coalesce(placed.placed_on >= interviews.start_date, false) as is_followed_by_placement,
    interviews.starts_at,
    interviews.start_date,
    interviews.time_zone,
    interviews.created_at,
    interviews.is_fully_read
from interviews
left join placed
    on placed.candidate_id = interviews.candidate_id and placed.job_id = interviews.job_id
