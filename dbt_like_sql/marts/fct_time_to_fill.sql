with

placed as (
    select
        openings.opening_id,
        jobs.positions,
        placements.placed_on,
        placements.placed_on_source,
        row_number() over (
            partition by openings.opening_id order by placements.placed_on, placements.booking_id
        ) as number
    from {{ ref('fct_job_openings') }} as openings
    join {{ ref('dim_jobs') }} as jobs on jobs.job_id = openings.job_id
    join {{ ref('fct_placements') }} as placements
        on placements.job_id = openings.job_id
        and placements.is_placement
        and (placements.placed_on >= openings.opened_on or openings.is_first)
        and (placements.placed_on < openings.reopened_on or openings.reopened_on is null)
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
        openings.*,
        coalesce(counted.placements, 0) as placements,
        counted.fully_filled_on,
        coalesce(counted.first_placed_on, (marked_filled_at at time zone as_of.time_zone)::date)
            as filled_on,
        coalesce(counted.first_placed_on, (marked_filled_after at time zone as_of.time_zone)::date)
            as filled_on_min,
        coalesce(counted.first_placed_on, (marked_filled_before at time zone as_of.time_zone)::date)
            as filled_on_max,
        coalesce(counted.first_source, if(marked_filled_at is not null, 'status', null))
            as fill_basis
    from {{ ref('fct_job_openings') }} as openings
    cross join {{ ref('as_of') }} as as_of
    left join counted on counted.opening_id = openings.opening_id
),

measured as (
    select
        *,
        coalesce(filled_on >= opened_on and opened_basis <> 'created_at', false) as is_measured
    from filled
)

select
    measured.opening_id,
    measured.job_id,
    measured.opening_number,
    jobs.job_title,
    jobs.company_id,
    jobs.company_name,
    jobs.consultant_id,
    jobs.consultant_name,
    jobs.team,
    jobs.employment_type,
    jobs.positions,
    measured.placements,
    case
        when measured.is_marked_filled or measured.placements >= jobs.positions then 'filled'
        when measured.placements > 0 then 'partly_filled'
        when measured.last_status in ('closed', 'cancelled') then measured.last_status
        else 'open'
    end as outcome,
    measured.opened_on,
    measured.opened_basis,
    date_trunc('month', measured.opened_on)::date as opened_month,
    measured.filled_on,
    measured.fill_basis,
    date_trunc('month', measured.filled_on)::date as filled_month,
    measured.fully_filled_on,
    measured.is_measured,
    if(is_measured, filled_on - opened_on, null) as days_to_fill,
    if(is_measured, greatest(filled_on_min - opened_on, 0), null) as days_to_fill_min,
    if(is_measured, filled_on_max - opened_on, null) as days_to_fill_max,
    if(is_measured, ends.working_day_number - starts.working_day_number, null)
        as working_days_to_fill,
    if(is_measured, fully_filled_on - opened_on, null) as days_to_fill_all
from measured
join {{ ref('dim_jobs') }} as jobs on jobs.job_id = measured.job_id
left join {{ ref('dim_days') }} as starts on starts.day = measured.opened_on
left join {{ ref('dim_days') }} as ends on ends.day = measured.filled_on
