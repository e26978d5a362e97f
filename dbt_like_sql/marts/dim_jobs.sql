with

-- Bookings of a job that is not live, or of no job, are counted in a row of their own.
booked as (
    select
        *,
        coalesce(job_id, 'none') as job_key,
        counts_as in ('interview_held', 'interview_to_come') as is_interview,
        counts_as = 'interview_held' as is_held_interview,
        counts_as = 'placement' as is_placement
    from {{ ref('fct_bookings') }}
    where booking_type in ('interview', 'permanent', 'contract')
),

named as (
    select job_id from {{ ref('stg_jobs') }}
    union
    select job_key from booked
),

pairs as (
    select
        job_key,
        candidate_id,
        count(*) filter (where is_interview) as interviews,
        count(*) filter (where is_held_interview) as held,
        count(*) filter (where is_placement) as placements
    from booked
    where is_interview or is_placement
    group by all
),

counted as (
    select
        job_key,
        count(*) filter (where interviews > 0) as candidates_with_interview,
        count(*) filter (where held > 0) as candidates_interviewed,
        count(*) filter (where held > 1) as candidates_interviewed_again,
        count(*) filter (where placements > 0) as candidates_placed,
        count(*) filter (where placements > 0 and held > 0) as candidates_placed_after_interview
    from pairs
    group by job_key
),

totals as (
    select
        job_key,
        count(*) filter (where is_held_interview) as interviews_held,
        count(*) filter (where counts_as = 'interview_to_come') as interviews_to_come,
        count(*) filter (where counts_as = 'interview_cancelled') as interviews_cancelled,
        count(*) filter (where is_placement) as placements,
        max(starts_at) filter (where is_held_interview) as last_interview_at,
        min(starts_at) filter (where counts_as = 'interview_to_come') as next_interview_at,
        max(created_at) filter (where is_interview or counts_as in ('placement', 'extension'))
            as last_booked_at
    from booked
    group by job_key
),

jobs as (
    select
        named.job_id as id,
        jobs.*,
        jobs.job_id is not null as is_live,
        coalesce(companies.is_deleted, false) as is_company_deleted,
        case
            when named.job_id = 'none' then 'no company'
            when jobs.job_id is not null and jobs.company_id is null then 'no company'
            else coalesce(companies.name, 'unknown company')
        end as company_name,
        companies.applied_fee_percentage as company_percentage,
        openings.opening_number,
        openings.opened_on,
        openings.placements_in_opening,
        coalesce(jobs.is_open, false) as is_open_now,
        -- Only placements of the last opening fill positions of a job that was opened again.
        if(is_open_now, greatest(jobs.positions - coalesce(openings.placements_in_opening, 0), 0), null)
            as positions_open,
        if(is_open_now, greatest(as_of.as_of_date - openings.opened_on, 0), null) as age_days,
        if(is_open_now, greatest(as_of.as_of_date - greatest(
            (totals.last_booked_at at time zone as_of.time_zone)::date, openings.opened_on
        ), 0), null) as days_since_last_booking,
        totals.* exclude (job_key),
        if(is_open_now, jobs.application_deadline < as_of.as_of_date, null) as is_past_deadline,
        case when jobs.employment_type in ('contractor', 'interim', 'freelance', 'temporary')
            then coalesce(jobs.rate_code, jobs.salary_code)
            else coalesce(jobs.salary_code, jobs.rate_code)
        end as currency,
        as_of.as_of_date
    from named
    cross join {{ ref('as_of') }} as as_of
    left join {{ ref('stg_jobs') }} as jobs on jobs.job_id = named.job_id
    left join {{ ref('stg_known_companies') }} as companies
        on companies.company_id = jobs.company_id
    left join {{ ref('fct_job_openings') }} as openings
        on openings.job_id = named.job_id and openings.is_last
    left join totals on totals.job_key = named.job_id
),

