{{ config(materialized='view') }}

with

source as (
    select * from {{ source('history', 'candidates') }}
)

select
    id as candidate_id, status,
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
