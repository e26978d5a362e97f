-- model: sum_stage_survival
-- grain: one row per stage and number of days after which anybody left it
-- The share of those in a stage who stay longer than so many days.

with

-- Nobody is at risk before the look that showed the visit: a shorter one would not be here.
moves as (
    select stage, days_at_first_look as days, 1 as came, 0 as went, 0 as changed
    from {{ ref('fct_time_in_stage') }}
    where days > days_at_first_look
    union all
    select stage, days, 0, 1, is_left::integer
    from {{ ref('fct_time_in_stage') }}
    where days > days_at_first_look
),

daily as (
    select stage, days, sum(came) as came, sum(went) as went, sum(changed) as left_stage
    from moves
    group by stage, days
),

watched as (
    select
        stage,
        days,
        left_stage,
        sum(came - went) over (
            partition by stage order by days
            rows between unbounded preceding and 1 preceding
        ) as at_risk,
        max(days) over (partition by stage) as longest_days
    from daily
),

-- Where all who were watched left, and others were watched later, the estimate ends.
ended as (
    select
        stage,
        days,
        left_stage,
        at_risk,
        min(if(left_stage = at_risk and days < longest_days, days, null)) over (
            partition by stage
        ) as broken_days
    from watched
    where left_stage > 0
)

select
    stage || ':' || days as stage_survival_id,
    stage,
    days,
    at_risk::bigint as at_risk,
    left_stage::bigint as left_stage,
    product(1 - left_stage / at_risk) over (partition by stage order by days) as share_staying
from ended
where days < broken_days or broken_days is null
