-- audit: details_are_read
-- At most a twentieth of a resource's rows were only listed so far.
{{ config(severity='warn') }}

select resource, listed_only, live
from {{ ref('mirror_health') }}
where listed_only > 0.05 * live
