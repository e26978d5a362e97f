with

-- Grouped by quarter-hours first, since conversion to a time zone is slow: in every zone, a
-- quarter-hour is in one month.
months as (
    select
        quarters.quarter,
        date_trunc(
            'month', to_timestamp(quarters.quarter * 900) at time zone as_of.time_zone
        )::date as month
    from (
        select distinct epoch_us(entered_at) // 900000000 as quarter
        from {{ ref('fct_candidate_stages') }}
    ) as quarters
    cross join {{ ref('as_of') }} as as_of
),

visits as (
    select
        stages.candidate_id, stages.stage, stages.stage_order, stages.visit_number,
        stages.entered_at, stages.is_entry_observed, stages.furthest_stage_order,
        case when stages.is_entry_observed then months.month end as entered_month
    from {{ ref('fct_candidate_stages') }} as stages
    left join months on months.quarter = epoch_us(stages.entered_at) // 900000000
    where stages.stage_order is not null
),

-- arg_min() ignores null values, so null is 0 inside it and null again outside.
reached as (
    select
        candidate_id,
        stage,
        min(stage_order) as stage_order,
        min(entered_at) as entered_at,
        arg_min_null(entered_month, visit_number) as entered_month,
        arg_min(is_entry_observed, visit_number) as is_entry_observed,
        count(*) as visits,
        nullif(arg_min(coalesce(furthest_stage_order, 0), visit_number), 0) as furthest_after
    from visits
    group by candidate_id, stage
),

last_visits as (
    select
        candidate_id,
        arg_max(is_lost, visit_number) as is_lost,
        arg_max(coalesce(left_by = 'deletion', false), visit_number) as is_deleted
    from {{ ref('fct_candidate_stages') }}
    group by candidate_id
),

ends as (
    select max(stage_order) as last_order from {{ ref('candidate_stages') }}
)

select
    reached.candidate_id || ':' || reached.stage as stage_conversion_id,
    reached.candidate_id,
    reached.stage,
    reached.stage_order,
    reached.entered_at,
    reached.is_entry_observed,
    reached.entered_month,
    reached.visits,
    case
        when reached.furthest_after > reached.stage_order then 'advanced'
        when reached.stage_order = ends.last_order then 'arrived'
        when last_visits.is_lost then 'lost'
        when last_visits.is_deleted then 'deleted'
        else 'in_progress'
    end as outcome,
    reached.furthest_after as furthest_stage_order,
    coalesce(candidates.source, 'unknown') as source,
    coalesce(candidates.source_group, 'unknown') as source_group,
    candidates.consultant_id,
    coalesce(candidates.consultant_name, 'unknown') as consultant_name,
    candidates.team
from reached
join last_visits on last_visits.candidate_id = reached.candidate_id
cross join ends
left join {{ ref('dim_candidates') }} as candidates
    on candidates.candidate_id = reached.candidate_id