priced as (
    select
        *,
        try_cast(placement_fee as decimal(18, 2)) as fixed_fee,
        case
            when not is_live then null
            when not is_fully_read then 'unread'
            when fixed_fee is not null then 'job'
            when yearly_salary * applied_fee_percentage is not null then 'job_percentage'
            when yearly_salary * company_percentage is not null then 'company_percentage'
            else 'none'
        end as expected_fee_source,
        case expected_fee_source
            when 'job' then fixed_fee
            when 'job_percentage'
                then try_cast(yearly_salary * applied_fee_percentage / 100 as decimal(18, 2))
            when 'company_percentage'
                then try_cast(yearly_salary * company_percentage / 100 as decimal(18, 2))
        end as expected_fee
    from jobs
)

select
    priced.id as job_id,
    case when priced.id = 'none' then 'no job' when is_live then priced.title else 'unknown job' end
        as job_title,
    priced.reference_code,
    priced.status as job_status,
    priced.is_live,
    priced.is_open_now as is_open,
    coalesce(priced.is_decided, false) as is_decided,
    priced.employment_type,
    priced.department,
    priced.location,
    priced.remote_type,
    priced.experience_level,
    priced.company_id,
    priced.company_name,
    priced.is_company_deleted,
    priced.assigned_to as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    priced.positions,
    priced.has_positions,
    priced.opening_number,
    priced.opened_on,
    priced.age_days,
    greatest(today.working_day_number - starts.working_day_number, 0) as working_age_days,
    case
        when priced.age_days <= 14 then '0-14'
        when priced.age_days <= 30 then '15-30'
        when priced.age_days <= 60 then '31-60'
        when priced.age_days <= 90 then '61-90'
        when priced.age_days > 90 then 'over 90'
    end as age_band,
    priced.placements_in_opening,
    priced.positions_open,
    priced.last_booked_at,
    priced.days_since_last_booking,
    coalesce(priced.interviews_held, 0) as interviews_held,
    coalesce(priced.interviews_to_come, 0) as interviews_to_come,
    coalesce(priced.interviews_cancelled, 0) as interviews_cancelled,
    coalesce(counted.candidates_with_interview, 0) as candidates_with_interview,
    coalesce(counted.candidates_interviewed, 0) as candidates_interviewed,
    coalesce(counted.candidates_interviewed_again, 0) as candidates_interviewed_again,
    coalesce(counted.candidates_placed, 0) as candidates_placed,
    coalesce(counted.candidates_placed_after_interview, 0) as candidates_placed_after_interview,
    coalesce(priced.placements, 0) as placements,
    priced.last_interview_at,
    priced.next_interview_at,
    try_cast(priced.salary_min as decimal(18, 2)) as salary_min,
    try_cast(priced.salary_max as decimal(18, 2)) as salary_max,
    priced.salary_code as salary_currency,
    priced.salary_type,
    priced.yearly_salary,
    try_cast(priced.day_rate_min as decimal(18, 2)) as day_rate_min,
    try_cast(priced.day_rate_max as decimal(18, 2)) as day_rate_max,
    priced.rate_code as rate_currency,
    priced.fee_type,
    priced.fee_percentage,
    priced.applied_fee_percentage,
    priced.fixed_fee as placement_fee,
    priced.currency,
    priced.expected_fee,
    priced.expected_fee_source,
    try_cast(priced.expected_fee * priced.positions_open as decimal(18, 2)) as pipeline_value,
    try_cast(priced.expected_fee * priced.positions_open * rates.rate as decimal(18, 2))
        as reporting_value,
    rates.reporting_currency,
    priced.published_at,
    priced.application_deadline,
    coalesce(priced.is_past_deadline, false) as is_past_deadline,
    priced.start_date,
    priced.created_at,
    priced.updated_at,
    coalesce(priced.is_fully_read, false) as is_fully_read
from priced
left join counted on counted.job_key = priced.id
left join {{ ref('stg_people') }} as people on people.person_id = priced.assigned_to
left join {{ ref('exchange_rates') }} as rates on rates.currency = priced.currency
left join {{ ref('dim_days') }} as starts on starts.day = priced.opened_on and priced.is_open_now
left join {{ ref('dim_days') }} as today on today.day = priced.as_of_date
