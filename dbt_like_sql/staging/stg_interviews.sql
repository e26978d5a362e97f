{{ config(materialized='view') }}

select
    bookings.booking_id,
    bookings.candidate_id,
    bookings.job_id,
    bookings.company_id,
    coalesce(bookings.assigned_to, jobs.assigned_to) as assigned_to,
    bookings.start_datetime,
    bookings.start_date,
    bookings.time_zone,
    bookings.is_held,
    bookings.created_at,
    bookings.created_date
from {{ ref('stg_bookings') }} as bookings
left join {{ ref('stg_jobs') }} as jobs on jobs.job_id = bookings.job_id
where bookings.booking_type = 'interview' and bookings.meeting_state is not null
