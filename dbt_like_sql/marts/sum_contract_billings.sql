with

summed as (
    select
        month_start,
        currency,
        count(*) as contracts,
        count(billings) as contracts_with_rate,
        sum(working_days)::bigint as working_days,
        sum(billings) as billings,
        sum(reporting_billings) as reporting_billings,
        max(reporting_currency) as reporting_currency
    from {{ ref('fct_contract_months') }}
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
    summed.contracts,
    summed.contracts_with_rate,
    summed.contracts_with_rate / nullif(summed.contracts, 0) as rate_coverage,
    summed.working_days,
    coalesce(summed.billings, 0)::decimal(18, 2) as billings,
    summed.reporting_billings::decimal(18, 2) as reporting_billings,
    summed.reporting_currency
from summed
cross join {{ ref('as_of') }} as as_of
