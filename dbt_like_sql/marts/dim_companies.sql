with

jobs as (
    select company_id, count(*) as jobs, count(*) filter (where is_open) as open_jobs
    from {{ ref('dim_jobs') }}
    group by company_id
),

placements as (
    select company_id, count(*) as placements
    from {{ ref('fct_placements') }}
    where is_placement
    group by company_id
)

select
    companies.company_id,
    companies.name as company_name,
    companies.industry,
    companies.company_size,
    companies.status as company_status,
    companies.account_manager_id,
    coalesce(people.person_name, 'unassigned') as account_manager_name,
    companies.fee_type,
    companies.fee_percentage,
    companies.contract_start_date,
    companies.contract_end_date,
    coalesce(jobs.jobs, 0) as jobs,
    coalesce(jobs.open_jobs, 0) as open_jobs,
    coalesce(placements.placements, 0) as placements,
    companies.jobs_count as api_jobs_count,
    companies.is_deleted,
    companies.created_at,
    companies.updated_at,
    companies.is_fully_read
from {{ ref('stg_known_companies') }} as companies
left join {{ ref('dim_people') }} as people on people.person_id = companies.account_manager_id
left join jobs on jobs.company_id = companies.company_id
left join placements on placements.company_id = companies.company_id
