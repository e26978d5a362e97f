with

-- If only a list showed a version and the list cannot show the status, the status is unchanged.
known as (
    select
        candidate_id, version, created_at, valid_from, valid_to, began_after, began_before,
        ended_after, ended_before, ended_by,
        not is_fully_read and observed_to > observed_from as is_list_watched,
        case
            when is_fully_read then status
            else last_value(status ignore nulls) over (
                partition by candidate_id order by version
                rows between unbounded preceding and current row
            )
        end as status
    from {{ ref('stg_candidate_versions') }}
),

versions as (
    select
        *,
        lag(status) over history as status_before,
        lag(ended_by) over history as ended_before_by
    from known
    where status is not null
    window history as (partition by candidate_id order by version)
),

numbered as (
    select
        *,
        sum(
            (status is distinct from status_before or ended_before_by = 'deletion')::integer
        ) over (partition by candidate_id order by version)::bigint as visit_number
    from versions
),

-- Times increase from version to version, so a visit has the least and the greatest of them.
visits as (
    select
        candidate_id,
        visit_number,
        any_value(status) as stage,
        min(began_after) as entered_after,
        min(valid_from) as entered_at,
        min(began_before) as entered_before,
        bool_or(ended_by is null) as is_current,
        max(ended_after) as left_after,
        max(valid_to) as left_at,
        max(ended_before) as left_before,
        bool_or(ended_by = 'deletion') as is_deletion,
        -- Another status is possible between two versions or two lists with the same status.
        count(*) > 1 or bool_or(is_list_watched) as may_contain_gap,
        min(created_at) as created_at
    from numbered
    group by candidate_id, visit_number
),

begun as (
    select min(observed_from) as mirror_began_at from {{ ref('stg_candidate_versions') }}
)

select
    visits.candidate_id || ':' || visits.visit_number as stage_visit_id,
    visits.candidate_id,
    visits.visit_number,
    visits.stage,
    stages.stage_order,
    stages.stage_kind,
    coalesce(stages.is_lost, false) as is_lost,
    lag(visits.stage) over in_order as previous_stage,
    case when not is_current and not is_deletion then lead(visits.stage) over in_order end
        as next_stage,
    max(stages.stage_order) over (
        partition by visits.candidate_id order by visits.visit_number
        rows between 1 following and unbounded following
    ) as furthest_stage_order,
    visits.entered_after,
    visits.entered_at,
    visits.entered_before,
    -- A list may have shown the status after the last detail of the version.
    case when is_current then null when is_deletion then visits.left_after
        else greatest(visits.left_after, lead(visits.entered_after) over in_order) end
        as left_after,
    case when not is_current then visits.left_at end as left_at,
    case when not is_current then visits.left_before end as left_before,
    case when is_current then null when is_deletion then 'deletion' else 'change' end as left_by,
    visits.is_current,
    visits.may_contain_gap,
    visits.visit_number > 1 or visits.created_at >= begun.mirror_began_at as is_entry_observed
from visits
cross join begun
left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = visits.stage
window in_order as (partition by visits.candidate_id order by visits.visit_number)
