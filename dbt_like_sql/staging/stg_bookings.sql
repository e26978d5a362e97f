-- model: stg_bookings
-- grain: one row per live booking
-- Interviews, placements and other events as they stand, deletions left out.
{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'bookings') }} where _deleted_at is null
)

select
    -- columns of bookings: written by `make generate`
    id as booking_id, booking_type, title, description, candidate_id, job_id, company_id,
    lead_id, start_datetime, end_datetime, all_day, interview_type, interview_location,
    interview_panel, meeting_link, meeting_platform, meeting_id, meeting_password,
    meeting_join_url, contract_type, day_rate, contract_value, payment_terms, contract_notes,
    ir35_status, offer_accepted_date, annual_salary, placement_fee, notice_period_days,
    probation_period_months, status, contact_name, contact_email, contact_phone, location,
    requirements, internal_notes, assigned_to, timezone, cancellation_reason,
    -- end of columns of bookings
    created_at, updated_at,
    _hydrated_at is not null as is_hydrated,
    _hydrated_at as hydrated_at,
    _seen_at as seen_at,
    _run_id as run_id
from source
