{{ config(materialized='view') }}

with

source as (
    select * from {{ source('history', 'leads') }}
)

-- The API does not document the fields that a conversion adds, so they come from the response.
select
    id as lead_id, lead_status_id, status, customer_type, source, assigned_to, last_contacted_at,
    coalesce(nullif(lower(trim(source)), ''), 'not stated') as source_key,
    try_cast(json_extract_string(_record, '$.converted_at') as timestamptz) as converted_at,
    created_at, updated_at,
    _version as version,
    _valid_from as valid_from,
    _valid_to as valid_to,
    _observed_from as observed_from,
    _observed_to as observed_to,
    _began_after as began_after,
    _began_before as began_before,
    _ended_after as ended_after,
    _ended_before as ended_before,
    _ended_by as ended_by,
    _hydrated_at is not null as is_fully_read,
    _run_id as run_id
from source
