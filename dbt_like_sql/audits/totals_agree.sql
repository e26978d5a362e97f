-- The totals of each summary equal those of its facts.

with

totals as (
    select 'placements by month' as total,
        (select sum(placements) from {{ ref('sum_fee_forecast') }}) as found,
        (select count(*) from {{ ref('fct_placements') }}
            where is_placement and start_date is not null) as expected
    union all
    select 'placements by consultant',
        (select sum(placements) from {{ ref('sum_consultant_activity') }} where period = 'month'),
        (select count(*) from {{ ref('fct_placements') }}
            where is_placement and placed_on is not null)
    union all
    select 'contract months',
        (select sum(contracts) from {{ ref('sum_contract_billings') }}),
        (select count(*) from {{ ref('fct_contract_months') }})
    union all
    select 'jobs by client',
        (select sum(jobs) from {{ ref('sum_client_fill_rate') }}),
        (select count(*) from {{ ref('dim_jobs') }})
    union all
    select 'open jobs by consultant',
        (select sum(open_jobs) from {{ ref('sum_consultant_load') }}),
        (select count(*) from {{ ref('dim_jobs') }} where is_open)
    union all
    select 'candidates by source',
        (select sum(candidates) from {{ ref('sum_source_effectiveness') }}),
        (select count(*) from {{ ref('dim_candidates') }})
    union all
    select 'visits by stage',
        (select sum(visits) from {{ ref('sum_time_in_stage') }}),
        (select count(*) from {{ ref('fct_candidate_stages') }})
    union all
    select 'candidates at the end of the last day',
        (select sum(end_of_day_count) from {{ ref('fct_pipeline_days') }}
            where day = (select max(day) from {{ ref('fct_pipeline_days') }})),
        (select count(*) from {{ ref('fct_candidate_stages') }} where is_current)
    union all
    select 'leads by source',
        (select sum(leads) from {{ ref('sum_source_effectiveness') }}),
        (select count(*) from {{ ref('fct_lead_conversion') }})
)

select total, found, expected
from totals
where coalesce(found, 0) <> expected
