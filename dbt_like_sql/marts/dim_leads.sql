-- model: dim_leads
-- grain: one row per live lead
-- Leads with their contact data and what is known of their conversion.

select
    leads.lead_id,
    trim(concat_ws(' ', leads.first_name, leads.last_name)) as full_name,
    leads.company_name,
    leads.email,
    leads.phone,
    leads.city,
    leads.country,
    leads.industry,
    leads.job_title,
    conversions.customer_type,
    leads.status as lead_state,
    conversions.lead_status_name,
    conversions.source,
    conversions.source_group,
    conversions.consultant_id,
    conversions.consultant_name,
    conversions.team,
    conversions.consultations,
    conversions.is_converted,
    conversions.converted_at,
    conversions.is_lost,
    conversions.last_contacted_at,
    leads.created_at,
    conversions.created_month,
    leads.updated_at,
    leads.is_fully_read
from {{ ref('stg_leads') }} as leads
left join {{ ref('fct_lead_conversion') }} as conversions on conversions.lead_id = leads.lead_id
