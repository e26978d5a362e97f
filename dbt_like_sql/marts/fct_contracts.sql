with

contracts as (
    select
        placements.*,
        as_of.as_of_date,
        placements.contract_state in ('running', 'to_come') as is_unended
    from {{ ref('fct_placements') }} as placements
    cross join {{ ref('as_of') }} as as_of
    where placements.booking_type = 'contract'
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
    select contracts.booking_id, later.booking_id as next_booking_id,
        later.start_date as next_start_date, later.job_id = contracts.job_id as is_same_job,
        later.booking_type = 'permanent' and (
            is_same_job or later.company_id = contracts.company_id
        ) as is_permanent
    from contracts
    join {{ ref('fct_placements') }} as later
        on later.candidate_id = contracts.candidate_id
        and not later.is_fall_off
        and later.start_date > contracts.start_date
        -- A contract on another job that begins before the end is parallel, not a follow-up.
        and (later.start_date >= contracts.last_day or later.job_id = contracts.job_id)
        and later.start_date <= contracts.last_day + 30
    qualify row_number() over (
        partition by contracts.booking_id order by later.start_date, later.booking_id
    ) = 1
),

replacements as (
    select contracts.booking_id, other.booking_id as replacement_booking_id
    from contracts
    join {{ ref('fct_placements') }} as other
        on other.job_id = contracts.job_id
        and not other.is_fall_off
        and other.candidate_id <> contracts.candidate_id
        and other.start_date > contracts.start_date
        and other.start_date between contracts.last_day - 30 and contracts.last_day + 30
    qualify row_number() over (
        partition by contracts.booking_id order by other.start_date, other.booking_id
    ) = 1
)

select
    contracts.booking_id,
    contracts.candidate_id,
    contracts.job_id,
    contracts.job_title,
    contracts.company_id,
    contracts.company_name,
    contracts.consultant_id,
    contracts.consultant_name,
    contracts.team,
    contracts.contract_type,
    contracts.contract_state,
    contracts.start_date,
    contracts.end_date,
    contracts.last_day,
    contracts.time_zone,
    contracts.is_extension,
    contracts.is_fall_off,
    case when is_unended then contracts.end_date - contracts.as_of_date end as days_left,
    case when is_unended then last_days.working_day_number - today.working_day_number end
        as working_days_left,
    case
        when not is_unended then null
        when contracts.end_date is null then 'open'
        when contracts.end_date - contracts.as_of_date <= 14 then '0-14'
        when contracts.end_date - contracts.as_of_date <= 30 then '15-30'
        when contracts.end_date - contracts.as_of_date <= 90 then '31-90'
        else 'later'
    end as band,
    coalesce(days_left <= 14, false) as ends_within_14_days,
    coalesce(days_left <= 30, false) as ends_within_30_days,
    coalesce(days_left <= 90, false) as ends_within_90_days,
    (moves.first_end_datetime at time zone coalesce(moves.first_end_zone, contracts.time_zone))::date
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
    case
        when contracts.contract_state <> 'ended' then null
        when next_placements.is_permanent then 'made_permanent'
        when next_placements.is_same_job then 'extended'
        when is_redeployed then 'redeployed'
        when is_replaced then 'replaced'
        else 'none'
    end as ended_with,
    contracts.day_rate,
    contracts.contract_value,
    contracts.currency
from contracts
left join moves on moves.booking_id = contracts.booking_id
left join next_placements on next_placements.booking_id = contracts.booking_id
left join replacements on replacements.booking_id = contracts.booking_id
left join {{ ref('dim_days') }} as today on today.day = contracts.as_of_date
left join {{ ref('dim_days') }} as last_days on last_days.day = contracts.end_date
