with

work as (
    select consultant_id, 'job' as kind, positions_open as positions, reporting_value as value,
        reporting_currency
    from {{ ref('fct_pipeline_jobs') }}
    union all
    select consultant_id, 'candidate', null, null, null
    from {{ ref('fct_pipeline_candidates') }}
    where is_active
    union all
    select assigned_to, 'interview', null, null, null
    from {{ ref('stg_interviews') }}
    where not is_held
    union all
    select consultant_id, 'contract', null, null, null
    from {{ ref('fct_placements') }}
    where contract_state = 'running'
),

summed as (
    select
        consultant_id,
        count(*) filter (where kind = 'job') as open_jobs,
        coalesce(sum(positions), 0)::bigint as open_positions,
        count(*) filter (where kind = 'candidate') as active_candidates,
        count(*) filter (where kind = 'interview') as interviews_to_come,
        count(*) filter (where kind = 'contract') as running_contracts,
        count(value) as jobs_with_value,
        coalesce(sum(value), 0)::decimal(18, 2) as reporting_value,
        max(reporting_currency) as reporting_currency
    from work
    group by consultant_id
)

select
    summed.consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    summed.open_jobs,
    summed.open_positions,
    summed.active_candidates,
    summed.interviews_to_come,
    summed.running_contracts,
    summed.jobs_with_value,
    summed.reporting_value,
    summed.reporting_currency
from summed
left join {{ ref('dim_people') }} as people on people.person_id = summed.consultant_id
