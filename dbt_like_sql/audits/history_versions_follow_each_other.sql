-- audit: history_versions_follow_each_other
-- Versions are numbered without a gap, and each starts when or after the earlier one ended.

with

versions as (
    -- each resource: written by `make generate`
    select 'jobs' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'jobs') }}
    union all
    select 'candidates' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'candidates') }}
    union all
    select 'companies' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'companies') }}
    union all
    select 'bookings' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'bookings') }}
    union all
    select 'leads' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'leads') }}
    union all
    select 'content_types' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'content_types') }}
    union all
    select 'content_items' as resource, id, _version, _valid_from, _valid_to
    from {{ source('history', 'content_items') }}
    -- end of each resource
),

pairs as (
    select
        *,
        lag(_version) over in_order as version_before,
        lag(_valid_to) over in_order as end_before
    from versions
    window in_order as (partition by resource, id order by _version)
)

select resource, id, _version as version
from pairs
where _version <> coalesce(version_before, 0) + 1
    or (version_before is not null and end_before is null)
    or end_before > _valid_from
