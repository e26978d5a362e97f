-- audit: landing_agrees_with_the_api
-- When the copy was last verified, each resource had as many live rows as the API counted.
-- Pushes and undos since then have changed both, so they do not count.
{{ config(severity='warn') }}

with

known_offsets as (
    select resource, sum(total_offset) as total_offset
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, health.rows_last_run, health.api_total
from {{ ref('data_freshness') }} as health
left join known_offsets on known_offsets.resource = health.resource
where health.last_proven
    and health.rows_last_run <> health.api_total + coalesce(known_offsets.total_offset, 0)
