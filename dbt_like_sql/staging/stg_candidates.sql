{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'candidates') }} where _deleted_at is null
)

select
    id as candidate_id, first_name, last_name, email, phone, mobile, address_line1,
    address_line2, city, state_province, postal_code, country, network_url, code_host_url,
    portfolio_url, date_of_birth, nationality, employment_type, employment_status,
    current_salary, expected_salary, salary_currency, current_day_rate, expected_day_rate,
    rate_currency, notice_period_days, available_from, current_job_title, current_company,
    years_of_experience, industry, skills, qualifications, cv_file_path, status, source, rating,
    preferred_locations, willing_to_relocate, right_to_work, security_clearance, languages,
    ir35_status, umbrella_company, limited_company_name, notes, internal_notes, assigned_to,
    case
        when _hydrated_at is null then 'unread'
        else coalesce(nullif(lower(trim(source)), ''), 'not stated')
    end as source_key,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
