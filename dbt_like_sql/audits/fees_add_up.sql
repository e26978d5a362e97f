-- In each currency, the fees of the forecast equal the fees of the placements.

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
)

select
    coalesce(forecast.currency, placements.currency) as currency,
    forecast.fee as forecast_fee,
    placements.fee as placements_fee
from forecast
full join placements on placements.currency is not distinct from forecast.currency
where forecast.fee is distinct from placements.fee
    or forecast.placements is distinct from placements.placements
