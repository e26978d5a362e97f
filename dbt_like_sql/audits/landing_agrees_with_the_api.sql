-- audit: landing_agrees_with_the_api
-- Each resource has as many current rows as the API counted when the copy was last proven.
{{ config(severity='warn') }}

with

known_offsets as (
    select resource, sum(total_offset) as total_offset
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, health.current_rows, health.api_total
from {{ ref('data_freshness') }} as health
left join known_offsets on known_offsets.resource = health.resource
where health.last_proven
    and health.current_rows <> health.api_total + coalesce(known_offsets.total_offset, 0)
