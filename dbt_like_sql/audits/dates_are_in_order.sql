-- No placement ends before it starts, and no record was created after the time of the data.
{{ config(severity='warn') }}

with

later as (
    select candidate_id as record_id, created_at from {{ ref('stg_candidates') }}
    union all
    select job_id, created_at from {{ ref('stg_jobs') }}
    union all
    select booking_id, created_at from {{ ref('stg_bookings') }}
)

select booking_id as record_id
from {{ ref('fct_placements') }}
where end_date < start_date
union
select later.record_id
from later
cross join {{ ref('as_of') }} as as_of
-- Records may be read, and created, after the time up to which all records are verified.
where later.created_at > as_of.as_of_at + interval 1 day
