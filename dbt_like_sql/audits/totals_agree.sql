-- A total is the same in each mart that shows it.

with

shown as (
    select 'placements' as total, 'fct_placements' as mart, count(*)::decimal(38, 2) as value
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'placements', 'fct_bookings', count(*)
    from {{ ref('fct_bookings') }}
    where counts_as = 'placement'
    union all
    select 'placements', 'dim_jobs', sum(placements) from {{ ref('dim_jobs') }}
    union all
    select 'placements', 'dim_companies', sum(placements) from {{ ref('dim_companies') }}
    union all
    select 'placements', 'sum_months', sum(placements_started) from {{ ref('sum_months') }}
    union all
    select 'placements', 'sum_source_effectiveness', sum(placements)
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'placements', 'sum_consultant_activity: ' || period, sum(placements)
    from {{ ref('sum_consultant_activity') }}
    group by period
    union all
    select 'fees', 'fct_placements', sum(reporting_fee)
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'fees', 'dim_companies', sum(reporting_fee) from {{ ref('dim_companies') }}
    union all
    select 'fees', 'sum_months', sum(reporting_fee) from {{ ref('sum_months') }}
    union all
    select 'fees', 'sum_source_effectiveness', sum(reporting_fee)
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'fees', 'sum_consultant_activity: ' || period, sum(reporting_fee)
    from {{ ref('sum_consultant_activity') }}
    group by period
    union all
    select 'interviews held', 'fct_bookings', count(*)
    from {{ ref('fct_bookings') }}
    where counts_as = 'interview_held'
    union all
    select 'interviews held', 'dim_jobs', sum(interviews_held) from {{ ref('dim_jobs') }}
    union all
    select 'interviews held', 'sum_consultant_activity: ' || period, sum(interviews_held)
    from {{ ref('sum_consultant_activity') }}
    group by period
    union all
    select 'interviews to come', 'dim_jobs', sum(interviews_to_come) from {{ ref('dim_jobs') }}
    union all
    select 'interviews to come', 'dim_people', sum(interviews_to_come) from {{ ref('dim_people') }}
    union all
    select 'running contracts', 'fct_contracts', count(*)
    from {{ ref('fct_contracts') }}
    where contract_state = 'running'
    union all
    select 'running contracts', 'dim_people', sum(running_contracts) from {{ ref('dim_people') }}
    union all
    select 'contract months', 'fct_contract_months', count(*) from {{ ref('fct_contract_months') }}
    union all
    select 'contract months', 'sum_months', sum(contracts) from {{ ref('sum_months') }}
    union all
    select 'jobs', 'dim_jobs', count(*) from {{ ref('dim_jobs') }} where is_live
    union all
    select 'jobs', 'dim_companies', sum(jobs) from {{ ref('dim_companies') }}
    union all
    select 'jobs', 'dim_people', sum(jobs) from {{ ref('dim_people') }}
    union all
    select 'open jobs', 'dim_jobs', count(*) from {{ ref('dim_jobs') }} where is_open
    union all
    select 'open jobs', 'dim_companies', sum(open_jobs) from {{ ref('dim_companies') }}
    union all
    select 'open jobs', 'dim_people', sum(open_jobs) from {{ ref('dim_people') }}
    union all
    select 'candidates', 'dim_candidates', count(*) from {{ ref('dim_candidates') }}
    union all
    select 'candidates', 'fct_candidates', count(*) from {{ ref('fct_candidates') }}
    union all
    select 'candidates', 'dim_people', sum(candidates) from {{ ref('dim_people') }}
    union all
    select 'candidates', 'dim_sources', sum(candidates) from {{ ref('dim_sources') }}
    union all
    select 'candidates', 'sum_source_effectiveness', sum(candidates)
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'active candidates', 'fct_candidates', count(*)
    from {{ ref('fct_candidates') }}
    where is_active
    union all
    select 'active candidates', 'dim_people', sum(active_candidates) from {{ ref('dim_people') }}
    union all
    select 'leads', 'fct_leads', count(*) from {{ ref('fct_leads') }}
    union all
    select 'leads', 'sum_source_effectiveness', sum(leads)
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'live leads', 'fct_leads', count(*) from {{ ref('fct_leads') }} where not is_deleted
    union all
    select 'live leads', 'dim_people', sum(leads) from {{ ref('dim_people') }}
    union all
    select 'live leads', 'dim_sources', sum(leads) from {{ ref('dim_sources') }}
    union all
    select 'visits', 'fct_candidate_stages', count(*) from {{ ref('fct_candidate_stages') }}
    union all
    select 'visits', 'sum_time_in_stage', sum(visits) from {{ ref('sum_time_in_stage') }}
    union all
    select 'current visits', 'fct_candidate_stages', count(*)
    from {{ ref('fct_candidate_stages') }}
    where is_current
    union all
    select 'current visits', 'fct_pipeline_days', sum(end_of_day_count)
    from {{ ref('fct_pipeline_days') }}
    where day = (select max(day) from {{ ref('fct_pipeline_days') }})
)

select total, list(mart || ': ' || coalesce(value, 0) order by mart) as found
from shown
group by total
having min(coalesce(value, 0)) <> max(coalesce(value, 0))
