{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'companies') }} where _deleted_at is null
)

select
    id as company_id, name, email, legal_name, trading_name, company_number, phone, website,
    industry, description, company_size, founded_year, primary_contact_name,
    primary_contact_email, primary_contact_phone, primary_contact_title, status, billing_email,
    payment_terms, contract_start_date, contract_end_date, fee_percentage, fee_type,
    network_url, social_url, internal_notes, tags, account_manager_id, jobs_count,
    active_jobs_count, placements_count,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
