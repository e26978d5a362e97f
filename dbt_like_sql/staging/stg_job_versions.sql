{{ config(materialized='view') }}

with

source as (
    select
        *,
        lead(_version) over record is null as is_last,
        lead(_changed[1] = '_deleted_at') over record as is_revived,
        lead(_began_after) over record as next_began_after,
        lead(_hydrated_at) over record as next_read_at
    from {{ source('history', 'jobs') }}
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
    _hydrated_at as began_before,
    case
        when _valid_to is null then null when is_last or is_revived then 'deletion' else 'change'
    end as ended_by,
    -- An earlier version was last read just before its successor, the last one with the record.
    case ended_by
        when 'change' then next_began_after
        when 'deletion' then greatest(_hydrated_at, if(is_last, records.read_at, null))
    end as ended_after,
    case ended_by when 'change' then next_read_at when 'deletion' then _valid_to end
        as ended_before,
    _changed as changed,
    _run_id as run_id
from source
left join records using (id)
