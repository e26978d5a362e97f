-- audit: staging_keeps_every_live_row
-- Each staging view has as many rows as its landing table has live rows.

with

counted as (
    -- each resource and its parts: written by `make generate`
    select 'jobs' as resource,
        (
            select count(*) from {{ source('landing', 'jobs') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_jobs') }}) as staged
    union all
    select 'candidates' as resource,
        (
            select count(*) from {{ source('landing', 'candidates') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_candidates') }}) as staged
    union all
    select 'companies' as resource,
        (
            select count(*) from {{ source('landing', 'companies') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_companies') }}) as staged
    union all
    select 'bookings' as resource,
        (
            select count(*) from {{ source('landing', 'bookings') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_bookings') }}) as staged
    union all
    select 'leads' as resource,
        (
            select count(*) from {{ source('landing', 'leads') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_leads') }}) as staged
    union all
    select 'content_types' as resource,
        (
            select count(*) from {{ source('landing', 'content_types') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_content_types') }}) as staged
    union all
    select 'content_items' as resource,
        (
            select count(*) from {{ source('landing', 'content_items') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_content_items') }}) as staged
    union all
    select 'content_type_fields' as resource,
        (
            select count(*) from {{ source('landing', 'content_type_fields') }}
            where _deleted_at is null
        ) as live,
        (select count(*) from {{ ref('stg_content_type_fields') }}) as staged
    -- end of each resource and its parts
)

select resource, live, staged
from counted
where live <> staged
