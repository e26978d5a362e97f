with

jobs as (
    select
        company_id,
        count(*) as jobs,
        count(*) filter (where job_status = 'published') as published_jobs
    from {{ ref('dim_jobs') }}
    group by company_id
),

-- The platform counts the company of the booking, not the company of the job.
placements as (
    select company_id, count(*) as confirmed_placements
    from {{ ref('stg_placements') }}
    where is_confirmed
    group by company_id
),

versions as (
    select company_id, valid_from, valid_to, ended_before, ended_by
    from {{ ref('stg_job_versions') }}
    union all
    select company_id, valid_from, valid_to, ended_before, ended_by
    from {{ ref('stg_booking_versions') }}
),

-- The last change of a job or booking of the company was made before this time.
changes as (
    select
        company_id,
        max(greatest(valid_from, if(ended_by = 'deletion', ended_before, valid_to)))
            as last_changed_at
    from versions
    where company_id is not null
    group by company_id
),

counters as (
    select
        companies.company_id, companies.name, companies.hydrated_at, names.counter,
        case names.counter
            when 'jobs_count' then companies.jobs_count
            when 'active_jobs_count' then companies.active_jobs_count
            else companies.placements_count
        end as platform_count,
        case names.counter
            when 'jobs_count' then coalesce(jobs.jobs, 0)
            when 'active_jobs_count' then coalesce(jobs.published_jobs, 0)
            else coalesce(placements.confirmed_placements, 0)
        end as our_count
    from {{ ref('stg_companies') }} as companies
    cross join (values ('jobs_count'), ('active_jobs_count'), ('placements_count'))
        as names (counter)
    left join jobs on jobs.company_id = companies.company_id
    left join placements on placements.company_id = companies.company_id
)

select
    counters.company_id || ':' || counters.counter as company_counter_id,
    counters.company_id,
    counters.name as company_name,
    counters.counter,
    counters.platform_count,
    counters.our_count,
    counters.hydrated_at as company_read_at,
    changes.last_changed_at,
    coalesce(
        counters.platform_count is not null
        and (changes.last_changed_at is null or counters.hydrated_at > changes.last_changed_at),
        false
    ) as is_comparable,
    case when is_comparable then counters.platform_count - counters.our_count end as difference
from counters
left join changes on changes.company_id = counters.company_id
