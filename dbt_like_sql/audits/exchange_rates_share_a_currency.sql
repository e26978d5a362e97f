-- The seed exchange_rates converts to one currency, whose own rate is 1. No rate is 0 or less.

with

rates as (
    select *, min(reporting_currency) over () as first_currency from {{ ref('exchange_rates') }}
)

select currency, rate, reporting_currency
from rates
where reporting_currency <> first_currency
    or rate <= 0
    or (currency = reporting_currency and rate <> 1)
