{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'bookings') }} where _deleted_at is null
),

zoned as (
    select
        source.*,
        if(zones.name is null, as_of.time_zone, source.timezone) as time_zone,
        -- For an all-day event, midnight in UTC means the date without a time.
        as_of.as_of_at,
        source.all_day and epoch_us(source.start_datetime) % 86400000000 = 0 as starts_on_a_day,
        source.all_day and epoch_us(source.end_datetime) % 86400000000 = 0 as ends_on_a_day
    from source
    cross join {{ ref('as_of') }} as as_of
    left join pg_timezone_names() as zones on zones.name = source.timezone
)

select
    id as booking_id,
    * exclude (
        id, created_at, updated_at, _record, _hydrated_at, _deleted_at, _run_id,
        as_of_at, time_zone, starts_on_a_day, ends_on_a_day
    ),
    coalesce(start_datetime <= as_of_at, false) as has_begun,
    -- A rescheduled meeting with a time in the past did not take place.
    case
        when booking_type not in ('interview', 'consultation', 'site_visit') then null
        when status = 'completed' then 'held'
        when status in ('scheduled', 'confirmed', 'in_progress')
            then if(start_datetime <= as_of_at, 'held', 'to_come')
        when status = 'rescheduled' and start_datetime > as_of_at then 'to_come'
    end as meeting_state,
    coalesce(meeting_state = 'held', false) as is_held,
    time_zone,
    (start_datetime at time zone if(starts_on_a_day, 'UTC', time_zone))::date as start_date,
    (end_datetime at time zone if(ends_on_a_day, 'UTC', time_zone))::date as end_date,
    (created_at at time zone time_zone)::date as created_date,
    case when booking_type in ('permanent', 'contract')
        then coalesce(offer_accepted_date, least(created_date, start_date))
    end as agreed_on,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from zoned
