with

placed as (
    select
        date_trunc('month', start_date)::date as month_start,
        currency,
        count(*) as placements,
        count(fee) as placements_with_fee,
        sum(fee) as fee,
        sum(fee) filter (where booking_type = 'permanent') as permanent_fee,
        sum(fee) filter (where booking_type = 'contract') as contract_fee,
        sum(fee) filter (where is_confirmed) as confirmed_fee,
        sum(reporting_fee) as reporting_fee
    from {{ ref('fct_placements') }}
    where is_placement
    group by all
),

billed as (
    select
        month_start,
        currency,
        count(*) as contracts,
        count(billings) as contracts_with_rate,
        sum(working_days)::bigint as working_days,
        sum(billings) as billings,
        sum(reporting_billings) as reporting_billings
    from {{ ref('fct_contract_months') }}
    group by all
),

months as (
    select month_start, currency from placed
    union
    select month_start, currency from billed
)

select
    months.month_start,
    months.currency,
    case
        when months.month_start < date_trunc('month', as_of.as_of_date) then 'past'
        when months.month_start = date_trunc('month', as_of.as_of_date) then 'current'
        when months.month_start is not null then 'future'
    end as month_kind,
    coalesce(placed.placements, 0) as placements_started,
    coalesce(placed.placements_with_fee, 0) as placements_with_fee,
    placed.placements_with_fee / placed.placements as fee_coverage,
    placed.fee::decimal(18, 2) as fee,
    placed.permanent_fee::decimal(18, 2) as permanent_fee,
    placed.contract_fee::decimal(18, 2) as contract_fee,
    placed.confirmed_fee::decimal(18, 2) as confirmed_fee,
    placed.reporting_fee::decimal(18, 2) as reporting_fee,
    coalesce(billed.contracts, 0) as contracts,
    coalesce(billed.contracts_with_rate, 0) as contracts_with_rate,
    billed.contracts_with_rate / billed.contracts as rate_coverage,
    coalesce(billed.working_days, 0) as working_days,
    billed.billings::decimal(18, 2) as billings,
    billed.reporting_billings::decimal(18, 2) as reporting_billings,
    rates.reporting_currency
from months
cross join {{ ref('as_of') }} as as_of
left join placed
    on placed.month_start is not distinct from months.month_start
    and placed.currency is not distinct from months.currency
left join billed
    on billed.month_start is not distinct from months.month_start
    and billed.currency is not distinct from months.currency
left join {{ ref('exchange_rates') }} as rates on rates.currency = months.currency
