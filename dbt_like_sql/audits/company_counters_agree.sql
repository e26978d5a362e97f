-- audit: company_counters_agree
-- The platform's own count of each company's jobs is that of the jobs landed.
{{ config(severity='warn') }}

select company_id, api_jobs_count, jobs
from {{ ref('dim_companies') }}
where api_jobs_count <> jobs
