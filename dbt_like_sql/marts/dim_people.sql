with

work as (
    select assigned_to as person_id, 'candidate' as kind, null::bigint as positions,
        null::decimal(18, 2) as value, null as currency
    from {{ ref('stg_candidates') }}
    union all
    select consultant_id, 'active_candidate', null, null, null
    from {{ ref('fct_candidates') }}
    where is_active
    union all
    select consultant_id, if(is_open, 'open_job', 'job'), positions_open, reporting_value,
        reporting_currency
    from {{ ref('dim_jobs') }}
    where is_live
    union all
    select account_manager_id, 'company', null, null, null from {{ ref('stg_companies') }}
    union all
    select assigned_to, 'booking', null, null, null from {{ ref('stg_bookings') }}
    union all
    select assigned_to, 'lead', null, null, null from {{ ref('stg_leads') }}
    union all
    select consultant_id, 'interview', null, null, null
    from {{ ref('fct_bookings') }}
    where counts_as = 'interview_to_come'
    union all
    select consultant_id, 'contract', null, null, null
    from {{ ref('fct_placements') }}
    where contract_state = 'running'
    union all
    select person_id, 'person', null, null, null from {{ ref('stg_people') }}
),

summed as (
    select
        person_id,
        count(*) filter (where kind = 'candidate') as candidates,
        count(*) filter (where kind in ('job', 'open_job')) as jobs,
        count(*) filter (where kind = 'company') as companies,
        count(*) filter (where kind = 'booking') as bookings,
        count(*) filter (where kind = 'lead') as leads,
        count(*) filter (where kind = 'open_job') as open_jobs,
        coalesce(sum(positions), 0)::bigint as open_positions,
        count(*) filter (where kind = 'active_candidate') as active_candidates,
        count(*) filter (where kind = 'interview') as interviews_to_come,
        count(*) filter (where kind = 'contract') as running_contracts,
        count(value) as jobs_with_value,
        sum(value) as value,
        max(currency) as reporting_currency
    from work
    group by person_id
)

select
    coalesce(summed.person_id, 'none') as person_id,
    coalesce(people.person_name, 'unassigned') as person_name,
    people.team,
    coalesce(people.is_mapped, false) as is_mapped,
    summed.candidates,
    summed.jobs,
    summed.companies,
    summed.bookings,
    summed.leads,
    summed.open_jobs,
    summed.open_positions,
    summed.active_candidates,
    summed.interviews_to_come,
    summed.running_contracts,
    summed.jobs_with_value,
    summed.value::decimal(18, 2) as reporting_value,
    summed.reporting_currency
from summed
left join {{ ref('stg_people') }} as people on people.person_id = summed.person_id
