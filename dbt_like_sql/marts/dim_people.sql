with

assigned as (
    select assigned_to as person_id, 'candidate' as kind from {{ ref('stg_candidates') }}
    union all
    select assigned_to, 'job' from {{ ref('stg_jobs') }}
    union all
    select account_manager_id, 'company' from {{ ref('stg_companies') }}
    union all
    select assigned_to, 'booking' from {{ ref('stg_bookings') }}
    union all
    select assigned_to, 'lead' from {{ ref('stg_leads') }}
    union all
    -- A converted lead may be deleted, and still counts for its consultant.
    select distinct assigned_to, 'former' from {{ ref('stg_lead_versions') }}
),

counted as (
    select
        person_id,
        count(*) filter (where kind = 'candidate') as candidates,
        count(*) filter (where kind = 'job') as jobs,
        count(*) filter (where kind = 'company') as companies,
        count(*) filter (where kind = 'booking') as bookings,
        count(*) filter (where kind = 'lead') as leads
    from assigned
    where person_id is not null
    group by person_id
),

-- A row with only its first cell is a line to fill in.
named as (
    select * from {{ ref('people') }} where name is not null
)

select
    coalesce(counted.person_id, people.id) as person_id,
    coalesce(people.name, 'user ' || left(coalesce(counted.person_id, people.id), 8))
        as person_name,
    people.team,
    people.name is not null as is_mapped,
    coalesce(counted.candidates, 0) as candidates,
    coalesce(counted.jobs, 0) as jobs,
    coalesce(counted.companies, 0) as companies,
    coalesce(counted.bookings, 0) as bookings,
    coalesce(counted.leads, 0) as leads
from counted
full join named as people on people.id = counted.person_id
