-- audit: details_are_read
-- At least 95 % of the rows of each resource are fully read.
{{ config(severity='warn') }}

select resource, summary_only, current_rows
from {{ ref('data_freshness') }}
where summary_only > 0.05 * current_rows
