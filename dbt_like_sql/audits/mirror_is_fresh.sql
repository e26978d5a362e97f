-- audit: mirror_is_fresh
-- No resource with rows is proven three days less far than the newest, and none is unproven.
{{ config(severity='warn') }}

select resource, current_rows, hours_behind
from {{ ref('data_freshness') }}
where current_rows > 0 and (proven_at is null or hours_behind > 72)
