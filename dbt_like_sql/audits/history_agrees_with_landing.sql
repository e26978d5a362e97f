-- audit: history_agrees_with_landing
-- Each live loaded record has one open version, and no other record has one.

with

landed as (
    -- each resource, landed: written by `make generate`
    select 'jobs' as resource, id, _deleted_at
    from {{ source('landing', 'jobs') }}
    union all
    select 'candidates' as resource, id, _deleted_at
    from {{ source('landing', 'candidates') }}
    union all
    select 'companies' as resource, id, _deleted_at
    from {{ source('landing', 'companies') }}
    union all
    select 'bookings' as resource, id, _deleted_at
    from {{ source('landing', 'bookings') }}
    union all
    select 'leads' as resource, id, _deleted_at
    from {{ source('landing', 'leads') }}
    union all
    select 'content_types' as resource, id, _deleted_at
    from {{ source('landing', 'content_types') }}
    union all
    select 'content_items' as resource, id, _deleted_at
    from {{ source('landing', 'content_items') }}
    -- end of each resource, landed
),

open_versions as (
    -- each resource, its open versions: written by `make generate`
    select 'jobs' as resource, id from {{ source('history', 'jobs') }}
    where _valid_to is null
    union all
    select 'candidates' as resource, id from {{ source('history', 'candidates') }}
    where _valid_to is null
    union all
    select 'companies' as resource, id from {{ source('history', 'companies') }}
    where _valid_to is null
    union all
    select 'bookings' as resource, id from {{ source('history', 'bookings') }}
    where _valid_to is null
    union all
    select 'leads' as resource, id from {{ source('history', 'leads') }}
    where _valid_to is null
    union all
    select 'content_types' as resource, id from {{ source('history', 'content_types') }}
    where _valid_to is null
    union all
    select 'content_items' as resource, id from {{ source('history', 'content_items') }}
    where _valid_to is null
    -- end of each resource, its open versions
),

live as (
    select resource, id from landed where _deleted_at is null
)

select
    coalesce(live.resource, open_versions.resource) as resource,
    coalesce(live.id, open_versions.id) as id
from live
full join open_versions
    on open_versions.resource = live.resource and open_versions.id = live.id
where live.id is null or open_versions.id is null
