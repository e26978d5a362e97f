-- model: sum_time_in_stage
-- grain: one row per stage
-- How long candidates stay in each stage, estimated with those who are still in it.

with

visits as (
    select
        stage,
        min(stage_order) as stage_order,
        count(*) as visits,
        count(*) filter (where not is_current) as ended_visits,
        count(*) filter (where is_measured) as measured_visits,
        count(*) filter (where not is_entry_observed) as begun_before_visits,
        count(*) filter (where may_hide_return) as visits_that_may_hide_return,
        count(*) filter (where is_current) as current_visits,
        round(quantile_cont(days, 0.50) filter (where is_current), 2) as current_p50_days,
        round(quantile_cont(days, 0.90) filter (where is_current), 2) as current_p90_days
    from {{ ref('fct_time_in_stage') }}
    group by stage
),

-- The share is a product of fractions, so that a half may come out a hair above one.
quantiles as (
    select
        stage,
        min(days) filter (where share_staying <= 0.90 + 1e-9) as p10_days,
        min(days) filter (where share_staying <= 0.75 + 1e-9) as p25_days,
        min(days) filter (where share_staying <= 0.50 + 1e-9) as p50_days,
        min(days) filter (where share_staying <= 0.25 + 1e-9) as p75_days,
        min(days) filter (where share_staying <= 0.10 + 1e-9) as p90_days,
        arg_min(at_risk, days) filter (where share_staying <= 0.50 + 1e-9) as p50_at_risk,
        sum(left_stage)::bigint as estimated_from
    from {{ ref('sum_stage_survival') }}
    group by stage
)

select
    visits.stage,
    visits.stage_order,
    stages.kind as stage_kind,
    visits.visits,
    visits.ended_visits,
    visits.measured_visits,
    visits.measured_visits / nullif(visits.ended_visits, 0) as measured_share,
    visits.begun_before_visits,
    visits.visits_that_may_hide_return,
    quantiles.p10_days,
    quantiles.p25_days,
    quantiles.p50_days,
    quantiles.p75_days,
    quantiles.p90_days,
    quantiles.p50_at_risk,
    coalesce(quantiles.estimated_from, 0) as estimated_from,
    visits.current_visits,
    visits.current_p50_days,
    visits.current_p90_days
from visits
left join quantiles on quantiles.stage = visits.stage
left join {{ ref('candidate_stages') }} as stages on stages.stage = visits.stage
