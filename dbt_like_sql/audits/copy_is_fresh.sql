-- Every resource with rows is verified, at most three days before the newest one. At least 95 % of
-- its rows are fully read. At the last verification it had as many live rows as the API counted.
{{ config(severity='warn') }}

with

totals as (
    select resource, bool_and(is_total_exact) as is_total_exact
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, hours_behind, summary_only, current_rows, rows_last_run, api_total
from {{ ref('data_freshness') }} as health
left join totals on totals.resource = health.resource
where (current_rows > 0 and (proven_at is null or hours_behind > 72))
    or summary_only > 0.05 * current_rows
    -- Later pushes and undos changed both numbers, so they are not included.
    or (last_proven and totals.is_total_exact and rows_last_run <> api_total)
