with

conversions as (
    select
        candidate_id, stage, stage_order, outcome,
        source_group, consultant_id, consultant_name, team,
        max(stage_order) over (partition by candidate_id) as furthest
    from {{ ref('fct_stage_conversion') }}
),

people as (
    select distinct candidate_id, furthest, source_group, consultant_id, consultant_name, team
    from conversions
),

inferred as (
    select
        people.candidate_id, stages.stage, stages.stage_order, 'inferred' as outcome,
        people.source_group, people.consultant_id, people.consultant_name, people.team
    from people
    join {{ ref('candidate_stages') }} as stages on stages.stage_order < people.furthest
    anti join conversions
        on conversions.candidate_id = people.candidate_id and conversions.stage = stages.stage
),

rows as (
    select * exclude (furthest) from conversions
    union all
    select * from inferred
),

counted as (
    select
        case
            when grouping(source_group) = 0 then 'source_group'
            when grouping(consultant_id) = 0 then 'consultant'
            when grouping(team) = 0 then 'team'
            else 'all'
        end as group_by,
        case when grouping(team) = 0 then coalesce(team, 'unknown')
            else coalesce(source_group, consultant_name, 'all')
        end as group_name,
        consultant_id as group_id,
        stage,
        stage_order,
        count(*) filter (where outcome <> 'inferred') as entered,
        count(*) filter (where outcome = 'advanced') as advanced,
        count(*) filter (where outcome = 'arrived') as arrived,
        count(*) filter (where outcome = 'lost') as lost,
        count(*) filter (where outcome = 'in_progress') as in_progress,
        count(*) filter (where outcome = 'deleted') as deleted,
        count(*) filter (where outcome = 'inferred') as inferred
    from rows
    group by grouping sets (
        (stage, stage_order),
        (stage, stage_order, source_group),
        (stage, stage_order, consultant_id, consultant_name),
        (stage, stage_order, team)
    )
)

select
    group_by, group_name, group_id, stage, stage_order,
    entered, advanced, arrived, lost, in_progress, deleted,
    advanced + lost as decided,
    -- No candidate can advance from the last stage.
    advanced / nullif(entered - arrived, 0) as conversion_rate,
    advanced / nullif(advanced + lost, 0) as decided_rate,
    inferred,
    entered + inferred as reached_total,
    advanced + inferred as advanced_total,
    (advanced + inferred) / nullif(entered + inferred - arrived, 0) as pass_through_rate
from counted
