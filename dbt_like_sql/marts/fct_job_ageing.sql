with

openings as (
    select * from {{ ref('fct_job_openings') }}
    qualify row_number() over (partition by job_id order by opening_number desc) = 1
),

bookings as (
    select job_id, created_at from {{ ref('stg_interviews') }}
    union all
    select job_id, created_at from {{ ref('stg_placements') }} where not is_fall_off
),

booked as (
    select job_id, count(*) as bookings, max(created_at) as last_booked_at
    from bookings
    group by job_id
),

aged as (
    select
        jobs.*,
        openings.opening_number,
        openings.opened_on,
        fills.placements,
        as_of.as_of_date,
        greatest(as_of.as_of_date - openings.opened_on, 0) as age_days,
        coalesce(booked.bookings, 0) as bookings,
        booked.last_booked_at,
        greatest(
            as_of.as_of_date
            - greatest(
                (booked.last_booked_at at time zone as_of.time_zone)::date, openings.opened_on
            ), 0
        ) as days_since_last_booking
    from {{ ref('dim_jobs') }} as jobs
    join openings on openings.job_id = jobs.job_id
    join {{ ref('fct_time_to_fill') }} as fills on fills.opening_id = openings.opening_id
    cross join {{ ref('as_of') }} as as_of
    left join booked on booked.job_id = jobs.job_id
    where jobs.is_open
)

select
    aged.job_id, aged.job_title, aged.job_status,
    aged.company_id, aged.company_name, aged.consultant_id, aged.consultant_name, aged.team,
    aged.employment_type,
    aged.opening_number,
    aged.opened_on,
    aged.age_days,
    greatest(today.working_day_number - starts.working_day_number, 0) as working_age_days,
    case
        when aged.age_days <= 14 then '0-14'
        when aged.age_days <= 30 then '15-30'
        when aged.age_days <= 60 then '31-60'
        when aged.age_days <= 90 then '61-90'
        when aged.age_days > 90 then 'over 90'
    end as age_band,
    aged.positions,
    aged.placements,
    aged.bookings,
    aged.last_booked_at,
    aged.days_since_last_booking,
    aged.application_deadline,
    coalesce(aged.application_deadline < aged.as_of_date, false) as is_past_deadline
from aged
left join {{ ref('dim_days') }} as starts on starts.day = aged.opened_on
left join {{ ref('dim_days') }} as today on today.day = aged.as_of_date
