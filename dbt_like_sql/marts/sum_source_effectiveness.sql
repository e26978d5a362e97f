with

placed as (
    select
        candidate_id,
        count(*) as placements,
        count(reporting_fee) as placements_with_reporting_fee,
        sum(reporting_fee) as reporting_fee,
        max(reporting_currency) as reporting_currency
    from {{ ref('fct_placements') }}
    where is_placement
    group by candidate_id
),

-- Placements of deleted candidates have an unknown source.
candidates as (
    select
        coalesce(candidates.source, 'unknown') as source,
        candidates.created_month,
        count(candidates.candidate_id) as candidates,
        count(*) filter (where candidates.is_active) as active_candidates,
        count(*) filter (where candidates.interviews_held + candidates.interviews_to_come > 0)
            as candidates_with_interview,
        count(*) filter (where candidates.interviews_held > 0) as candidates_interviewed,
        count(*) filter (where candidates.placements > 0) as candidates_placed,
        coalesce(sum(placed.placements), 0)::bigint as placements,
        coalesce(sum(placed.placements_with_reporting_fee), 0)::bigint
            as placements_with_reporting_fee,
        sum(placed.reporting_fee) as reporting_fee,
        max(placed.reporting_currency) as reporting_currency
    from {{ ref('fct_candidates') }} as candidates
    full join placed on placed.candidate_id = candidates.candidate_id
    group by all
),

leads as (
    select
        source,
        created_month,
        count(*) as leads,
        count(*) filter (where is_converted) as leads_converted
    from {{ ref('fct_leads') }}
    group by all
),

months as (
    select source, created_month from candidates
    union
    select source, created_month from leads
)

select
    sources.source,
    months.created_month,
    sources.source_group,
    coalesce(candidates.candidates, 0) as candidates,
    coalesce(candidates.active_candidates, 0) as active_candidates,
    coalesce(candidates.candidates_with_interview, 0) as candidates_with_interview,
    coalesce(candidates.candidates_interviewed, 0) as candidates_interviewed,
    coalesce(candidates.candidates_placed, 0) as candidates_placed,
    candidates.candidates_interviewed / nullif(candidates.candidates, 0) as interview_rate,
    candidates.candidates_placed / nullif(candidates.candidates, 0) as placement_rate,
    coalesce(candidates.placements, 0) as placements,
    coalesce(candidates.placements_with_reporting_fee, 0) as placements_with_reporting_fee,
    candidates.reporting_fee::decimal(18, 2) as reporting_fee,
    candidates.reporting_currency,
    coalesce(leads.leads, 0) as leads,
    coalesce(leads.leads_converted, 0) as leads_converted,
    leads.leads_converted / nullif(leads.leads, 0) as lead_conversion_rate
from {{ ref('dim_sources') }} as sources
left join months on months.source = sources.source
left join candidates
    on candidates.source = sources.source
    and candidates.created_month is not distinct from months.created_month
left join leads
    on leads.source = sources.source
    and leads.created_month is not distinct from months.created_month
