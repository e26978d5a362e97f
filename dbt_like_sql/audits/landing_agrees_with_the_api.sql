-- audit: landing_agrees_with_the_api
-- At the last verification, each resource had as many live rows as the API counted.
-- Later pushes and undos changed both numbers, so they are not included.
{{ config(severity='warn') }}

select health.resource, health.rows_last_run, health.api_total
from {{ ref('data_freshness') }} as health
inner join {{ source('sync', 'bookmarks') }} as bookmarks on bookmarks.resource = health.resource
where health.last_proven
group by health.resource, health.rows_last_run, health.api_total
having bool_and(bookmarks.is_total_exact) and health.rows_last_run <> health.api_total
