-- model: fct_lead_conversion
-- grain: one row per lead ever seen, deleted ones included
-- Leads with what is known of their conversion.

with

leads as (
    select
        lead_id,
        max(version) as last_version,
        max(version) filter (where is_fully_read) as whole_version,
        min(converted_at) as converted_at
    from {{ ref('stg_lead_versions') }}
    group by lead_id
),

last_versions as (
    select
        versions.lead_id, versions.created_at, versions.status, versions.source_key,
        whole.lead_status_id, whole.customer_type, whole.assigned_to, whole.last_contacted_at,
        leads.converted_at,
        coalesce(versions.ended_by = 'deletion', false) as is_deleted
    from {{ ref('stg_lead_versions') }} as versions
    join leads
        on leads.lead_id = versions.lead_id and leads.last_version = versions.version
    -- Fields that lists do not contain come from the last detail.
    left join {{ ref('stg_lead_versions') }} as whole
        on whole.lead_id = leads.lead_id and whole.version = leads.whole_version
),

pushed as (
    select
        rows.record_id as lead_id,
        min(coalesce(attempts.ended_at, rows.moved_at)) as pushed_at
    from {{ source('push', 'rows') }} as rows
    left join {{ source('push', 'attempts') }} as attempts
        on attempts.batch = rows.batch and attempts.number = rows.number
        and attempts.fate = 'accepted'
    where rows.operation = 'convert' and rows.outcome = 'converted'
    group by rows.record_id
),

consultations as (
    select lead_id, count(*) as consultations
    from {{ ref('stg_bookings') }}
    where booking_type = 'consultation' and meeting_state is not null
    group by lead_id
),

judged as (
    select
        last_versions.*,
        statuses.name as lead_status_name,
        coalesce(statuses.outcome = 'lost', false) as is_lost,
        coalesce(last_versions.converted_at, pushed.pushed_at) as known_at,
        case
            when pushed.lead_id is not null then 'pushed'
            when last_versions.converted_at is not null or last_versions.status = 'active'
                then 'record'
            when statuses.outcome = 'won' then 'status'
        end as evidence
    from last_versions
    left join pushed on pushed.lead_id = last_versions.lead_id
    left join {{ ref('lead_statuses') }} as statuses
        on statuses.id = last_versions.lead_status_id
)

select
    judged.lead_id,
    judged.status as lead_state,
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
    judged.known_at as converted_at,
    round((epoch(judged.known_at) - epoch(judged.created_at)) / 86400, 2) as days_to_convert,
    judged.is_lost,
    judged.is_deleted
from judged
cross join {{ ref('as_of') }} as as_of
left join consultations on consultations.lead_id = judged.lead_id
left join {{ ref('dim_sources') }} as sources on sources.source = judged.source_key
left join {{ ref('dim_people') }} as people on people.person_id = judged.assigned_to
