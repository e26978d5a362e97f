{{ config(materialized='view') }}

with

landed as (
    select 'jobs' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'jobs') }}
    union all
    select 'candidates' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'candidates') }}
    union all
    select 'companies' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'companies') }}
    union all
    select 'bookings' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'bookings') }}
    union all
    select 'leads' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'leads') }}
    union all
    select 'content_types' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'content_types') }}
    union all
    select 'content_items' as resource, id, _hydrated_at, _deleted_at
    from {{ source('landing', 'content_items') }}
)

select
    resource,
    id,
    _deleted_at is null as is_live,
    _hydrated_at as hydrated_at
from landed
