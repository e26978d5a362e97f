-- model: fct_placements
-- grain: one row per placement
-- Placements with their people and names, and the fee if it is known.

with

placements as (
    select
        placements.* exclude (company_id),
        jobs.job_title,
        coalesce(placements.company_id, jobs.company_id) as company_id,
        coalesce(placements.assigned_to, jobs.consultant_id) as consultant_id,
        case when placements.booking_type = 'permanent'
            then coalesce(jobs.salary_currency, jobs.rate_currency)
            else coalesce(jobs.rate_currency, jobs.salary_currency)
        end as currency,
        coalesce(jobs.is_fully_read, true) as is_job_read,
        jobs.placement_fee as job_fee,
        case when placements.booking_type = 'permanent'
            then coalesce(placements.annual_salary, jobs.yearly_salary)
        end as salary,
        jobs.applied_fee_percentage as job_percentage
    from {{ ref('stg_placements') }} as placements
    left join {{ ref('dim_jobs') }} as jobs on jobs.job_id = placements.job_id
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
)

select
    priced.booking_id,
    priced.booking_type,
    priced.status as booking_status,
    priced.contract_type,
    priced.candidate_id,
    priced.job_id,
    priced.job_title,
    priced.company_id,
    priced.company_name,
    priced.is_company_deleted,
    priced.consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    coalesce(candidates.source, 'unknown') as source,
    coalesce(candidates.source_group, 'unknown') as source_group,
    row_number() over (
        partition by priced.candidate_id order by priced.placed_on, priced.booking_id
    ) as placement_number,
    priced.placed_on,
    if(priced.offer_accepted_date is null, 'booking', 'offer_accepted_date') as placed_on_source,
    priced.offer_accepted_date,
    priced.start_date,
    priced.end_date,
    priced.last_day,
    priced.completed_on,
    priced.contract_state,
    priced.is_confirmed,
    priced.time_zone,
    try_cast(priced.annual_salary as decimal(18, 2)) as annual_salary,
    try_cast(priced.day_rate as decimal(18, 2)) as day_rate,
    try_cast(priced.contract_value as decimal(18, 2)) as contract_value,
    priced.currency,
    priced.fee,
    priced.fee_source,
    try_cast(priced.fee * rates.rate as decimal(18, 2)) as reporting_fee,
    rates.reporting_currency,
    priced.created_at as booked_at,
    priced.is_fully_read
from priced
left join {{ ref('dim_people') }} as people on people.person_id = priced.consultant_id
left join {{ ref('dim_candidates') }} as candidates
    on candidates.candidate_id = priced.candidate_id
left join {{ ref('exchange_rates') }} as rates on rates.currency = priced.currency
