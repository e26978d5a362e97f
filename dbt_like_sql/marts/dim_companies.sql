with

-- A company that is not loaded, and "no company", have a row if a job or placement belongs to them.
named as (
    select company_id from {{ ref('stg_known_companies') }}
    union
    select coalesce(company_id, 'none') from {{ ref('stg_jobs') }}
    union
    select coalesce(company_id, 'none') from {{ ref('fct_placements') }}
),

jobs as (
    select
        coalesce(company_id, 'none') as company_id,
        count(*) as jobs,
        count(*) filter (where is_open) as open_jobs,
        count(*) filter (where job_status = 'published') as published_jobs,
        count(*) filter (where job_status = 'filled') as jobs_marked_filled,
        count(*) filter (where job_status = 'closed') as closed_jobs,
        count(*) filter (where job_status = 'closed' and placements > 0)
            as closed_jobs_with_placement,
        count(*) filter (where job_status = 'cancelled') as cancelled_jobs,
        count(*) filter (where is_decided) as decided_jobs,
        coalesce(sum(positions) filter (where is_decided), 0)::bigint as decided_positions,
        coalesce(sum(least(placements, positions)) filter (where is_decided), 0)::bigint
            as positions_placed
    from {{ ref('dim_jobs') }}
    where is_live
    group by all
),

placements as (
    select
        coalesce(company_id, 'none') as company_id,
        count(*) filter (where is_placement) as placements,
        sum(reporting_fee) filter (where is_placement) as reporting_fee
    from {{ ref('fct_placements') }}
    group by all
),

-- The platform counts the company of the booking, not the company of the job.
confirmed as (
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
)

select
    named.company_id,
    case when named.company_id = 'none' then 'no company'
        when companies.company_id is null then 'unknown company'
        else companies.name
    end as company_name,
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
    coalesce(jobs.published_jobs, 0) as published_jobs,
    coalesce(jobs.jobs_marked_filled, 0) as jobs_marked_filled,
    coalesce(jobs.closed_jobs, 0) as closed_jobs,
    coalesce(jobs.closed_jobs_with_placement, 0) as closed_jobs_with_placement,
    coalesce(jobs.cancelled_jobs, 0) as cancelled_jobs,
    coalesce(jobs.decided_jobs, 0) as decided_jobs,
    jobs.jobs_marked_filled / nullif(jobs.decided_jobs, 0) as marked_filled_rate,
    coalesce(jobs.decided_positions, 0) as decided_positions,
    coalesce(jobs.positions_placed, 0) as positions_placed,
    jobs.positions_placed / nullif(jobs.decided_positions, 0) as position_placed_rate,
    coalesce(placements.placements, 0) as placements,
    placements.reporting_fee::decimal(18, 2) as reporting_fee,
    coalesce(confirmed.confirmed_placements, 0) as confirmed_placements,
    companies.jobs_count as api_jobs_count,
    companies.active_jobs_count as api_active_jobs_count,
    companies.placements_count as api_placements_count,
    changes.last_changed_at,
    live.hydrated_at as company_read_at,
    coalesce(live.hydrated_at > changes.last_changed_at, live.company_id is not null)
        as is_comparable,
    coalesce(companies.is_deleted, false) as is_deleted,
    companies.created_at,
    companies.updated_at,
    coalesce(companies.is_fully_read, false) as is_fully_read
from named
left join {{ ref('stg_known_companies') }} as companies on companies.company_id = named.company_id
left join {{ ref('stg_companies') }} as live on live.company_id = named.company_id
left join {{ ref('stg_people') }} as people on people.person_id = companies.account_manager_id
left join jobs on jobs.company_id = named.company_id
left join placements on placements.company_id = named.company_id
left join confirmed on confirmed.company_id = named.company_id
left join changes on changes.company_id = named.company_id
