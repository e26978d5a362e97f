with

bounds as (
    select
        (min(stages.entered_before) at time zone any_value(as_of.time_zone))::date as first_day,
        any_value(as_of.as_of_date) as last_day
    from {{ ref('fct_candidate_stages') }} as stages
    cross join {{ ref('as_of') }} as as_of
),

-- Grouped by quarter-hours first, since conversion to a time zone is slow: in every zone, a
-- quarter-hour is on one day.
counted as (
    select
        epoch_us(stages.entered_at) // 900000000 as quarter,
        stages.stage,
        count(*) filter (where stages.is_entry_observed) as entered,
        count(*) filter (where not stages.is_entry_observed) as initial,
        0 as exited,
        0 as deleted
    from {{ ref('fct_candidate_stages') }} as stages
    group by all
    union all
    select
        epoch_us(stages.left_at) // 900000000 as quarter,
        stages.stage,
        0,
        0,
        count(*) filter (where stages.left_by = 'change'),
        count(*) filter (where stages.left_by = 'deletion')
    from {{ ref('fct_candidate_stages') }} as stages
    where not stages.is_current
    group by all
),

dated as (
    select
        quarters.quarter,
        (to_timestamp(quarters.quarter * 900) at time zone as_of.time_zone)::date as day
    from (select distinct quarter from counted) as quarters
    cross join {{ ref('as_of') }} as as_of
),

-- Visits older than the first pull count as initial on its day; a detail may be newer than "now".
daily as (
    select
        least(greatest(dated.day, bounds.first_day), bounds.last_day) as day,
        counted.stage,
        sum(counted.entered) as entered,
        sum(counted.initial) as initial,
        sum(counted.exited) as exited,
        sum(counted.deleted) as deleted
    from counted
    join dated on dated.quarter = counted.quarter
    cross join bounds
    group by all
),

days as (
    select days.day, stages.stage
    from {{ ref('dim_days') }} as days
    cross join (select distinct stage from daily) as stages
    cross join bounds
    where days.day between bounds.first_day and bounds.last_day
)

select
    days.day || ':' || days.stage as pipeline_day_id,
    days.day,
    days.stage,
    stages.stage_order,
    stages.stage_kind,
    coalesce(stages.is_active, false) as is_active,
    coalesce(daily.entered, 0)::bigint as entered,
    coalesce(daily.initial, 0)::bigint as initial,
    coalesce(daily.exited, 0)::bigint as exited,
    coalesce(daily.deleted, 0)::bigint as deleted,
    coalesce(
        sum(daily.entered + daily.initial - daily.exited - daily.deleted) over (
            partition by days.stage order by days.day
        ), 0
    )::bigint as end_of_day_count
from days
left join daily on daily.day = days.day and daily.stage = days.stage
left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = days.stage
