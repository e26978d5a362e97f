-- No id is loaded twice or missing. Each live record that was read has one open version, and no other
-- record has one.

with

open_versions as (
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
),

records as (
    select resource, id, 1 as loaded, (is_live and hydrated_at is not null)::integer as live, 0 as open
    from {{ ref('stg_records') }}
    union all
    select resource, id, 0, 0, 1 from open_versions
)

select resource, id
from records
group by resource, id
having id is null or sum(loaded) <> 1 or sum(live) <> sum(open)
