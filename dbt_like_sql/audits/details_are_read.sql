-- audit: details_are_read
-- At most a twentieth of a resource's rows were only listed so far.
{{ config(severity='warn') }}

select resource, summary_only, current_rows
from {{ ref('data_freshness') }}
where summary_only > 0.05 * current_rows
