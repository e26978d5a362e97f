with

contracts as (
    select *, billed_from as first_day
    from {{ ref('fct_placements') }}
    where booking_type = 'contract'
        and billed_from <= billed_until
        and billed_from >= date '2000-01-01'
),

months as (
    select
        *,
        unnest(
            generate_series(
                date_trunc('month', billed_from),
                least(billed_until, date '2049-12-01')::timestamp,
                interval 1 month
            )
        )::date as month_start
    from contracts
),

counted as (
    select
        months.*,
        ends.working_day_number - starts.working_day_number + starts.is_working_day::integer
            as working_days,
        -- The stated value is for the whole term, from the first day to the stated end.
        whole.working_day_number - starts_of.working_day_number + starts_of.is_working_day::integer
            as working_days_stated,
        sum(ends.working_day_number - starts.working_day_number + starts.is_working_day::integer)
            over (partition by months.booking_id order by months.month_start) as working_days_so_far
    from months
    join {{ ref('dim_days') }} as starts
        on starts.day = greatest(months.first_day, months.month_start)
    join {{ ref('dim_days') }} as ends
        on ends.day = least(months.billed_until, last_day(months.month_start))
    left join {{ ref('dim_days') }} as starts_of on starts_of.day = months.billed_from
    left join {{ ref('dim_days') }} as whole on whole.day = months.end_date
),

valued as (
    select
        *,
        case
            when contract_value is not null and working_days_stated is not null
                then 'contract_value'
            when day_rate is not null then 'day_rate'
        end as billings_basis,
        -- Rounded up to each month, so that the months add up to the value.
        try_cast(
            contract_value * coalesce(working_days_so_far / nullif(working_days_stated, 0), 1)
            as decimal(18, 2)
        ) as value_so_far
    from counted
),

billed as (
    select
        *,
        case billings_basis
            when 'contract_value' then value_so_far - coalesce(
                lag(value_so_far) over (partition by booking_id order by month_start), 0
            )
            when 'day_rate' then day_rate * working_days
        end as amount
    from valued
)

select
    billed.booking_id || ':' || billed.month_start as contract_month_id,
    billed.booking_id,
    billed.month_start,
    billed.candidate_id,
    billed.job_id,
    billed.company_id,
    billed.company_name,
    billed.is_company_deleted,
    billed.consultant_id,
    billed.consultant_name,
    billed.team,
    billed.booking_status,
    billed.end_date is null as has_no_end_date,
    billed.working_days::bigint as working_days,
    billed.day_rate,
    billed.contract_value,
    billed.billings_basis,
    billed.currency,
    try_cast(billed.amount as decimal(18, 2)) as billings,
    try_cast(billed.amount * rates.rate as decimal(18, 2)) as reporting_billings,
    rates.reporting_currency
from billed
left join {{ ref('exchange_rates') }} as rates on rates.currency = billed.currency
