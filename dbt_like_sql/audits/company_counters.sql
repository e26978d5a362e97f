-- The platform's own counters of each company equal the counts of the loaded records. Companies that
-- were read before one of their jobs or bookings changed are not compared.
{{ config(severity='warn') }}

select company_id, api_jobs_count, jobs, api_active_jobs_count, published_jobs,
    api_placements_count, confirmed_placements
from {{ ref('dim_companies') }}
where is_comparable
    and (
        api_jobs_count <> jobs
        or api_active_jobs_count <> published_jobs
        or api_placements_count <> confirmed_placements
    )
