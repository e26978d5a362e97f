with

proven as (
    select min(proven_at) as proven_at
    from {{ source('sync', 'bookmarks') }}
    where resource = 'candidates'
),

visits as (
    select
        stages.*,
        -- A detail may have been read after the time up to which all records are verified.
        greatest(as_of.as_of_at, stages.entered_before) as now_at,
        -- A later verification of other resources does not cover candidates.
        greatest(proven.proven_at, stages.entered_before) as last_known_at
    from {{ ref('fct_candidate_stages') }} as stages
    cross join {{ ref('as_of') }} as as_of
    cross join proven
),

measured as (
    select
        *,
        (epoch(coalesce(left_at, now_at)) - epoch(entered_at)) / 86400 as days,
        (epoch(coalesce(left_after, last_known_at)) - epoch(entered_before)) / 86400 as days_min,
        (epoch(coalesce(left_before, now_at)) - epoch(entered_after)) / 86400 as days_max,
        (epoch(entered_before) - epoch(entered_at)) / 86400 as days_before_observed
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
    candidates.team,
    measured.entered_at,
    measured.left_at,
    measured.is_current,
    measured.is_entry_observed,
    measured.may_contain_gap,
    coalesce(measured.left_by = 'change', false) as left_stage,
    coalesce(measured.left_by = 'change', false) and measured.is_entry_observed as is_measured,
    case when is_measured then round(greatest(measured.days, 0), 2) end as days_observed,
    round(greatest(measured.days, 0), 2) as days_at_least,
    -- Bounds are rounded outwards, so that the true value stays between them.
    floor(greatest(measured.days_min, 0) * 100) / 100 as days_min,
    ceil(greatest(measured.days_max, 0) * 100) / 100 as days_max,
    round(greatest(measured.days_max, 0) - greatest(measured.days_min, 0), 2) as uncertainty_days,
    round(greatest(measured.days_before_observed, 0), 2) as days_before_observed
from measured
left join {{ ref('dim_candidates') }} as candidates
    on candidates.candidate_id = measured.candidate_id
