-- audit: mirror_is_fresh
-- No resource with rows is proven three days less far than the newest, and none is unproven.
{{ config(severity='warn') }}

select resource, live, hours_behind
from {{ ref('mirror_health') }}
where live > 0 and (proven_at is null or hours_behind > 72)
