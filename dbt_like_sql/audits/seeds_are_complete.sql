-- Every consultant, lead status, source and currency in the records has a row in its seed.
{{ config(severity='warn') }}

select 'lead_statuses' as seed, leads.lead_status_id as value, leads.lead_status_id as value_id
from {{ ref('stg_leads') }} as leads
left join {{ ref('lead_statuses') }} as statuses on statuses.id = leads.lead_status_id
where leads.lead_status_id is not null and statuses.name is null
group by leads.lead_status_id
union all
select 'people', person_id, person_id
from {{ ref('dim_people') }}
where not is_mapped
    and person_id <> 'none'
    and candidates + jobs + companies + bookings + leads > 0
union all
select 'source_groups', source, null
from {{ ref('dim_sources') }}
where source_group = 'unmapped'
union all
select 'exchange_rates', currency, null
from {{ ref('fct_placements') }}
where is_placement and fee is not null and currency is not null and reporting_currency is null
group by currency
