{{ config(materialized='view') }}

select
    id as job_id, company_id, status, positions_available, published_at,
    coalesce(status in ('published', 'on_hold'), false) as is_open,
    coalesce(status in ('filled', 'closed', 'cancelled'), false) as is_decided,
    created_at, updated_at, version, valid_from, valid_to, began_after, began_before, ended_by,
    ended_after, ended_before, changed, is_fully_read, run_id
from {{ ref('stg_versions') }}
where resource = 'jobs'
