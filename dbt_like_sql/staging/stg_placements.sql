-- model: stg_placements
-- grain: one row per live booking that is a placement
-- Permanent and contract bookings that stand, and the day on which each was agreed.
{{ config(materialized='view') }}

with

bookings as (
    select
        *,
        coalesce(status in ('scheduled', 'confirmed', 'in_progress', 'completed'), false) as stands,
        -- Both ids are required for these kinds; where one is missing, a booking is by itself.
        coalesce(candidate_id || job_id, booking_id) as subject
    from {{ ref('stg_bookings') }}
    where booking_type in ('permanent', 'contract')
),

-- A rescheduled booking counts while nothing stands in its place, and then the latest does.
placements as (
    select * from bookings
    qualify stands or (
        status = 'rescheduled'
        and not bool_or(stands) over (partition by booking_type, subject)
        and row_number() over (
            partition by booking_type, subject, status order by created_at desc, booking_id
        ) = 1
    )
)

select
    booking_id, booking_type, status, contract_type, candidate_id, job_id, company_id, assigned_to,
    offer_accepted_date, start_date, end_date, time_zone, annual_salary, day_rate, contract_value,
    placement_fee, created_at, is_hydrated,
    coalesce(offer_accepted_date, least(created_date, start_date)) as placed_on
from placements
