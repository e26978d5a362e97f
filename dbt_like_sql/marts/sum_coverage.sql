with

answers as (
    select 'placements_with_fee' as question, 'Placements whose fee is known.' as about,
        count(fee) as covered, count(*) as total
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'placements_with_currency', 'Placements whose currency is known.',
        count(currency), count(*)
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'fees_with_exchange_rate', 'Known fees in a currency of the seed exchange_rates.',
        count(reporting_fee), count(fee)
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'placements_with_offer_date', 'Placements with the day on which the offer was accepted.',
        count(offer_accepted_date), count(*)
    from {{ ref('fct_placements') }}
    where is_placement
    union all
    select 'openings_filled_with_date', 'Filled openings with a known number of days.',
        count(days_to_fill), count(*)
    from {{ ref('fct_time_to_fill') }}
    where outcome in ('filled', 'partly_filled')
    union all
    select 'jobs_with_positions', 'Jobs with a number of positions.',
        count(*) filter (where has_positions), count(*)
    from {{ ref('dim_jobs') }}
    union all
    select 'candidates_read', 'Candidates with every field read.',
        count(*) filter (where is_fully_read), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'candidates_with_source', 'Candidates with a source.',
        count(*) filter (where source not in ('not stated', 'unread')), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'candidates_with_consultant', 'Candidates with a consultant.',
        count(consultant_id), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'stage_visits_measured', 'Completed stays in a stage with a known number of days.',
        count(*) filter (where is_measured), count(*)
    from {{ ref('fct_time_in_stage') }}
    where not is_current
    union all
    select 'people_named', 'Consultants with a name in the seed people.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('dim_people') }}
    union all
    select 'sources_grouped', 'Sources with a group in the seed source_groups.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('dim_sources') }}
    where source not in ('not stated', 'unread')
    union all
    select 'lead_statuses_named', 'Leads whose status has a name in the seed lead_statuses.',
        count(*) filter (where lead_status_name <> 'unmapped'), count(*)
    from {{ ref('fct_lead_conversion') }}
    union all
    select 'conversions_with_date', 'Converted leads with a known day of conversion.',
        count(converted_at), count(*)
    from {{ ref('fct_lead_conversion') }}
    where is_converted
)

select
    question, about, covered, total,
    total - covered as missing,
    covered / nullif(total, 0) as coverage
from answers
