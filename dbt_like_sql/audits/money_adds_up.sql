-- In each currency, the fees of the forecast equal the fees of the placements. All exchange rates are
-- more than 0 and convert to one currency, whose own rate is 1.

with

forecast as (
    select currency, sum(fee) as fee, sum(placements) as placements
    from {{ ref('sum_fee_forecast') }}
    group by currency
),

placements as (
    select currency, coalesce(sum(fee), 0) as fee, count(*) as placements
    from {{ ref('fct_placements') }}
    where is_placement and start_date is not null
    group by currency
),

rates as (
    select *, min(reporting_currency) over () as first_currency from {{ ref('exchange_rates') }}
)

select
    coalesce(forecast.currency, placements.currency) as currency,
    forecast.fee as found,
    placements.fee as expected
from forecast
full join placements on placements.currency is not distinct from forecast.currency
where forecast.fee is distinct from placements.fee
    or forecast.placements is distinct from placements.placements
union all
select currency, rate, 1
from rates
where reporting_currency <> first_currency
    or rate <= 0
    or (currency = reporting_currency and rate <> 1)
