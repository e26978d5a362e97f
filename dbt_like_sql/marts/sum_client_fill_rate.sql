with

jobs as (
    select
        *,
        least(placements, positions) as positions_placed
    from {{ ref('fct_job_funnel') }}
),

counted as (
    select
        company_id,
        count(*) as jobs,
        count(*) filter (where job_status = 'draft') as draft_jobs,
        count(*) filter (where is_open) as open_jobs,
        count(*) filter (where job_status = 'filled') as jobs_marked_filled,
        count(*) filter (where job_status = 'closed') as closed_jobs,
        count(*) filter (where job_status = 'closed' and placements > 0)
            as closed_jobs_with_placement,
        count(*) filter (where job_status = 'cancelled') as cancelled_jobs,
        count(*) filter (where is_decided) as decided_jobs,
        coalesce(sum(positions) filter (where is_decided), 0)::bigint as decided_positions,
        coalesce(sum(positions_placed) filter (where is_decided), 0)::bigint as positions_placed,
        sum(placements)::bigint as placements
    from jobs
    group by company_id
)

select
    coalesce(counted.company_id, 'none') as company_key,
    counted.company_id,
    case when counted.company_id is null then 'no company'
        else coalesce(companies.company_name, 'unknown company')
    end as company_name,
    coalesce(companies.is_deleted, false) as is_company_deleted,
    companies.industry,
    companies.account_manager_name,
    counted.jobs,
    counted.draft_jobs,
    counted.open_jobs,
    counted.jobs_marked_filled,
    counted.closed_jobs,
    counted.closed_jobs_with_placement,
    counted.cancelled_jobs,
    counted.decided_jobs,
    counted.jobs_marked_filled / nullif(counted.decided_jobs, 0) as marked_filled_rate,
    counted.decided_positions,
    counted.positions_placed,
    counted.positions_placed / nullif(counted.decided_positions, 0) as position_placed_rate,
    counted.placements,
    companies.api_jobs_count - counted.jobs as jobs_missing
from counted
left join {{ ref('dim_companies') }} as companies on companies.company_id = counted.company_id
