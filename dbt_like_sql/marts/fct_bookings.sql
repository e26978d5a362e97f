with

placed as (
    select candidate_id, job_id, max(placed_on) as placed_on
    from {{ ref('fct_placements') }}
    where is_placement
    group by candidate_id, job_id
)

select
    bookings.booking_id,
    bookings.booking_type,
    bookings.status as booking_status,
    case
        when placements.is_placement then 'placement'
        when placements.is_extension then 'extension'
        when bookings.booking_type = 'interview' and bookings.meeting_state is not null
            then 'interview_' || bookings.meeting_state
        when bookings.booking_type = 'interview' and bookings.status = 'cancelled'
            then 'interview_cancelled'
        when bookings.meeting_state is not null then bookings.booking_type
        else 'not_counted'
    end as counts_as,
    bookings.candidate_id,
    bookings.job_id,
    jobs.title as job_title,
    coalesce(bookings.company_id, jobs.company_id) as company_id,
    case when coalesce(bookings.company_id, jobs.company_id) is null then 'no company'
        else coalesce(companies.name, 'unknown company')
    end as company_name,
    coalesce(companies.is_deleted, false) as is_company_deleted,
    bookings.lead_id,
    coalesce(bookings.assigned_to, jobs.assigned_to) as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    bookings.has_begun,
    bookings.is_held,
    bookings.start_datetime as starts_at,
    bookings.end_datetime as ends_at,
    coalesce(bookings.all_day, false) as is_all_day,
    bookings.start_date,
    bookings.end_date,
    bookings.time_zone,
    case
        when bookings.booking_type <> 'interview' then null
        when bookings.is_fully_read then coalesce(bookings.interview_type, 'not stated')
        else 'unread'
    end as interview_type,
    case
        when bookings.booking_type <> 'interview' then null
        when bookings.is_fully_read then coalesce(bookings.meeting_platform, 'not stated')
        else 'unread'
    end as meeting_platform,
    -- Counts the interviews of the candidate for the job, in order.
    case when counts_as in ('interview_held', 'interview_to_come')
        then count(*) filter (where counts_as in ('interview_held', 'interview_to_come')) over (
            partition by bookings.candidate_id, bookings.job_id
            order by bookings.start_datetime, bookings.booking_id
        )
    end as interview_number,
    case when bookings.booking_type = 'interview'
        then coalesce(placed.placed_on >= bookings.start_date, false)
    end as is_followed_by_placement,
    bookings.created_at,
    bookings.created_date,
    bookings.updated_at,
    bookings.is_fully_read
from {{ ref('stg_bookings') }} as bookings
left join {{ ref('fct_placements') }} as placements
    on placements.booking_id = bookings.booking_id
left join placed
    on placed.candidate_id = bookings.candidate_id and placed.job_id = bookings.job_id
left join {{ ref('stg_jobs') }} as jobs on jobs.job_id = bookings.job_id
left join {{ ref('stg_known_companies') }} as companies
    on companies.company_id = coalesce(bookings.company_id, jobs.company_id)
left join {{ ref('stg_people') }} as people
    on people.person_id = coalesce(bookings.assigned_to, jobs.assigned_to)
