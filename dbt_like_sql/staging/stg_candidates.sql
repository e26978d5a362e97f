{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'candidates') }} where _deleted_at is null
)

select
    id as candidate_id,
    * exclude (id, created_at, updated_at, _record, _hydrated_at, _deleted_at, _run_id),
    case
        when _hydrated_at is null then 'unread'
        else coalesce(nullif(lower(trim(source)), ''), 'not stated')
    end as source_key,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
