-- audit: landing_has_one_row_per_id
-- No id is loaded twice, and no row lacks an id.

with

landed as (
    -- each resource: written by `make generate`
    select 'jobs' as resource, id from {{ source('landing', 'jobs') }}
    union all
    select 'candidates' as resource, id from {{ source('landing', 'candidates') }}
    union all
    select 'companies' as resource, id from {{ source('landing', 'companies') }}
    union all
    select 'bookings' as resource, id from {{ source('landing', 'bookings') }}
    union all
    select 'leads' as resource, id from {{ source('landing', 'leads') }}
    union all
    select 'content_types' as resource, id from {{ source('landing', 'content_types') }}
    union all
    select 'content_items' as resource, id from {{ source('landing', 'content_items') }}
    -- end of each resource
)

select resource, id, count(*) as rows
from landed
group by resource, id
having count(*) > 1 or id is null
