-- Every resource with rows is verified, at most three days before the newest one. At least 95 % of
-- its rows are fully read. At the last verification it had as many live rows as the API counted.
{{ config(severity='warn') }}

with

totals as (
    select resource, bool_and(is_total_exact) as is_total_exact
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, hours_behind, missing, total, rows_last_run, api_total
from {{ ref('data_quality') }} as health
left join totals on totals.resource = health.resource
where health.resource is not null and (
    (total > 0 and (proven_at is null or hours_behind > 72))
    or missing > 0.05 * total
    -- Later pushes and undos changed both numbers, so they are not included.
    or (last_proven and totals.is_total_exact and rows_last_run <> api_total)
)
