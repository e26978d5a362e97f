{{ config(materialized='view') }}

select
    id as candidate_id, status,
    created_at, updated_at, version, valid_from, valid_to, began_after, began_before, ended_by,
    ended_after, ended_before, changed, is_fully_read, run_id
from {{ ref('stg_versions') }}
where resource = 'candidates'
