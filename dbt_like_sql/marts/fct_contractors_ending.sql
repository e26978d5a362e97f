-- model: fct_contractors_ending
-- grain: one row per contract placement that has not ended
-- Contracts by the time until they end, with the known follow-up contract or extension.

with

unended as (
    select placements.*, as_of.as_of_date
    from {{ ref('fct_placements') }} as placements
    cross join {{ ref('as_of') }} as as_of
    where placements.contract_state in ('running', 'to_come')
),

ends as (
    select
        booking_id,
        version,
        valid_from,
        start_datetime,
        end_datetime,
        if(all_day and epoch_us(end_datetime) % 86400000000 = 0, 'UTC', null) as end_zone,
        lag(end_datetime) over (partition by booking_id order by version) as end_before
    from {{ ref('stg_booking_versions') }}
    where booking_type = 'contract' and end_datetime is not null
),

-- A later end, set after the contract began, is an extension; any other move is a correction.
moves as (
    select
        booking_id,
        arg_min(end_datetime, version) as first_end_datetime,
        arg_min_null(end_zone, version) as first_end_zone,
        count(*) filter (where end_datetime > end_before and valid_from >= start_datetime)
            as extensions,
        count(*) filter (where end_datetime <> end_before) as moves,
        max(valid_from) filter (where end_datetime > end_before and valid_from >= start_datetime)
            as last_extended_at
    from ends
    group by booking_id
),

next_placements as (
    select unended.booking_id, later.booking_id as next_booking_id,
        later.start_date as next_start_date, later.job_id = unended.job_id as is_same_job
    from unended
    join {{ ref('fct_placements') }} as later
        on later.candidate_id = unended.candidate_id
        and later.start_date > unended.start_date
        -- A contract that begins before the end is parallel, not a follow-up.
        and later.start_date between unended.end_date and unended.end_date + 30
    qualify row_number() over (
        partition by unended.booking_id order by later.start_date, later.booking_id
    ) = 1
),

replacements as (
    select unended.booking_id, other.booking_id as replacement_booking_id
    from unended
    join {{ ref('fct_placements') }} as other
        on other.job_id = unended.job_id
        and other.candidate_id <> unended.candidate_id
        and other.start_date > unended.start_date
        and other.start_date between unended.end_date - 30 and unended.end_date + 30
    qualify row_number() over (
        partition by unended.booking_id order by other.start_date, other.booking_id
    ) = 1
)

select
    unended.booking_id,
    unended.candidate_id,
    unended.job_id,
    unended.job_title,
    unended.company_id,
    unended.company_name,
    unended.consultant_id,
    unended.consultant_name,
    unended.team,
    unended.contract_type,
    unended.contract_state,
    unended.start_date,
    unended.end_date,
    unended.time_zone,
    unended.end_date - unended.as_of_date as days_left,
    last_days.working_day_number - today.working_day_number as working_days_left,
    case
        when unended.end_date is null then 'open'
        when unended.end_date - unended.as_of_date <= 14 then '0-14'
        when unended.end_date - unended.as_of_date <= 30 then '15-30'
        when unended.end_date - unended.as_of_date <= 90 then '31-90'
        else 'later'
    end as band,
    coalesce(unended.end_date - unended.as_of_date <= 14, false) as ends_within_14_days,
    coalesce(unended.end_date - unended.as_of_date <= 30, false) as ends_within_30_days,
    coalesce(unended.end_date - unended.as_of_date <= 90, false) as ends_within_90_days,
    (moves.first_end_datetime at time zone coalesce(moves.first_end_zone, unended.time_zone))::date
        as first_end_date,
    coalesce(moves.extensions, 0) as extensions,
    coalesce(moves.moves - moves.extensions, 0) as corrections,
    moves.last_extended_at,
    coalesce(moves.extensions > 0, false) or coalesce(next_placements.is_same_job, false)
        as is_extended,
    next_placements.next_booking_id,
    next_placements.next_start_date,
    coalesce(not next_placements.is_same_job, false) as is_redeployed,
    replacements.replacement_booking_id,
    replacements.booking_id is not null as is_replaced,
    unended.day_rate,
    unended.currency
from unended
left join moves on moves.booking_id = unended.booking_id
left join next_placements on next_placements.booking_id = unended.booking_id
left join replacements on replacements.booking_id = unended.booking_id
left join {{ ref('dim_days') }} as today on today.day = unended.as_of_date
left join {{ ref('dim_days') }} as last_days on last_days.day = unended.end_date
