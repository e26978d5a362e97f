with

months as (
    select *, period_start as month
    from {{ ref('sum_consultant_activity') }}
    where period = 'month'
),

done as (
    select consultant_id, team, month, 'candidates_added' as measure, candidates_added::decimal(18, 2) as value
    from months
    union all
    select consultant_id, team, month, 'leads_added', leads_added from months
    union all
    select consultant_id, team, month, 'jobs_added', jobs_added from months
    union all
    select consultant_id, team, month, 'interviews_booked', interviews_booked from months
    union all
    select consultant_id, team, month, 'interviews_held', interviews_held from months
    union all
    select consultant_id, team, month, 'placements', placements from months
    union all
    -- Without a placement the fee is 0; placements without a known fee have an unknown one.
    select consultant_id, team, month, 'reporting_fee', if(placements = 0, 0, reporting_fee)
    from months
),

goals as (
    select *, row_number() over (order by month, measure, consultant_id, team) as goal_number
    from {{ ref('goals') }}
    where month is not null and measure is not null
),

reached as (
    select
        goals.goal_number,
        if(count(done.month) = 0, 0, sum(done.value))::decimal(18, 2) as actual
    from goals
    left join done
        on done.month = date_trunc('month', goals.month)::date
        and done.measure = goals.measure
        and if(goals.consultant_id is null, done.team = goals.team,
            done.consultant_id = goals.consultant_id)
    group by goals.goal_number
)

select
    if(goals.consultant_id is null, 'team', 'consultant') as group_by,
    if(goals.consultant_id is null, goals.team, people.person_name) as group_name,
    goals.consultant_id as group_id,
    if(goals.consultant_id is null, goals.team, people.team) as team,
    date_trunc('month', goals.month)::date as month_start,
    goals.measure,
    goals.target,
    reached.actual,
    round(reached.actual / nullif(goals.target, 0), 4) as attainment,
    coalesce(reached.actual >= goals.target, false) as is_reached,
    last_day(goals.month) < as_of.as_of_date as is_over
from goals
join reached on reached.goal_number = goals.goal_number
cross join {{ ref('as_of') }} as as_of
left join {{ ref('stg_people') }} as people on people.person_id = goals.consultant_id
