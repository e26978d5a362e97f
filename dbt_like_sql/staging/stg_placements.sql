{{ config(materialized='view') }}

with

statuses as (
    select
        booking_id, valid_from, status, stands, version,
        max(version) filter (where status <> 'completed') over whole as last_not_completed,
        max(version) filter (where status <> 'cancelled') over whole as last_not_cancelled
    from {{ ref('stg_booking_versions') }}
    where booking_type in ('permanent', 'contract') and status is not null
    window whole as (partition by booking_id)
),

-- The first read of the last status. If a booking was cancelled when it was first read, the day
-- is unknown.
seen as (
    select
        booking_id,
        bool_or(stands) as was_agreed,
        min(valid_from) filter (where version > coalesce(last_not_completed, 0)) as completed_at,
        min(valid_from) filter (where version > last_not_cancelled) as cancelled_at
    from statuses
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
counted as (
    select
        *,
        stands or coalesce(
            status = 'rescheduled'
            and not bool_or(stands) over (partition by booking_type, subject)
            and row_number() over (
                partition by booking_type, subject, status order by created_at desc, booking_id
            ) = 1, false
        ) as is_counted
    from bookings
),

dated as (
    select
        counted.*,
        not counted.is_counted as is_fall_off,
        case when counted.status = 'completed'
            then (seen.completed_at at time zone counted.time_zone)::date
        end as completed_on,
        case when not counted.is_counted
            then (seen.cancelled_at at time zone counted.time_zone)::date
        end as cancelled_on,
        case when counted.booking_type = 'contract'
            then least(counted.end_date, completed_on, cancelled_on)
            else counted.end_date
        end as last_day
    from counted
    left join seen on seen.booking_id = counted.booking_id
    where counted.is_counted or (
        counted.status = 'cancelled'
        and (seen.was_agreed or counted.offer_accepted_date is not null)
    )
),

-- Bookings of the same kind, candidate and job in the order of their start. A permanent booking
-- has no end, so its start counts. A contract without an end goes on until the next one begins.
chained as (
    select
        *,
        not is_fall_off or coalesce(cancelled_on >= start_date, false) as has_run,
        case
            when booking_type = 'permanent' then start_date
            else coalesce(
                last_day,
                min(start_date) filter (where not is_fall_off) over (
                    partition by booking_type, subject order by start_date, booking_id
                    rows between 1 following and unbounded following
                ) - 1,
                date '9999-12-31'
            )
        end as until
    from dated
),

linked as (
    select
        *,
        max(until) filter (where not is_fall_off) over before as covered_until,
        max(until) filter (where has_run) over before as billed_before
    from chained
    window before as (
        partition by booking_type, subject order by start_date, booking_id
        rows between unbounded preceding and 1 preceding
    )
)

select
    linked.booking_id, linked.booking_type, linked.status, linked.contract_type,
    linked.candidate_id, linked.job_id, linked.company_id, linked.assigned_to,
    linked.offer_accepted_date, linked.start_date, linked.end_date, linked.time_zone,
    linked.annual_salary, linked.day_rate, linked.contract_value, linked.placement_fee,
    linked.probation_period_months, linked.created_at, linked.is_fully_read,
    linked.agreed_on as placed_on,
    coalesce(linked.status in ('confirmed', 'in_progress', 'completed'), false) as is_confirmed,
    linked.is_fall_off,
    not linked.is_fall_off and coalesce(linked.start_date - linked.covered_until <= 30, false)
        as is_extension,
    not linked.is_fall_off and not is_extension as is_placement,
    linked.completed_on,
    linked.cancelled_on,
    case when linked.is_fall_off then nullif(trim(linked.cancellation_reason), '') end
        as cancellation_reason,
    linked.last_day,
    case
        when linked.booking_type <> 'contract' then null
        when linked.is_fall_off then 'cancelled'
        when linked.status = 'completed' or linked.end_date < as_of.as_of_date then 'ended'
        when linked.start_date <= as_of.as_of_date then 'running'
        else 'to_come'
    end as contract_state,
    -- A day is billed once. A contract without an end is billed up to today.
    case when linked.booking_type = 'contract' and linked.has_run
        then greatest(linked.start_date, linked.billed_before + 1)
    end as billed_from,
    case when linked.booking_type = 'contract' and linked.has_run
        then least(coalesce(linked.last_day, as_of.as_of_date), linked.until)
    end as billed_until
from linked
cross join {{ ref('as_of') }} as as_of
