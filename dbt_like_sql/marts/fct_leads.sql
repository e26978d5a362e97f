with

versions as (
    select
        versions.*,
        min(versions.began_before) over () - interval 1 second as mirror_began_at,
        versions.status = 'active' or coalesce(statuses.outcome = 'won', false) as is_won
    from {{ ref('stg_lead_versions') }} as versions
    left join {{ ref('lead_statuses') }} as statuses on statuses.id = versions.lead_status_id
),

-- The first version that is won dates the conversion, unless the lead was won before the first
-- pull.
leads as (
    select
        lead_id,
        arg_max(created_at, version) as created_at,
        arg_max_null(status, version) as lead_state,
        arg_max(source_key, version) as source_key,
        arg_max_null(ended_by, version) is not distinct from 'deletion' as is_deleted,
        arg_max_null(lead_status_id, version) as lead_status_id,
        arg_max_null(customer_type, version) as customer_type,
        arg_max_null(assigned_to, version) as assigned_to,
        arg_max_null(last_contacted_at, version) as last_contacted_at,
        min(converted_at) as stated_at,
        min(version) filter (where is_won) as won_version,
        min(valid_from) filter (where is_won) as won_at,
        min(began_after) filter (where is_won) as won_after,
        min(began_before) filter (where is_won) as won_before,
        won_version > 1 or coalesce(min(created_at) >= min(mirror_began_at), false) as is_won_observed
    from versions
    group by lead_id
),

pushed as (
    select record_id as lead_id, min(moved_at) as pushed_at
    from {{ source('push', 'rows') }}
    where operation = 'convert' and outcome = 'converted'
    group by record_id
),

consultations as (
    select lead_id, count(*) as consultations
    from {{ ref('stg_bookings') }}
    where booking_type = 'consultation' and meeting_state is not null
    group by lead_id
),

judged as (
    select
        leads.*,
        statuses.name as lead_status_name,
        coalesce(statuses.outcome = 'lost', false) as is_lost,
        case
            when pushed.lead_id is not null then 'pushed'
            when leads.stated_at is not null or leads.lead_state = 'active' then 'record'
            when statuses.outcome = 'won' then 'status'
        end as evidence,
        case when evidence is not null then coalesce(leads.stated_at, pushed.pushed_at) end
            as known_at,
        evidence is not null and known_at is null and is_won_observed as is_dated_by_history
    from leads
    left join pushed on pushed.lead_id = leads.lead_id
    left join {{ ref('lead_statuses') }} as statuses on statuses.id = leads.lead_status_id
)

select
    judged.lead_id,
    case when live.lead_id is not null
        then trim(concat_ws(' ', live.first_name, live.last_name))
    end as full_name,
    live.company_name as lead_company_name,
    live.email,
    live.phone,
    live.city,
    live.country,
    live.industry,
    live.job_title as lead_job_title,
    judged.lead_state,
    judged.lead_status_id,
    coalesce(judged.lead_status_name, 'unmapped') as lead_status_name,
    judged.customer_type,
    judged.source_key as source,
    coalesce(sources.source_group, 'unmapped') as source_group,
    judged.assigned_to as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    judged.created_at,
    date_trunc('month', judged.created_at at time zone as_of.time_zone)::date as created_month,
    judged.last_contacted_at,
    coalesce(consultations.consultations, 0) as consultations,
    judged.evidence is not null as is_converted,
    judged.evidence,
    if(is_dated_by_history, judged.won_after, known_at) as converted_after,
    if(is_dated_by_history, judged.won_at, known_at) as converted_at,
    if(is_dated_by_history, judged.won_before, known_at) as converted_before,
    round((epoch(converted_at) - epoch(judged.created_at)) / 86400, 2) as days_to_convert,
    judged.is_lost,
    judged.is_deleted,
    live.updated_at,
    coalesce(live.is_fully_read, false) as is_fully_read
from judged
cross join {{ ref('as_of') }} as as_of
left join {{ ref('stg_leads') }} as live on live.lead_id = judged.lead_id
left join consultations on consultations.lead_id = judged.lead_id
left join {{ ref('dim_sources') }} as sources on sources.source = judged.source_key
left join {{ ref('stg_people') }} as people on people.person_id = judged.assigned_to
