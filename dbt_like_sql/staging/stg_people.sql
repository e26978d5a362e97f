{{ config(materialized='view') }}

with

assigned as (
    select assigned_to as person_id from {{ ref('stg_candidates') }}
    union
    select assigned_to from {{ ref('stg_jobs') }}
    union
    select account_manager_id from {{ ref('stg_companies') }}
    union
    select assigned_to from {{ ref('stg_bookings') }}
    union
    -- A converted lead may be deleted, and still counts for its consultant.
    select assigned_to from {{ ref('stg_lead_versions') }}
),

-- A row with only its first cell is a line to fill in.
named as (
    select * from {{ ref('people') }} where name is not null
)

select
    coalesce(assigned.person_id, named.id) as person_id,
    coalesce(named.name, 'user ' || left(assigned.person_id, 8)) as person_name,
    named.team,
    named.name is not null as is_mapped
from (select * from assigned where person_id is not null) as assigned
full join named on named.id = assigned.person_id
