-- model: as_of
-- grain: one row
-- The moment that the data is true of: what every model takes for "now".
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

-- The publication that is under way says in which zone the account's days are.
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

-- Before the first proof there is nothing better than the clock of the last run.
select
    as_of_at,
    (as_of_at at time zone time_zone)::date as as_of_date,
    time_zone,
    basis,
    all_proven_at
from moments
