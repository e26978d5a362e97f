with

versions as (
    select
        *,
        lag(status) over history as status_before,
        lag(ended_by) over history as ended_before_by
    from {{ ref('stg_candidate_versions') }}
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
        -- Another status is possible between two versions with the same status.
        count(*) > 1 as may_contain_gap,
        min(created_at) as created_at
    from numbered
    group by candidate_id, visit_number
),

proven as (
    select min(proven_at) as proven_at
    from {{ source('sync', 'bookmarks') }}
    where resource = 'candidates'
),

begun as (
    select min(began_before) - interval 1 second as mirror_began_at from {{ ref('stg_candidate_versions') }}
),

ordered as (
    select
        visits.*,
        stages.stage_order,
        stages.stage_kind,
        coalesce(stages.is_lost, false) as is_lost,
        lag(visits.stage) over in_order as previous_stage,
        lead(visits.stage) over in_order as following_stage,
        max(stages.stage_order) over (
            in_order rows between 1 following and unbounded following
        ) as furthest_stage_order,
        visits.visit_number > 1 or coalesce(
            visits.created_at >= begun.mirror_began_at and visits.entered_before is not null, false
        ) as is_entry_observed,
        row_number() over (
            partition by visits.candidate_id, visits.stage order by visits.visit_number
        ) = 1 as is_first_visit,
        last_value(stages.is_lost) over whole as ends_lost,
        last_value(visits.is_deletion) over whole as ends_deleted
    from visits
    cross join begun
    left join {{ ref('stg_candidate_stages') }} as stages on stages.stage = visits.stage
    window
        in_order as (partition by visits.candidate_id order by visits.visit_number),
        whole as (
            in_order rows between unbounded preceding and unbounded following
        )
),

ended as (
    select
        * exclude (left_after, left_at, left_before),
        case when not is_current then left_after end as left_after,
        case when not is_current then left_at end as left_at,
        case when not is_current then left_before end as left_before,
        case when is_current then null when is_deletion then 'deletion' else 'change' end as left_by
    from ordered
),

measured as (
    select
        ended.*,
        -- It is unknown when a stage began that only a list has shown.
        case when entered_before is null then 0
            else epoch(coalesce(left_at, greatest(as_of.as_of_at, entered_before)))
                - epoch(entered_at)
        end / 86400 as days,
        -- A later verification of other resources does not cover candidates.
        (epoch(coalesce(left_after, greatest(proven.proven_at, entered_before)))
        - epoch(entered_before)) / 86400 as least_days,
        -- A detail may have been read after the time up to which all records are verified.
        (epoch(coalesce(left_before, greatest(as_of.as_of_at, entered_before)))
        - epoch(entered_after)) / 86400 as most_days,
        (epoch(entered_before) - epoch(entered_at)) / 86400 as unseen_days
    from ended
    cross join {{ ref('as_of') }} as as_of
    cross join proven
)

select
    measured.candidate_id || ':' || measured.visit_number as stage_visit_id,
    measured.candidate_id,
    measured.visit_number,
    measured.stage,
    measured.stage_order,
    measured.stage_kind,
    measured.is_lost,
    measured.is_first_visit,
    measured.previous_stage,
    case when left_by = 'change' then following_stage end as next_stage,
    measured.furthest_stage_order,
    case
        when measured.stage_order is null then null
        when measured.furthest_stage_order > measured.stage_order then 'advanced'
        when measured.stage_order = ends.last_order then 'arrived'
        when coalesce(measured.ends_lost, false) then 'lost'
        when measured.ends_deleted then 'deleted'
        else 'in_progress'
    end as stage_outcome,
    case when candidates.candidate_id is null then 'unknown' else sources.source end as source,
    case when candidates.candidate_id is null then 'unknown' else sources.source_group end
        as source_group,
    candidates.assigned_to as consultant_id,
    case when candidates.candidate_id is null then 'unknown'
        else coalesce(people.person_name, 'unassigned')
    end as consultant_name,
    people.team,
    measured.entered_after,
    measured.entered_at,
    measured.entered_before,
    measured.left_after,
    measured.left_at,
    measured.left_before,
    measured.left_by,
    measured.is_current,
    measured.may_contain_gap,
    measured.is_entry_observed,
    coalesce(left_by = 'change', false) as left_stage,
    left_stage and measured.is_entry_observed as is_measured,
    if(is_measured, round(greatest(measured.days, 0), 2), null) as days_observed,
    round(greatest(measured.days, 0), 2) as days_at_least,
    -- Bounds are rounded outwards, so that the true value stays between them.
    floor(greatest(measured.least_days, 0) * 100) / 100 as days_min,
    ceil(greatest(measured.most_days, 0) * 100) / 100 as days_max,
    round(greatest(measured.unseen_days, 0), 2) as days_before_observed
from measured
cross join (select max(stage_order) as last_order from {{ ref('candidate_stages') }}) as ends
left join {{ ref('stg_candidates') }} as candidates
    on candidates.candidate_id = measured.candidate_id
left join {{ ref('dim_sources') }} as sources on sources.source = candidates.source_key
left join {{ ref('stg_people') }} as people on people.person_id = candidates.assigned_to
