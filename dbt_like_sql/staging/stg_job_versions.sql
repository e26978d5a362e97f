{{ config(materialized='view') }}

with

versions as (
    select * from {{ source('history', 'jobs') }}
    union all by name
    -- A record that was only listed has one version, which began at its creation or later.
    select
        * exclude (_deleted_at),
        1 as _version,
        created_at as _valid_from,
        _deleted_at as _valid_to,
        created_at as _began_after
    from {{ source('landing', 'jobs') }}
    where _hydrated_at is null
),

source as (
    select
        *,
        lead(_version) over record is null as is_last,
        lead(_changed[1] = '_deleted_at') over record as is_revived,
        lead(_began_after) over record as next_began_after,
        lead(_hydrated_at) over record as next_read_at
    from versions
    window record as (partition by id order by _version)
),

records as (
    select id, _hydrated_at as read_at from {{ source('landing', 'jobs') }}
)

select
    id as job_id, company_id, status, positions_available, published_at,
    coalesce(status in ('published', 'on_hold'), false) as is_open,
    coalesce(status in ('filled', 'closed', 'cancelled'), false) as is_decided,
    created_at, updated_at,
    _version as version,
    _valid_from as valid_from,
    _valid_to as valid_to,
    _began_after as began_after,
    -- Times of answers are whole seconds.
    _hydrated_at + interval 1 second as began_before,
    case
        when _valid_to is null then null when is_last or is_revived then 'deletion' else 'change'
    end as ended_by,
    -- An earlier version was last read just before its successor, the last one with the record.
    case ended_by
        when 'change' then next_began_after
        when 'deletion' then greatest(_hydrated_at, if(is_last, records.read_at, null))
    end as ended_after,
    case ended_by when 'change' then next_read_at when 'deletion' then _valid_to end
    + interval 1 second as ended_before,
    _changed as changed,
    _hydrated_at is not null as is_fully_read,
    _run_id as run_id
from source
left join records using (id)
