with

met as (
    select candidate_id, bool_or(is_held) as is_interviewed
    from {{ ref('stg_interviews') }}
    group by candidate_id
),

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

candidates as (
    select
        pipeline.source,
        date_trunc('month', pipeline.created_at at time zone as_of.time_zone)::date
            as created_month,
        count(*) as candidates,
        count(*) filter (where pipeline.is_active) as active_candidates,
        count(met.candidate_id) as candidates_with_interview,
        count(*) filter (where met.is_interviewed) as candidates_interviewed,
        count(placed.candidate_id) as candidates_placed,
        sum(placed.placements)::bigint as placements,
        sum(placed.placements_with_reporting_fee)::bigint as placements_with_reporting_fee,
        sum(placed.reporting_fee) as reporting_fee,
        max(placed.reporting_currency) as reporting_currency
    from {{ ref('fct_pipeline_candidates') }} as pipeline
    cross join {{ ref('as_of') }} as as_of
    left join met on met.candidate_id = pipeline.candidate_id
    left join placed on placed.candidate_id = pipeline.candidate_id
    group by all
),

leads as (
    select
        source,
        created_month,
        count(*) as leads,
        count(*) filter (where is_converted) as leads_converted
    from {{ ref('fct_lead_conversion') }}
    group by source, created_month
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
    coalesce(candidates.reporting_fee, 0)::decimal(18, 2) as reporting_fee,
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
