-- Every status of a live lead has a name in the seed lead_statuses.
{{ config(severity='warn') }}

select leads.lead_status_id, count(*) as leads
from {{ ref('stg_leads') }} as leads
left join {{ ref('lead_statuses') }} as statuses on statuses.id = leads.lead_status_id
where leads.lead_status_id is not null and statuses.name is null
group by leads.lead_status_id
