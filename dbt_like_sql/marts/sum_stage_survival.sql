with

-- A candidate counts from the read that showed the visit: a shorter visit would be unknown.
moves as (
    select stage, days_before_observed as days, 1 as came, 0 as went, 0 as changed
    from {{ ref('fct_time_in_stage') }}
    where days_at_least > days_before_observed
    union all
    select stage, days_at_least, 0, 1, left_stage::integer
    from {{ ref('fct_time_in_stage') }}
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
)

select
    stage || ':' || days as stage_survival_id,
    stage,
    days,
    at_risk::bigint as at_risk,
    exits::bigint as exits,
    product(1 - exits / at_risk) over (partition by stage order by days) as survival_probability
from ended
where days < broken_days or broken_days is null
