{{ config(materialized='view') }}

with

bookmarks as (
    select
        max(proven_at) as newest_proven_at,
        case when bool_and(proven_at is not null) then min(proven_at) end as all_proven_at
    from {{ source('sync', 'bookmarks') }}
),

runs as (
    select max(coalesce(ended_at, started_at)) as last_run_at from {{ source('sync', 'runs') }}
),

-- The row of the current publication has the account's time zone.
publications as (
    select arg_max(time_zone, started_at) as time_zone
    from {{ source('sync', 'publications') }}
),

moments as (
    select
        coalesce(newest_proven_at, last_run_at) as as_of_at,
        if(zones.name is null, 'UTC', publications.time_zone) as time_zone,
        case
            when newest_proven_at is not null then 'bookmarks'
            when last_run_at is not null then 'runs'
            else 'nothing'
        end as basis,
        all_proven_at
    from bookmarks
    cross join runs
    cross join publications
    left join pg_timezone_names() as zones on zones.name = publications.time_zone
)

-- Before the first verification, the time of the last run is the best known value.
select
    as_of_at,
    (as_of_at at time zone time_zone)::date as as_of_date,
    time_zone,
    basis,
    all_proven_at
from moments
