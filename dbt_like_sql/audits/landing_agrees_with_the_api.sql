-- audit: landing_agrees_with_the_api
-- The live rows of each resource are as many as the API counted when the copy was last proven.
{{ config(severity='warn') }}

with

known_offsets as (
    select resource, sum(total_offset) as total_offset
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, health.live, health.api_total
from {{ ref('mirror_health') }} as health
left join known_offsets on known_offsets.resource = health.resource
where health.last_proven
    and health.live <> health.api_total + coalesce(known_offsets.total_offset, 0)
