with

counted as (
    select
        resource,
        count(*) filter (where is_live) as current_rows,
        count(hydrated_at) filter (where is_live) as fully_read,
        count(*) filter (where not is_live) as deleted,
        min(hydrated_at) filter (where is_live) as oldest_read_at
    from {{ ref('stg_records') }}
    group by resource
),

resources as (
    select 'jobs' as resource
    union all
    select 'candidates' as resource
    union all
    select 'companies' as resource
    union all
    select 'bookings' as resource
    union all
    select 'leads' as resource
    union all
    select 'content_types' as resource
    union all
    select 'content_items' as resource
),

queued as (
    select resource, count(*) as pending from {{ source('sync', 'queue') }} group by resource
),

-- A resource is verified up to the earliest time of its streams, if all were loaded.
proven as (
    select resource, case when bool_and(proven_at is not null) then min(proven_at) end as proven_at
    from {{ source('sync', 'bookmarks') }}
    group by resource
),

visits as (
    select done.*, runs.started_at,
        row_number() over (
            partition by done.resource order by runs.started_at desc, runs.run_id desc
        ) as place
    from {{ source('sync', 'run_resources') }} as done
    join {{ source('sync', 'runs') }} as runs on runs.run_id = done.run_id
    where done.outcome <> 'not_started'
),

answers as (
    select 'placements_with_fee' as check_name, 'Placements whose fee is known.' as about,
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
    from {{ ref('fct_job_openings') }}
    where opening_outcome in ('filled', 'partly_filled')
    union all
    select 'jobs_with_positions', 'Jobs with a number of positions.',
        count(*) filter (where has_positions), count(*)
    from {{ ref('dim_jobs') }}
    where is_live
    union all
    select 'candidates_with_source', 'Candidates with a source.',
        count(*) filter (where source not in ('not stated', 'unread')), count(*)
    from {{ ref('fct_candidates') }}
    union all
    select 'candidates_with_consultant', 'Candidates with a consultant.',
        count(consultant_id), count(*)
    from {{ ref('fct_candidates') }}
    union all
    select 'stage_visits_measured', 'Completed stays in a stage with a known number of days.',
        count(*) filter (where is_measured), count(*)
    from {{ ref('fct_candidate_stages') }}
    where not is_current
    union all
    select 'people_named', 'Consultants with a name in the seed people.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('stg_people') }}
    union all
    select 'sources_grouped', 'Sources with a group in the seed source_groups.',
        count(*) filter (where is_mapped), count(*)
    from {{ ref('dim_sources') }}
    where source not in ('not stated', 'unread', 'unknown')
    union all
    select 'lead_statuses_named', 'Leads whose status has a name in the seed lead_statuses.',
        count(*) filter (where lead_status_name <> 'unmapped'), count(*)
    from {{ ref('fct_leads') }}
    union all
    select 'conversions_with_date', 'Converted leads with a known day of conversion.',
        count(converted_at), count(*)
    from {{ ref('fct_leads') }}
    where is_converted
    union all
    select resources.resource, 'Records with every field read.',
        coalesce(counted.fully_read, 0), coalesce(counted.current_rows, 0)
    from resources
    left join counted on counted.resource = resources.resource
)

select
    answers.check_name,
    answers.about,
    resources.resource,
    answers.covered,
    answers.total,
    answers.total - answers.covered as missing,
    answers.covered / nullif(answers.total, 0) as coverage,
    case when resources.resource is not null then coalesce(counted.deleted, 0) end as deleted,
    case when resources.resource is not null then coalesce(queued.pending, 0) end as pending,
    proven.proven_at,
    round((epoch(as_of.as_of_at) - epoch(proven.proven_at)) / 3600, 2) as hours_behind,
    visits.started_at as last_run_at,
    visits.outcome as last_outcome,
    visits.proven as last_proven,
    visits.message as last_message,
    visits.total as api_total,
    visits.live as rows_last_run,
    counted.oldest_read_at
from answers
cross join {{ ref('as_of') }} as as_of
left join resources on resources.resource = answers.check_name
left join counted on counted.resource = answers.check_name
left join queued on queued.resource = answers.check_name
left join proven on proven.resource = answers.check_name
left join visits on visits.resource = answers.check_name and visits.place = 1
