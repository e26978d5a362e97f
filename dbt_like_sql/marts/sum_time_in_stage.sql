-- model: sum_time_in_stage
-- grain: one row per stage
-- The distribution of the days that measured visits to each stage took.

with

visits as (
    select
        *,
        case when is_measured then days end as measured_days,
        case when is_measured then days_min end as measured_days_min,
        case when is_measured then days_max end as measured_days_max,
        case when is_current then days end as current_days
    from {{ ref('fct_time_in_stage') }}
)

select
    stage,
    min(stage_order) as stage_order,
    count(*) as visits,
    count(*) filter (where not is_current) as ended_visits,
    count(measured_days) as measured_visits,
    count(measured_days) / nullif(count(*) filter (where not is_current), 0) as measured_share,
    round(avg(measured_days), 2) as mean_days,
    round(quantile_cont(measured_days, 0.10), 2) as p10_days,
    round(quantile_cont(measured_days, 0.25), 2) as p25_days,
    round(quantile_cont(measured_days, 0.50), 2) as p50_days,
    round(quantile_cont(measured_days, 0.75), 2) as p75_days,
    round(quantile_cont(measured_days, 0.90), 2) as p90_days,
    round(quantile_cont(measured_days_min, 0.50), 2) as p50_days_min,
    round(quantile_cont(measured_days_max, 0.50), 2) as p50_days_max,
    count(current_days) as current_visits,
    round(quantile_cont(current_days, 0.50), 2) as current_p50_days,
    round(quantile_cont(current_days, 0.90), 2) as current_p90_days
from visits
group by stage
