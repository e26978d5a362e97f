-- audit: history_moments_are_in_order
-- The times of each version are in the right order.

with

versions as (
    -- each resource: written by `make generate`
    select
        'jobs' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'jobs') }}
    union all
    select
        'candidates' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'candidates') }}
    union all
    select
        'companies' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'companies') }}
    union all
    select
        'bookings' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'bookings') }}
    union all
    select
        'leads' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'leads') }}
    union all
    select
        'content_types' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'content_types') }}
    union all
    select
        'content_items' as resource, id, _version, _began_after, _valid_from, _began_before,
        _observed_from, _observed_to, _ended_after, _valid_to, _ended_before
    from {{ source('history', 'content_items') }}
    -- end of each resource
)

select resource, id, _version as version
from versions
where _began_after > _valid_from
    or _valid_from > _began_before
    or _observed_from > _observed_to
    or _observed_to > _ended_before
    or _ended_after > _valid_to
    or _valid_to > _ended_before
    or (_valid_to is null) <> (_ended_before is null)
