{{ config(materialized='view') }}

select
    id as company_id, name, industry, company_size, status, account_manager_id, fee_type,
    fee_percentage, contract_start_date, contract_end_date, jobs_count, active_jobs_count,
    placements_count,
    case when coalesce(fee_type, 'percentage') = 'percentage' then fee_percentage end
        as applied_fee_percentage,
    _deleted_at is not null as is_deleted,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read
from {{ source('landing', 'companies') }}
