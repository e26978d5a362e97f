{{ config(materialized='view') }}

with

read_versions as (
    select 'jobs' as resource, * from {{ source('history', 'jobs') }}
    union all by name
    select 'candidates' as resource, * from {{ source('history', 'candidates') }}
    union all by name
    select 'bookings' as resource, * from {{ source('history', 'bookings') }}
    union all by name
    -- The API does not document the fields that a conversion adds, so they come from the response.
    select
        'leads' as resource, *,
        try_cast(json_extract_string(_record, '$.converted_at') as timestamptz) as converted_at
    from {{ source('history', 'leads') }}
),

-- Not materialized, so that only the selected columns are read.
records as not materialized (
    select 'jobs' as resource, * from {{ source('landing', 'jobs') }}
    union all by name
    select 'candidates' as resource, * from {{ source('landing', 'candidates') }}
    union all by name
    select 'bookings' as resource, * from {{ source('landing', 'bookings') }}
    union all by name
    select
        'leads' as resource, *,
        try_cast(json_extract_string(_record, '$.converted_at') as timestamptz) as converted_at
    from {{ source('landing', 'leads') }}
),

versions as (
    select * from read_versions
    union all by name
    -- A record that was only listed has one version, which began at its creation or later.
    select
        * exclude (_deleted_at),
        1 as _version,
        created_at as _valid_from,
        _deleted_at as _valid_to,
        created_at as _began_after
    from records
    where _hydrated_at is null
),

ordered as (
    select
        *,
        lead(_version) over record is null as is_last,
        lead(_changed[1] = '_deleted_at') over record as is_revived,
        lead(_began_after) over record as next_began_after,
        lead(_hydrated_at) over record as next_read_at
    from versions
    window record as (partition by resource, id order by _version)
)

select
    ordered.resource, ordered.id, ordered.status,
    -- Fields of some resources; null for the others.
    ordered.company_id, ordered.job_id, ordered.positions_available, ordered.published_at,
    ordered.booking_type, ordered.start_datetime, ordered.end_datetime, ordered.all_day,
    ordered.lead_status_id, ordered.customer_type, ordered.source, ordered.assigned_to,
    ordered.last_contacted_at,
    ordered.converted_at, ordered.created_at, ordered.updated_at,
    ordered._version as version,
    ordered._valid_from as valid_from,
    ordered._valid_to as valid_to,
    ordered._began_after as began_after,
    -- Times of answers are whole seconds.
    ordered._hydrated_at + interval 1 second as began_before,
    case
        when valid_to is null then null when is_last or is_revived then 'deletion' else 'change'
    end as ended_by,
    -- An earlier version was last read just before its successor, the last one with the record.
    case ended_by
        when 'change' then next_began_after
        when 'deletion' then greatest(ordered._hydrated_at, if(is_last, records._hydrated_at, null))
    end as ended_after,
    case ended_by when 'change' then next_read_at when 'deletion' then valid_to end
    + interval 1 second as ended_before,
    ordered._changed as changed,
    ordered._hydrated_at is not null as is_fully_read,
    ordered._run_id as run_id
from ordered
left join records on records.resource = ordered.resource and records.id = ordered.id
