with

placements as (
    select
        placements.* exclude (company_id),
        jobs.title as job_title,
        coalesce(placements.company_id, jobs.company_id) as company_id,
        coalesce(placements.assigned_to, jobs.assigned_to) as consultant_id,
        case when placements.booking_type = 'permanent'
            then coalesce(jobs.salary_code, jobs.rate_code)
            else coalesce(jobs.rate_code, jobs.salary_code)
        end as currency,
        coalesce(jobs.is_fully_read, true) as is_job_read,
        try_cast(jobs.placement_fee as decimal(18, 2)) as job_fee,
        case when placements.booking_type = 'permanent'
            then coalesce(placements.annual_salary, jobs.yearly_salary)
        end as salary,
        jobs.applied_fee_percentage as job_percentage
    from {{ ref('stg_placements') }} as placements
    left join {{ ref('stg_jobs') }} as jobs on jobs.job_id = placements.job_id
),

named as (
    select
        placements.*,
        case when placements.company_id is null then 'no company'
            else coalesce(companies.name, 'unknown company')
        end as company_name,
        coalesce(companies.is_deleted, false) as is_company_deleted,
        companies.applied_fee_percentage as company_percentage
    from placements
    left join {{ ref('stg_known_companies') }} as companies
        on companies.company_id = placements.company_id
),

sourced as (
    select
        *,
        case
            when is_extension then 'extension'
            when not is_fully_read then 'unread'
            when placement_fee is not null then 'booking'
            when not is_job_read then 'unread'
            when job_fee is not null then 'job'
            when salary * job_percentage is not null then 'job_percentage'
            when salary * company_percentage is not null then 'company_percentage'
            else 'none'
        end as fee_source
    from named
),

priced as (
    select
        *,
        try_cast(
            case fee_source
                when 'booking' then placement_fee
                when 'job' then job_fee
                when 'job_percentage' then salary * job_percentage / 100
                when 'company_percentage' then salary * company_percentage / 100
            end as decimal(18, 2)
        ) as fee
    from sourced
),

first_interviews as (
    select candidate_id, job_id, min(start_date) as first_interview_on
    from {{ ref('stg_interviews') }}
    where is_held
    group by candidate_id, job_id
),

met as (
    select
        priced.*,
        if(first_interview_on <= placed_on, first_interview_on, null) as interviewed_on
    from priced
    left join first_interviews
        on first_interviews.candidate_id = priced.candidate_id
        and first_interviews.job_id = priced.job_id
),

-- A status names no job: the last submission before the first interview belongs to the placement.
submissions as (
    select
        met.booking_id,
        max((stages.entered_at at time zone as_of.time_zone)::date) as submitted_on
    from met
    cross join {{ ref('as_of') }} as as_of
    join {{ ref('fct_candidate_stages') }} as stages
        on stages.candidate_id = met.candidate_id
        and stages.stage = 'submitted'
        and stages.is_entry_observed
        and (stages.entered_at at time zone as_of.time_zone)::date
        <= coalesce(met.interviewed_on, met.placed_on)
    group by met.booking_id
),

measured as (
    select
        met.*,
        submissions.submitted_on,
        coalesce(submitted_on, interviewed_on) as hiring_began_on,
        (candidates.created_at at time zone as_of.time_zone)::date as candidate_created_on,
        coalesce(candidates.source, 'unknown') as source,
        coalesce(candidates.source_group, 'unknown') as source_group,
        (start_date + to_months(probation_period_months))::date as probation_end_on,
        as_of.as_of_date
    from met
    cross join {{ ref('as_of') }} as as_of
    left join submissions on submissions.booking_id = met.booking_id
    left join {{ ref('dim_candidates') }} as candidates
        on candidates.candidate_id = met.candidate_id
)

select
    measured.booking_id,
    measured.booking_type,
    measured.status as booking_status,
    measured.is_placement,
    measured.is_extension,
    measured.is_fall_off,
    case
        when cancelled_on >= start_date then 'cancelled_after_start'
        when cancelled_on is not null then 'cancelled_before_start'
        when is_fall_off then 'cancelled'
        when completed_on is not null then 'completed'
        when start_date <= as_of_date then 'started'
        else 'to_come'
    end as placement_outcome,
    measured.contract_type,
    measured.candidate_id,
    measured.job_id,
    measured.job_title,
    measured.company_id,
    measured.company_name,
    measured.is_company_deleted,
    measured.consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    measured.source,
    measured.source_group,
    case when is_placement then row_number() over (
        partition by measured.candidate_id, is_placement order by placed_on, measured.booking_id
    ) end as placement_number,
    measured.placed_on,
    date_trunc('month', measured.placed_on)::date as placed_month,
    if(measured.offer_accepted_date is null, 'booking', 'offer_accepted_date') as placed_on_source,
    measured.offer_accepted_date,
    measured.start_date,
    measured.end_date,
    measured.last_day,
    measured.billed_from,
    measured.billed_until,
    measured.completed_on,
    measured.cancelled_on,
    measured.cancelled_on - measured.start_date as days_from_start,
    case when is_fall_off and cancelled_on is not null
        then days_from_start between 0 and 90
    end as is_within_90_days,
    measured.cancellation_reason,
    measured.probation_end_on,
    case
        when probation_end_on is null or (is_fall_off and cancelled_on is null) then null
        when cancelled_on < start_date then 'not_started'
        when cancelled_on < probation_end_on then 'failed'
        when as_of_date >= probation_end_on then 'passed'
        else 'running'
    end as probation_state,
    measured.contract_state,
    measured.is_confirmed,
    measured.time_zone,
    if(is_placement, placed_on - hiring_began_on, null) as days_to_hire,
    case when days_to_hire is not null
        then if(submitted_on is not null, 'submission', 'interview')
    end as days_to_hire_basis,
    -- A deleted candidate has no record here, and an imported placement may come before it.
    if(placement_number = 1 and placed_on >= candidate_created_on,
        placed_on - candidate_created_on, null) as days_since_record,
    try_cast(measured.annual_salary as decimal(18, 2)) as annual_salary,
    try_cast(measured.day_rate as decimal(18, 2)) as day_rate,
    try_cast(measured.contract_value as decimal(18, 2)) as contract_value,
    measured.currency,
    measured.fee,
    measured.fee_source,
    try_cast(measured.fee * rates.rate as decimal(18, 2)) as reporting_fee,
    rates.reporting_currency,
    measured.created_at as booked_at,
    measured.is_fully_read
from measured
left join {{ ref('stg_people') }} as people on people.person_id = measured.consultant_id
left join {{ ref('exchange_rates') }} as rates on rates.currency = measured.currency
