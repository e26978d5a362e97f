{{ config(materialized='view') }}

select
    id as lead_id, lead_status_id, status, customer_type, source, assigned_to, last_contacted_at,
    coalesce(nullif(lower(trim(source)), ''), 'not stated') as source_key,
    converted_at,
    created_at, updated_at, version, valid_from, valid_to, began_after, began_before, ended_by,
    ended_after, ended_before, changed, is_fully_read, run_id
from {{ ref('stg_versions') }}
where resource = 'leads'
