{{ config(materialized='view') }}

with

source as (
    select * from {{ source('landing', 'jobs') }} where _deleted_at is null
)

select
    id as job_id,
    * exclude (id, created_at, updated_at, _record, _hydrated_at, _deleted_at, _run_id),
    coalesce(status in ('published', 'on_hold'), false) as is_open,
    coalesce(status in ('filled', 'closed', 'cancelled'), false) as is_decided,
    case when fee_type is distinct from 'fixed' then fee_percentage end as applied_fee_percentage,
    coalesce(positions_available >= 1, false) as has_positions,
    if(has_positions, positions_available, 1) as positions,
    nullif(regexp_extract(upper(trim(salary_currency)), '^[A-Z]{3}$'), '') as salary_code,
    nullif(regexp_extract(upper(trim(rate_currency)), '^[A-Z]{3}$'), '') as rate_code,
    -- A range may have only one end; avg ignores the missing one.
    case
        when coalesce(salary_type, 'annual') = 'annual' then list_avg([salary_min, salary_max])
        when salary_type = 'monthly' then 12 * list_avg([salary_min, salary_max])
    end as yearly_salary,
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
