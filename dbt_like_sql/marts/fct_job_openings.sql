with

versions as (
    select
        job_id, version, status, published_at, created_at, valid_from, began_after, began_before,
        is_decided as is_over,
        lag(is_decided) over history as was_over
    from {{ ref('stg_job_versions') }}
    where status is not null
    window history as (partition by job_id order by version)
),

-- A closed job that is published again begins another opening. A job that was closed when it was
-- first read had an opening whose end is unknown.
numbered as (
    select
        *,
        1 + sum(coalesce(was_over and not is_over, false)::integer) over (
            partition by job_id order by version
        )::bigint as opening_number,
        status = 'filled' and was_over is not null as is_seen_marked
    from versions
),

openings as (
    select
        job_id,
        opening_number,
        min(valid_from) as began_at,
        max(published_at) as published_at,
        min(created_at) as created_at,
        bool_or(status = 'filled') as is_marked_filled,
        arg_max(status, version) as last_status,
        min(valid_from) filter (where is_seen_marked) as marked_filled_at,
        min(began_after) filter (where is_seen_marked) as marked_filled_after,
        min(began_before) filter (where is_seen_marked) as marked_filled_before
    from numbered
    group by job_id, opening_number
    having bool_or(status <> 'draft') or max(published_at) is not null
),

begun as (
    select
        *,
        case
            when opening_number > 1 and coalesce(published_at <= began_at, true) then 'reopened'
            when published_at is not null then 'published_at'
            else 'created_at'
        end as opened_basis,
        case
            when opening_number > 1 then greatest(began_at, published_at)
            else coalesce(published_at, created_at)
        end as opened_at
    from openings
)

select
    begun.job_id || ':' || begun.opening_number as opening_id,
    begun.job_id,
    begun.opening_number,
    row_number() over in_order = 1 as is_first,
    begun.opened_at,
    (begun.opened_at at time zone as_of.time_zone)::date as opened_on,
    begun.opened_basis,
    lead((begun.opened_at at time zone as_of.time_zone)::date) over in_order as reopened_on,
    begun.last_status,
    begun.is_marked_filled,
    begun.marked_filled_after,
    begun.marked_filled_at,
    begun.marked_filled_before
from begun
cross join {{ ref('as_of') }} as as_of
join {{ ref('dim_jobs') }} as jobs on jobs.job_id = begun.job_id
window in_order as (partition by begun.job_id order by begun.opening_number)
