{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'leads') }} where _deleted_at is null
)

select
    id as lead_id, email, lead_status_id, first_name, last_name, company_name, phone, mobile,
    customer_type, status, address, city, county, postcode, country, website, network_url,
    billing_address, billing_city, billing_county, billing_postcode, billing_country, industry,
    job_title, notes, source, tags, assigned_to, last_contacted_at,
    coalesce(nullif(lower(trim(source)), ''), 'not stated') as source_key,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
