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
)

-- Before the first proof there is nothing better than the clock of the last run.
select
    coalesce(newest_proven_at, last_run_at) as as_of_at,
    (coalesce(newest_proven_at, last_run_at) at time zone 'UTC')::date as as_of_date,
    case
        when newest_proven_at is not null then 'bookmarks'
        when last_run_at is not null then 'runs'
        else 'nothing'
    end as basis,
    all_proven_at
from bookmarks cross join runs
