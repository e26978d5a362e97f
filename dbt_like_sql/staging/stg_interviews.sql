-- model: stg_interviews
-- grain: one row per live interview that counts
-- Interviews that are scheduled, confirmed, in progress or completed.
{{ config(materialized='view') }}

select
    bookings.booking_id,
    bookings.candidate_id,
    bookings.job_id,
    bookings.company_id,
    coalesce(bookings.assigned_to, jobs.assigned_to) as assigned_to,
    bookings.start_datetime,
    coalesce(bookings.start_datetime <= as_of.as_of_at, false) as is_held,
    bookings.created_at
from {{ ref('stg_bookings') }} as bookings
cross join {{ ref('as_of') }} as as_of
left join {{ ref('stg_jobs') }} as jobs on jobs.job_id = bookings.job_id
where bookings.booking_type = 'interview'
    and bookings.status in ('scheduled', 'confirmed', 'in_progress', 'completed')
