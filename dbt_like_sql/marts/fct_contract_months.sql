-- model: fct_contract_months
-- grain: one row per contract placement and month in which it runs
-- Working days of each contract in each month, and their value at the day rate.

with

contracts as (
    select
        placements.* exclude (last_day),
        -- A contract without an end counts up to today.
        coalesce(placements.last_day, as_of.as_of_date) as last_day
    from {{ ref('fct_placements') }} as placements
    cross join {{ ref('as_of') }} as as_of
    where placements.booking_type = 'contract'
),

months as (
    select
        *,
        unnest(
            generate_series(
                date_trunc('month', start_date),
                least(last_day, date '2049-12-01')::timestamp,
                interval 1 month
            )
        )::date as month_start
    from contracts
    where start_date <= last_day and start_date >= date '2000-01-01'
),

bounded as (
    select
        *,
        greatest(start_date, month_start) as first_in_month,
        least(last_day, last_day(month_start)) as last_in_month
    from months
),

counted as (
    select
        bounded.*,
        ends.working_day_number - starts.working_day_number + starts.is_working_day::integer
            as working_days
    from bounded
    join {{ ref('dim_days') }} as starts on starts.day = bounded.first_in_month
    join {{ ref('dim_days') }} as ends on ends.day = bounded.last_in_month
)

select
    counted.booking_id || ':' || counted.month_start as contract_month_id,
    counted.booking_id,
    counted.month_start,
    counted.candidate_id,
    counted.job_id,
    counted.company_id,
    counted.company_name,
    counted.is_company_deleted,
    counted.consultant_id,
    counted.consultant_name,
    counted.team,
    counted.booking_status,
    counted.end_date is null as has_no_end_date,
    counted.working_days,
    counted.day_rate,
    counted.currency,
    try_cast(counted.day_rate * counted.working_days as decimal(18, 2)) as billings,
    try_cast(counted.day_rate * counted.working_days * rates.rate as decimal(18, 2))
        as reporting_billings,
    rates.reporting_currency
from counted
left join {{ ref('exchange_rates') }} as rates on rates.currency = counted.currency
