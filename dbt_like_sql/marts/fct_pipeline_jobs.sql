with

interviews as (
    select
        job_id,
        count(distinct candidate_id) filter (where is_held) as candidates_interviewed,
        count(*) filter (where is_held) as interviews_held,
        count(*) filter (where not is_held) as interviews_upcoming,
        max(start_datetime) filter (where is_held) as last_interview_at,
        min(start_datetime) filter (where not is_held) as next_interview_at
    from {{ ref('stg_interviews') }}
    group by job_id
),

openings as (
    select job_id, placements from {{ ref('fct_time_to_fill') }}
    qualify row_number() over (partition by job_id order by opening_number desc) = 1
),

jobs as (
    select
        jobs.*,
        funnel.placements,
        -- A job that was opened again looks for people anew.
        greatest(jobs.positions - coalesce(openings.placements, 0), 0) as positions_open,
        case when jobs.employment_type in ('contractor', 'interim', 'freelance', 'temporary')
            then coalesce(jobs.rate_currency, jobs.salary_currency)
            else coalesce(jobs.salary_currency, jobs.rate_currency)
        end as currency,
        companies.applied_fee_percentage as company_percentage
    from {{ ref('dim_jobs') }} as jobs
    join {{ ref('fct_job_funnel') }} as funnel on funnel.job_id = jobs.job_id
    left join openings on openings.job_id = jobs.job_id
    left join {{ ref('stg_known_companies') }} as companies
        on companies.company_id = jobs.company_id
    where jobs.is_open
),

priced as (
    select
        *,
        case
            when not is_fully_read then 'unread'
            when placement_fee is not null then 'job'
            when yearly_salary * applied_fee_percentage is not null then 'job_percentage'
            when yearly_salary * company_percentage is not null then 'company_percentage'
            else 'none'
        end as fee_source,
        case fee_source
            when 'job' then placement_fee
            when 'job_percentage'
                then try_cast(yearly_salary * applied_fee_percentage / 100 as decimal(18, 2))
            when 'company_percentage'
                then try_cast(yearly_salary * company_percentage / 100 as decimal(18, 2))
        end as expected_fee
    from jobs
)

select
    priced.job_id, priced.job_title, priced.job_status,
    priced.company_id, priced.company_name,
    priced.consultant_id, priced.consultant_name, priced.team,
    priced.employment_type, priced.positions, priced.placements, priced.positions_open,
    coalesce(interviews.candidates_interviewed, 0) as candidates_interviewed,
    coalesce(interviews.interviews_held, 0) as interviews_held,
    coalesce(interviews.interviews_upcoming, 0) as interviews_upcoming,
    interviews.last_interview_at,
    interviews.next_interview_at,
    priced.currency,
    priced.expected_fee,
    priced.fee_source,
    try_cast(priced.expected_fee * priced.positions_open as decimal(18, 2)) as pipeline_value,
    try_cast(priced.expected_fee * priced.positions_open * rates.rate as decimal(18, 2))
        as reporting_value,
    rates.reporting_currency
from priced
left join interviews on interviews.job_id = priced.job_id
left join {{ ref('exchange_rates') }} as rates on rates.currency = priced.currency
