{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'content_types') }} where _deleted_at is null
)

select
    id as content_type_id,
    * exclude (id, created_at, updated_at, _record, _hydrated_at, _deleted_at, _run_id),
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
