with

versions as (
    select
        job_id, version, status, published_at, created_at, valid_from, began_after, began_before,
        is_decided as is_over,
        lag(is_decided) over history as was_over
    from {{ ref('stg_job_versions') }}
    where status is not null
    window history as (partition by job_id order by version)
),

-- A closed job that is published again begins another opening. A job that was closed when it was
-- first read had an opening whose end is unknown.
numbered as (
    select
        *,
        1 + sum(coalesce(was_over and not is_over, false)::integer) over (
            partition by job_id order by version
        )::bigint as opening_number,
        status = 'filled' and was_over is not null as is_seen_marked
    from versions
),

openings as (
    select
        job_id,
        opening_number,
        min(valid_from) as began_at,
        max(published_at) as published_at,
        min(created_at) as created_at,
        bool_or(status = 'filled') as is_marked_filled,
        arg_max(status, version) as last_status,
        min(valid_from) filter (where is_seen_marked) as marked_filled_at,
        min(began_after) filter (where is_seen_marked) as marked_filled_after,
        min(began_before) filter (where is_seen_marked) as marked_filled_before
    from numbered
    group by job_id, opening_number
    having bool_or(status <> 'draft') or max(published_at) is not null
),

begun as (
    select
        *,
        case
            when opening_number > 1 and coalesce(published_at <= began_at, true) then 'reopened'
            when published_at is not null then 'published_at'
            else 'created_at'
        end as opened_basis,
        case
            when opening_number > 1 then greatest(began_at, published_at)
            else coalesce(published_at, created_at)
        end as opened_at
    from openings
),

dated as (
    select
        begun.job_id || ':' || begun.opening_number as opening_id,
        begun.*,
        jobs.title as job_title, jobs.company_id, jobs.assigned_to, jobs.employment_type,
        jobs.positions,
        row_number() over in_order = 1 as is_first,
        row_number() over (partition by begun.job_id order by begun.opening_number desc) = 1
            as is_last,
        (begun.opened_at at time zone as_of.time_zone)::date as opened_on,
        lead((begun.opened_at at time zone as_of.time_zone)::date) over in_order as reopened_on,
        as_of.time_zone,
        as_of.as_of_date
    from begun
    cross join {{ ref('as_of') }} as as_of
    join {{ ref('stg_jobs') }} as jobs on jobs.job_id = begun.job_id
    window in_order as (partition by begun.job_id order by begun.opening_number)
),

placed as (
    select
        dated.opening_id,
        dated.positions,
        placements.placed_on,
        placements.placed_on_source,
        row_number() over (
            partition by dated.opening_id order by placements.placed_on, placements.booking_id
        ) as number
    from dated
    join {{ ref('fct_placements') }} as placements
        on placements.job_id = dated.job_id
        and placements.is_placement
        and (placements.placed_on >= dated.opened_on or dated.is_first)
        and (placements.placed_on < dated.reopened_on or dated.reopened_on is null)
),

counted as (
    select
        opening_id,
        count(*) as placements,
        min(placed_on) as first_placed_on,
        arg_min(placed_on_source, number) as first_source,
        min(placed_on) filter (where number = positions) as fully_filled_on
    from placed
    group by opening_id
),

-- A placement has a day; a status has the interval between two reads, and an estimate in it.
filled as (
    select
        dated.*,
        coalesce(counted.placements, 0) as placements,
        counted.fully_filled_on,
        coalesce(counted.first_placed_on, (marked_filled_at at time zone time_zone)::date)
            as filled_on,
        coalesce(counted.first_placed_on, (marked_filled_after at time zone time_zone)::date)
            as filled_on_min,
        coalesce(counted.first_placed_on, (marked_filled_before at time zone time_zone)::date)
            as filled_on_max,
        coalesce(counted.first_source, if(marked_filled_at is not null, 'status', null))
            as fill_basis,
        coalesce(filled_on >= opened_on and opened_basis <> 'created_at', false) as is_measured
    from dated
    left join counted on counted.opening_id = dated.opening_id
)

select
    filled.opening_id,
    filled.job_id,
    filled.opening_number,
    filled.is_first,
    filled.is_last,
    filled.job_title,
    filled.company_id,
    case when filled.company_id is null then 'no company'
        else coalesce(companies.name, 'unknown company')
    end as company_name,
    filled.assigned_to as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    filled.employment_type,
    filled.positions,
    filled.placements as placements_in_opening,
    case
        when filled.is_marked_filled or filled.placements >= filled.positions then 'filled'
        when filled.placements > 0 then 'partly_filled'
        when filled.last_status in ('closed', 'cancelled') then filled.last_status
        else 'open'
    end as opening_outcome,
    filled.opened_at,
    filled.opened_on,
    date_trunc('month', filled.opened_on)::date as opened_month,
    filled.opened_basis,
    filled.reopened_on,
    filled.last_status,
    filled.is_marked_filled,
    filled.marked_filled_after,
    filled.marked_filled_at,
    filled.marked_filled_before,
    filled.filled_on,
    date_trunc('month', filled.filled_on)::date as filled_month,
    filled.fill_basis,
    filled.fully_filled_on,
    filled.is_measured,
    if(is_measured, filled_on - opened_on, null) as days_to_fill,
    if(is_measured, greatest(filled_on_min - opened_on, 0), null) as days_to_fill_min,
    if(is_measured, filled_on_max - opened_on, null) as days_to_fill_max,
    if(is_measured, ends.working_day_number - starts.working_day_number, null)
        as working_days_to_fill,
    if(is_measured, fully_filled_on - opened_on, null) as days_to_fill_all,
    if(opening_outcome = 'open', greatest(as_of_date - opened_on, 0), null) as days_open
from filled
left join {{ ref('stg_known_companies') }} as companies on companies.company_id = filled.company_id
left join {{ ref('stg_people') }} as people on people.person_id = filled.assigned_to
left join {{ ref('dim_days') }} as starts on starts.day = filled.opened_on
left join {{ ref('dim_days') }} as ends on ends.day = filled.filled_on
