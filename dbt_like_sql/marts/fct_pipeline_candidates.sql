with

current_visits as (
    select * from {{ ref('fct_time_in_stage') }} where is_current
)

select
    candidates.candidate_id,
    candidates.stage,
    stages.stage_order,
    coalesce(stages.stage_kind, 'unknown') as stage_kind,
    coalesce(stages.is_active, false) as is_active,
    current_visits.entered_at,
    current_visits.is_entry_observed,
    current_visits.days_at_least as days_in_stage,
    current_visits.days_min as days_in_stage_min,
    current_visits.days_max as days_in_stage_max,
    candidates.source,
    candidates.source_group,
    candidates.consultant_id,
    candidates.consultant_name,
    candidates.team,
    candidates.employment_type,
    candidates.created_at,
    candidates.is_fully_read
from {{ ref('dim_candidates') }} as candidates
left join current_visits on current_visits.candidate_id = candidates.candidate_id
left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = candidates.stage
