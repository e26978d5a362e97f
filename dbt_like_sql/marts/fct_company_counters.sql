-- model: fct_company_counters
-- grain: one row per live company and counter of the platform
-- The platform's own counters of each client beside what is counted of what landed.

with

jobs as (
    select
        company_id,
        count(*) as jobs,
        count(*) filter (where job_status = 'published') as published_jobs
    from {{ ref('dim_jobs') }}
    group by company_id
),

placements as (
    select
        company_id,
        count(*) filter (where booking_status in ('confirmed', 'in_progress', 'completed'))
            as confirmed_placements
    from {{ ref('fct_placements') }}
    group by company_id
),

counters as (
    select
        companies.company_id, companies.name,
        'jobs_count' as counter, companies.jobs_count as platform_count,
        coalesce(jobs.jobs, 0) as our_count
    from {{ ref('stg_companies') }} as companies
    left join jobs on jobs.company_id = companies.company_id
    union all
    select
        companies.company_id, companies.name,
        'active_jobs_count', companies.active_jobs_count, coalesce(jobs.published_jobs, 0)
    from {{ ref('stg_companies') }} as companies
    left join jobs on jobs.company_id = companies.company_id
    union all
    select
        companies.company_id, companies.name,
        'placements_count', companies.placements_count,
        coalesce(placements.confirmed_placements, 0)
    from {{ ref('stg_companies') }} as companies
    left join placements on placements.company_id = companies.company_id
)

select
    company_id || ':' || counter as company_counter_id,
    company_id,
    name as company_name,
    counter,
    platform_count,
    our_count,
    platform_count - our_count as difference
from counters
