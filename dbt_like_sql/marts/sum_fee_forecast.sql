with

placements as (
    select *, date_trunc('month', start_date)::date as month_start
    from {{ ref('fct_placements') }}
    where is_placement
),

summed as (
    select
        month_start,
        currency,
        count(*) as placements,
        count(fee) as placements_with_fee,
        sum(fee) as fee,
        sum(fee) filter (where booking_type = 'permanent') as permanent_fee,
        sum(fee) filter (where booking_type = 'contract') as contract_fee,
        sum(fee) filter (where is_confirmed) as confirmed_fee,
        sum(fee) filter (where fee_source = 'booking') as fee_from_booking,
        sum(fee) filter (where fee_source = 'job') as fee_from_job,
        sum(fee) filter (where fee_source in ('job_percentage', 'company_percentage'))
            as fee_from_percentage,
        sum(reporting_fee) as reporting_fee
    from placements
    where month_start is not null
    group by month_start, currency
)

select
    summed.month_start,
    summed.currency,
    case
        when summed.month_start < date_trunc('month', as_of.as_of_date) then 'past'
        when summed.month_start = date_trunc('month', as_of.as_of_date) then 'current'
        else 'future'
    end as month_kind,
    summed.placements,
    summed.placements_with_fee,
    summed.placements_with_fee / nullif(summed.placements, 0) as fee_coverage,
    coalesce(summed.fee, 0)::decimal(18, 2) as fee,
    coalesce(summed.permanent_fee, 0)::decimal(18, 2) as permanent_fee,
    coalesce(summed.contract_fee, 0)::decimal(18, 2) as contract_fee,
    coalesce(summed.confirmed_fee, 0)::decimal(18, 2) as confirmed_fee,
    coalesce(summed.fee_from_booking, 0)::decimal(18, 2) as fee_from_booking,
    coalesce(summed.fee_from_job, 0)::decimal(18, 2) as fee_from_job,
    coalesce(summed.fee_from_percentage, 0)::decimal(18, 2) as fee_from_percentage,
    rates.rate as exchange_rate,
    -- Without a rate the sum is unknown; with a rate and no fees, it is 0.
    case when rates.rate is not null then coalesce(summed.reporting_fee, 0)::decimal(18, 2) end
        as reporting_fee,
    rates.reporting_currency
from summed
cross join {{ ref('as_of') }} as as_of
left join {{ ref('exchange_rates') }} as rates on rates.currency = summed.currency
