with

visits as (
    select
        stage,
        min(stage_order) as stage_order,
        count(*) as visits,
        count(*) filter (where not is_current) as ended_visits,
        count(*) filter (where is_measured) as measured_visits,
        count(*) filter (where not is_entry_observed) as visits_started_before_mirror,
        count(*) filter (where may_contain_gap) as visits_may_contain_gap,
        count(*) filter (where is_current) as current_visits,
        round(quantile_cont(days_at_least, 0.50) filter (where is_current), 2) as current_p50_days,
        round(quantile_cont(days_at_least, 0.90) filter (where is_current), 2) as current_p90_days
    from {{ ref('fct_candidate_stages') }}
    group by stage
),

-- A candidate counts from the read that showed the visit: a shorter visit would be unknown.
moves as (
    select stage, days_before_observed as days, 1 as came, 0 as went, 0 as changed
    from {{ ref('fct_candidate_stages') }}
    where days_at_least > days_before_observed
    union all
    select stage, days_at_least, 0, 1, left_stage::integer
    from {{ ref('fct_candidate_stages') }}
    where days_at_least > days_before_observed
),

daily as (
    select stage, days, sum(came) as came, sum(went) as went, sum(changed) as exits
    from moves
    group by stage, days
),

watched as (
    select
        stage,
        days,
        exits,
        sum(came - went) over (
            partition by stage order by days
            rows between unbounded preceding and 1 preceding
        ) as at_risk,
        max(days) over (partition by stage) as longest_days
    from daily
),

-- The estimate ends where all observed candidates left and others were observed only later.
ended as (
    select
        stage,
        days,
        exits,
        at_risk,
        min(if(exits = at_risk and days < longest_days, days, null)) over (
            partition by stage
        ) as broken_days
    from watched
    where exits > 0
),

survived as (
    select
        stage,
        days,
        at_risk::bigint as at_risk,
        exits,
        product(1 - exits / at_risk) over (partition by stage order by days) as survival_probability
    from ended
    where days < broken_days or broken_days is null
),

-- The probability is a product of fractions, so that a half may come out a hair above one.
quantiles as (
    select
        stage,
        min(days) filter (where survival_probability <= 0.90 + 1e-9) as p10_days,
        min(days) filter (where survival_probability <= 0.75 + 1e-9) as p25_days,
        min(days) filter (where survival_probability <= 0.50 + 1e-9) as p50_days,
        min(days) filter (where survival_probability <= 0.25 + 1e-9) as p75_days,
        min(days) filter (where survival_probability <= 0.10 + 1e-9) as p90_days,
        arg_min(at_risk, days) filter (where survival_probability <= 0.90 + 1e-9)
            as p10_at_risk,
        arg_min(at_risk, days) filter (where survival_probability <= 0.75 + 1e-9)
            as p25_at_risk,
        arg_min(at_risk, days) filter (where survival_probability <= 0.50 + 1e-9)
            as p50_at_risk,
        arg_min(at_risk, days) filter (where survival_probability <= 0.25 + 1e-9)
            as p75_at_risk,
        arg_min(at_risk, days) filter (where survival_probability <= 0.10 + 1e-9)
            as p90_at_risk,
        sum(exits)::bigint as exits_observed
    from survived
    group by stage
)

select
    visits.stage,
    visits.stage_order,
    stages.stage_kind,
    coalesce(stages.is_active, false) as is_active,
    visits.visits,
    visits.ended_visits,
    visits.measured_visits,
    visits.measured_visits / nullif(visits.ended_visits, 0) as measured_share,
    visits.visits_started_before_mirror,
    visits.visits_may_contain_gap,
    -- A quantile that rests on fewer than 20 visits is not an estimate.
    case when quantiles.p10_at_risk >= 20 then quantiles.p10_days end as p10_days,
    case when quantiles.p25_at_risk >= 20 then quantiles.p25_days end as p25_days,
    case when quantiles.p50_at_risk >= 20 then quantiles.p50_days end as p50_days,
    case when quantiles.p75_at_risk >= 20 then quantiles.p75_days end as p75_days,
    case when quantiles.p90_at_risk >= 20 then quantiles.p90_days end as p90_days,
    quantiles.p10_at_risk,
    quantiles.p25_at_risk,
    quantiles.p50_at_risk,
    quantiles.p75_at_risk,
    quantiles.p90_at_risk,
    coalesce(quantiles.exits_observed, 0) as exits_observed,
    visits.current_visits,
    visits.current_p50_days,
    visits.current_p90_days
from visits
left join quantiles on quantiles.stage = visits.stage
left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = visits.stage
