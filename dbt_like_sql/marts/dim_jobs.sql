with

jobs as (
    select
        *,
        coalesce(positions_available >= 1, false) as has_positions,
        -- A range may have only one end; avg ignores the missing one.
        case
            when coalesce(salary_type, 'annual') = 'annual'
                then list_avg([salary_min, salary_max])
            when salary_type = 'monthly' then 12 * list_avg([salary_min, salary_max])
        end as yearly_salary
    from {{ ref('stg_jobs') }}
)

select
    jobs.job_id,
    jobs.title as job_title,
    jobs.reference_code,
    jobs.status as job_status,
    jobs.is_open,
    jobs.is_decided,
    jobs.employment_type,
    jobs.department,
    jobs.location,
    jobs.remote_type,
    jobs.experience_level,
    jobs.company_id,
    case when jobs.company_id is null then 'no company'
        else coalesce(companies.name, 'unknown company')
    end as company_name,
    coalesce(companies.is_deleted, false) as is_company_deleted,
    jobs.assigned_to as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    case when jobs.has_positions then jobs.positions_available else 1 end as positions,
    jobs.has_positions,
    try_cast(jobs.salary_min as decimal(18, 2)) as salary_min,
    try_cast(jobs.salary_max as decimal(18, 2)) as salary_max,
    nullif(regexp_extract(upper(trim(jobs.salary_currency)), '^[A-Z]{3}$'), '') as salary_currency,
    jobs.salary_type,
    jobs.yearly_salary,
    try_cast(jobs.day_rate_min as decimal(18, 2)) as day_rate_min,
    try_cast(jobs.day_rate_max as decimal(18, 2)) as day_rate_max,
    nullif(regexp_extract(upper(trim(jobs.rate_currency)), '^[A-Z]{3}$'), '') as rate_currency,
    jobs.fee_type,
    jobs.fee_percentage,
    jobs.applied_fee_percentage,
    try_cast(jobs.placement_fee as decimal(18, 2)) as placement_fee,
    jobs.published_at,
    jobs.application_deadline,
    jobs.start_date,
    jobs.created_at,
    jobs.updated_at,
    jobs.is_fully_read
from jobs
left join {{ ref('stg_known_companies') }} as companies on companies.company_id = jobs.company_id
left join {{ ref('dim_people') }} as people on people.person_id = jobs.assigned_to
