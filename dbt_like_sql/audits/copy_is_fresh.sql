-- audit: copy_is_fresh
-- Every resource with rows is verified, at most three days before the newest one. At least 95 % of
-- its rows are fully read. At the last verification it had as many live rows as the API counted.
{{ config(severity='warn') }}

with

known_offsets as (
    select resource, coalesce(sum(total_offset), 0) as total_offset
    from {{ source('sync', 'bookmarks') }}
    group by resource
)

select health.resource, hours_behind, summary_only, current_rows, rows_last_run, api_total
from {{ ref('data_freshness') }} as health
left join known_offsets on known_offsets.resource = health.resource
where (current_rows > 0 and (proven_at is null or hours_behind > 72))
    or summary_only > 0.05 * current_rows
    -- Later pushes and undos changed both numbers, so they are not included.
    or (last_proven and rows_last_run <> api_total + coalesce(total_offset, 0))
