{{ config(materialized='view') }}

select
    id as booking_id, booking_type, job_id, company_id, status, start_datetime, end_datetime,
    all_day,
    coalesce(status in ('scheduled', 'confirmed', 'in_progress', 'completed'), false) as stands,
    created_at, updated_at, version, valid_from, valid_to, began_after, began_before, ended_by,
    ended_after, ended_before, changed, is_fully_read, run_id
from {{ ref('stg_versions') }}
where resource = 'bookings'
