-- model: stg_placements
-- grain: one row per live booking that is a placement
-- Placements: when each was agreed, and for contracts, whether they run and their last day.
{{ config(materialized='view') }}

with

statuses as (
    select
        booking_id,
        valid_from,
        status,
        max(version) filter (where status <> 'completed') over (partition by booking_id)
            as last_not_completed,
        version
    from {{ ref('stg_booking_versions') }}
    where booking_type in ('permanent', 'contract') and status is not null
),

-- The day on which a read showed the contract as completed: it earns nothing after this day.
completions as (
    select booking_id, min(valid_from) as completed_at
    from statuses
    where version > coalesce(last_not_completed, 0)
    group by booking_id
),

bookings as (
    select
        *,
        coalesce(status in ('scheduled', 'confirmed', 'in_progress', 'completed'), false) as stands,
        -- Both ids are required for these kinds; a booking without one of them is not grouped.
        coalesce(candidate_id || job_id, booking_id) as subject
    from {{ ref('stg_bookings') }}
    where booking_type in ('permanent', 'contract')
),

-- A rescheduled booking counts until a new one replaces it; then the latest counts.
placements as (
    select * from bookings
    qualify stands or (
        status = 'rescheduled'
        and not bool_or(stands) over (partition by booking_type, subject)
        and row_number() over (
            partition by booking_type, subject, status order by created_at desc, booking_id
        ) = 1
    )
),

dated as (
    select
        placements.*,
        case when placements.status = 'completed'
            then (completions.completed_at at time zone placements.time_zone)::date
        end as completed_on,
        least(placements.end_date, completed_on) as last_day
    from placements
    left join completions on completions.booking_id = placements.booking_id
)

select
    dated.booking_id, dated.booking_type, dated.status, dated.contract_type, dated.candidate_id,
    dated.job_id, dated.company_id, dated.assigned_to, dated.offer_accepted_date, dated.start_date,
    dated.end_date, dated.time_zone, dated.annual_salary, dated.day_rate, dated.contract_value,
    dated.placement_fee, dated.created_at, dated.is_fully_read,
    dated.agreed_on as placed_on,
    coalesce(dated.status in ('confirmed', 'in_progress', 'completed'), false) as is_confirmed,
    dated.completed_on,
    if(dated.booking_type = 'contract', dated.last_day, dated.end_date) as last_day,
    case
        when dated.booking_type <> 'contract' then null
        when dated.status = 'completed' or dated.end_date < as_of.as_of_date then 'ended'
        when dated.start_date <= as_of.as_of_date then 'running'
        else 'to_come'
    end as contract_state
from dated
cross join {{ ref('as_of') }} as as_of
