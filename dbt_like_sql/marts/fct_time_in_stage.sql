-- model: fct_time_in_stage
-- grain: one row per visit of fct_candidate_stages
-- How long each visit lasted, or has lasted so far, with the interval that the looks allow.

with

visits as (
    select
        stages.*,
        -- A detail may have been read after the moment up to which all is proven.
        greatest(as_of.as_of_at, stages.entered_before) as now_at
    from {{ ref('fct_candidate_stages') }} as stages
    cross join {{ ref('as_of') }} as as_of
),

measured as (
    select
        *,
        (epoch(coalesce(left_at, now_at)) - epoch(entered_at)) / 86400 as days,
        (epoch(coalesce(left_after, now_at)) - epoch(entered_before)) / 86400 as days_min,
        (epoch(coalesce(left_before, now_at)) - epoch(entered_after)) / 86400 as days_max
    from visits
)

select
    measured.stage_visit_id,
    measured.candidate_id,
    measured.visit_number,
    measured.stage,
    measured.stage_order,
    coalesce(candidates.source_group, 'unknown') as source_group,
    candidates.consultant_id,
    coalesce(candidates.consultant_name, 'unknown') as consultant_name,
    measured.entered_at,
    measured.left_at,
    measured.is_current,
    measured.is_entry_observed,
    coalesce(measured.left_by = 'change', false) and measured.is_entry_observed as is_measured,
    round(greatest(measured.days, 0), 2) as days,
    round(greatest(measured.days_min, 0), 2) as days_min,
    round(greatest(measured.days_max, 0), 2) as days_max,
    round(greatest(measured.days_max, 0) - greatest(measured.days_min, 0), 2) as uncertainty_days
from measured
left join {{ ref('dim_candidates') }} as candidates
    on candidates.candidate_id = measured.candidate_id
