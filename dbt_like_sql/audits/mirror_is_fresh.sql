-- audit: mirror_is_fresh
-- Every resource with rows is verified, at most three days before the newest resource.
{{ config(severity='warn') }}

select resource, current_rows, hours_behind
from {{ ref('data_freshness') }}
where current_rows > 0 and (proven_at is null or hours_behind > 72)
