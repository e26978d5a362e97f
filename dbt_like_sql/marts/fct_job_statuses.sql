with

versions as (
    select
        *,
        lag(status) over history as status_before,
        lag(ended_by) over history as ended_before_by
    from {{ ref('stg_job_versions') }}
    where status is not null
    window history as (partition by job_id order by version)
),

numbered as (
    select
        *,
        sum(
            (status is distinct from status_before or ended_before_by = 'deletion')::integer
        ) over (partition by job_id order by version)::bigint as visit_number
    from versions
),

visits as (
    select
        job_id,
        visit_number,
        any_value(status) as job_status,
        bool_or(is_open) as is_open,
        min(began_after) as entered_after,
        min(valid_from) as entered_at,
        min(began_before) as entered_before,
        bool_or(ended_by is null) as is_current,
        max(ended_after) as left_after,
        max(valid_to) as left_at,
        max(ended_before) as left_before,
        bool_or(ended_by = 'deletion') as is_deletion,
        count(*) > 1 as may_contain_gap,
        min(created_at) as created_at
    from numbered
    group by job_id, visit_number
),

begun as (
    select min(began_before) - interval 1 second as mirror_began_at from {{ ref('stg_job_versions') }}
)

select
    visits.job_id || ':' || visits.visit_number as status_visit_id,
    visits.job_id,
    visits.visit_number,
    visits.job_status,
    visits.is_open,
    lag(visits.job_status) over in_order as previous_status,
    case when not visits.is_current and not visits.is_deletion
        then lead(visits.job_status) over in_order
    end as next_status,
    visits.entered_after,
    visits.entered_at,
    visits.entered_before,
    case when not visits.is_current then visits.left_after end as left_after,
    case when not visits.is_current then visits.left_at end as left_at,
    case when not visits.is_current then visits.left_before end as left_before,
    case when visits.is_current then null when visits.is_deletion then 'deletion' else 'change' end
        as left_by,
    visits.is_current,
    visits.may_contain_gap,
    visits.visit_number > 1 or coalesce(visits.created_at >= begun.mirror_began_at, false)
        as is_entry_observed
from visits
cross join begun
window in_order as (partition by visits.job_id order by visits.visit_number)
