with

counted as (
    select
        resource,
        count(*) filter (where is_live) as current_rows,
        count(hydrated_at) filter (where is_live) as fully_read,
        count(*) filter (where not is_live) as deleted,
        min(hydrated_at) filter (where is_live) as oldest_read_at
    from {{ ref('stg_records') }}
    group by resource
),

resources as (
    -- each resource: written by `make generate`
    select 'jobs' as resource
    union all
    select 'candidates' as resource
    union all
    select 'companies' as resource
    union all
    select 'bookings' as resource
    union all
    select 'leads' as resource
    union all
    select 'content_types' as resource
    union all
    select 'content_items' as resource
    -- end of each resource
),

queued as (
    select resource, count(*) as pending from {{ source('sync', 'queue') }} group by resource
),

-- A resource is verified up to the earliest time of its streams, if all were loaded.
proven as (
    select resource, case when bool_and(proven_at is not null) then min(proven_at) end as proven_at
    from {{ source('sync', 'bookmarks') }}
    group by resource
),

cycle as (
    select coalesce(
        (select max(cycle_begins) from {{ source('sync', 'quota') }}),
        date_trunc('month', as_of.as_of_date)::date
    ) as begins_on
    from {{ ref('as_of') }} as as_of
),

visits as (
    select done.*, runs.started_at, runs.command,
        runs.started_at at time zone 'UTC' >= cycle.begins_on as is_this_month,
        row_number() over (
            partition by done.resource order by runs.started_at desc, runs.run_id desc
        ) as place
    from {{ source('sync', 'run_resources') }} as done
    join {{ source('sync', 'runs') }} as runs on runs.run_id = done.run_id
    cross join cycle
    where done.outcome <> 'not_started'
),

spent as (
    select resource, sum(requests)::bigint as requests from visits
    where is_this_month
    group by resource
)

select
    resources.resource,
    coalesce(counted.current_rows, 0) as current_rows,
    coalesce(counted.fully_read, 0) as fully_read,
    coalesce(counted.current_rows - counted.fully_read, 0) as summary_only,
    counted.fully_read / nullif(counted.current_rows, 0) as fully_read_share,
    coalesce(counted.deleted, 0) as deleted,
    coalesce(queued.pending, 0) as pending,
    proven.proven_at,
    round((epoch(as_of.as_of_at) - epoch(proven.proven_at)) / 3600, 2) as hours_behind,
    visits.started_at as last_run_at,
    visits.command as last_command,
    visits.outcome as last_outcome,
    visits.proven as last_proven,
    visits.message as last_message,
    visits.total as api_total,
    visits.live as rows_last_run,
    visits.requests as requests_last_run,
    coalesce(spent.requests, 0) as requests_this_month,
    counted.oldest_read_at,
    round((epoch(as_of.as_of_at) - epoch(counted.oldest_read_at)) / 86400, 2)
        as oldest_read_age_days,
    case when visits.resource is not null
        then coalesce(list_sum(json_extract(visits.anomalies, '$.*')::bigint[]), 0)::bigint
    end as anomalies
from resources
cross join {{ ref('as_of') }} as as_of
left join counted on counted.resource = resources.resource
left join queued on queued.resource = resources.resource
left join proven on proven.resource = resources.resource
left join visits on visits.resource = resources.resource and visits.place = 1
left join spent on spent.resource = resources.resource
