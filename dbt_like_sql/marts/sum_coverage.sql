-- model: sum_coverage
-- grain: one row per question
-- How much of what the figures rest on is there.

with

answers as (
    select 'placements_with_fee' as question, 'Placements whose fee is known.' as about,
        count(fee) as covered, count(*) as total
    from {{ ref('fct_placements') }}
    union all
    select 'placements_with_currency', 'Placements whose currency is known.',
        count(currency), count(*)
    from {{ ref('fct_placements') }}
    union all
    select 'fees_with_exchange_rate', 'Known fees that the seed exchange_rates can convert.',
        count(reporting_fee), count(fee)
    from {{ ref('fct_placements') }}
    union all
    select 'placements_with_offer_date', 'Placements that say when the offer was accepted.',
        count(offer_accepted_date), count(*)
    from {{ ref('fct_placements') }}
    union all
    select 'openings_filled_with_date', 'Filled openings whose days to fill are known.',
        count(days_to_fill), count(*)
    from {{ ref('fct_time_to_fill') }}
    where outcome = 'filled'
    union all
    select 'jobs_with_positions', 'Jobs that say how many people are to be hired.',
        count(*) filter (where has_positions), count(*)
    from {{ ref('dim_jobs') }}
    union all
    select 'candidates_read', 'Candidates that were read whole, and not only listed.',
        count(*) filter (where is_hydrated), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'candidates_with_source', 'Candidates that say how they were found.',
        count(*) filter (where source not in ('not stated', 'unread')), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'candidates_with_consultant', 'Candidates that are assigned to somebody.',
        count(consultant_id), count(*)
    from {{ ref('fct_pipeline_candidates') }}
    union all
    select 'stage_visits_measured', 'Visits to a stage that are over and whose days are known.',
        count(*) filter (where is_measured), count(*)
    from {{ ref('fct_time_in_stage') }}
    where not is_current
    union all
    select 'people_named', 'People that the seed people names.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('dim_people') }}
    union all
    select 'sources_grouped', 'Sources that the seed source_groups names.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('dim_sources') }}
    where source not in ('not stated', 'unread')
    union all
    select 'lead_statuses_named', 'Leads whose status the seed lead_statuses names.',
        count(*) filter (where lead_status_name <> 'unmapped'), count(*)
    from {{ ref('fct_lead_conversion') }}
    union all
    select 'conversions_with_date', 'Converted leads whose day of conversion is known.',
        count(converted_at), count(*)
    from {{ ref('fct_lead_conversion') }}
    where is_converted
)

select
    question, about, covered, total,
    total - covered as missing,
    covered / nullif(total, 0) as coverage
from answers
