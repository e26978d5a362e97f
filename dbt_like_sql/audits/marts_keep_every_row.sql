-- audit: marts_keep_every_row
-- No join of a mart drops or repeats a record, and each sum equals the sum of its parts.

with

counted as (
    select 'dim_jobs' as model,
        (select count(*) from {{ ref('dim_jobs') }}) as found,
        (select count(*) from {{ ref('stg_jobs') }}) as expected
    union all
    select 'dim_companies' as model,
        (select count(*) from {{ ref('dim_companies') }}) as found,
        (select count(*) from {{ ref('stg_known_companies') }}) as expected
    union all
    select 'fct_bookings' as model,
        (select count(*) from {{ ref('fct_bookings') }}) as found,
        (select count(*) from {{ ref('stg_bookings') }}) as expected
    union all
    select 'fct_interviews' as model,
        (select count(*) from {{ ref('fct_interviews') }}) as found,
        (select count(*) from {{ ref('stg_bookings') }} where booking_type = 'interview')
            as expected
    union all
    select 'dim_leads' as model,
        (select count(*) from {{ ref('dim_leads') }}) as found,
        (select count(*) from {{ ref('stg_leads') }}) as expected
    union all
    select 'fct_pipeline_days' as model,
        (select coalesce(sum(end_of_day_count), 0) from {{ ref('fct_pipeline_days') }}
            where day = (select max(day) from {{ ref('fct_pipeline_days') }})) as found,
        (select count(*) from {{ ref('fct_candidate_stages') }} where is_current) as expected
    union all
    select 'sum_contract_billings' as model,
        (select coalesce(sum(contracts), 0) from {{ ref('sum_contract_billings') }}) as found,
        (select count(*) from {{ ref('fct_contract_months') }}) as expected
    union all
    select 'fct_company_counters' as model,
        (select count(*) from {{ ref('fct_company_counters') }}) as found,
        (select 3 * count(*) from {{ ref('stg_companies') }}) as expected
    union all
    select 'dim_candidates' as model,
        (select count(*) from {{ ref('dim_candidates') }}) as found,
        (select count(*) from {{ ref('stg_candidates') }}) as expected
    union all
    select 'fct_pipeline_candidates' as model,
        (select count(*) from {{ ref('fct_pipeline_candidates') }}) as found,
        (select count(*) from {{ ref('stg_candidates') }}) as expected
    union all
    select 'fct_candidate_journey' as model,
        (select count(*) from {{ ref('fct_candidate_journey') }}) as found,
        (select count(*) from {{ ref('stg_candidates') }}) as expected
    union all
    select 'sum_consultant_load' as model,
        (select coalesce(sum(open_jobs), 0) from {{ ref('sum_consultant_load') }}) as found,
        (select count(*) from {{ ref('fct_pipeline_jobs') }}) as expected
    union all
    select 'sum_goal_attainment' as model,
        (select count(*) from {{ ref('sum_goal_attainment') }}) as found,
        (select count(*) from {{ ref('goals') }}
            where month is not null and measure is not null) as expected
    union all
    select 'fct_job_funnel' as model,
        (select count(*) from {{ ref('fct_job_funnel') }}) as found,
        (select count(*) from {{ ref('stg_jobs') }}) as expected
    union all
    select 'fct_placements' as model,
        (select count(*) from {{ ref('fct_placements') }}) as found,
        (select count(*) from {{ ref('stg_placements') }}) as expected
    union all
    select 'fct_time_in_stage' as model,
        (select count(*) from {{ ref('fct_time_in_stage') }}) as found,
        (select count(*) from {{ ref('fct_candidate_stages') }}) as expected
    union all
    select 'fct_time_to_fill' as model,
        (select count(*) from {{ ref('fct_time_to_fill') }}) as found,
        (select count(*) from {{ ref('fct_job_openings') }}) as expected
    union all
    select 'fct_pipeline_jobs' as model,
        (select count(*) from {{ ref('fct_pipeline_jobs') }}) as found,
        (select count(*) from {{ ref('dim_jobs') }} where is_open) as expected
    union all
    select 'fct_job_ageing' as model,
        (select count(*) from {{ ref('fct_job_ageing') }}) as found,
        (select count(*) from {{ ref('dim_jobs') }} where is_open) as expected
    union all
    select 'sum_source_effectiveness' as model,
        (select coalesce(sum(candidates), 0) from {{ ref('sum_source_effectiveness') }}) as found,
        (select count(*) from {{ ref('stg_candidates') }}) as expected
    union all
    select 'sum_time_in_stage' as model,
        (select coalesce(sum(visits), 0) from {{ ref('sum_time_in_stage') }}) as found,
        (select count(*) from {{ ref('fct_candidate_stages') }}) as expected
    union all
    select 'sum_client_fill_rate' as model,
        (select coalesce(sum(jobs), 0) from {{ ref('sum_client_fill_rate') }}) as found,
        (select count(*) from {{ ref('stg_jobs') }}) as expected
    union all
    select 'sum_job_funnel' as model,
        (select coalesce(sum(jobs), 0) from {{ ref('sum_job_funnel') }}
            where group_by = 'all') as found,
        (select count(*) from {{ ref('stg_jobs') }}) as expected
    union all
    select 'sum_lead_conversion' as model,
        (select coalesce(sum(leads), 0) from {{ ref('sum_lead_conversion') }}
            where group_by = 'all') as found,
        (select count(*) from {{ ref('fct_lead_conversion') }}) as expected
)

select model, found, expected
from counted
where found <> expected
