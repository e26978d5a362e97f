-- In each currency, the fees and billings of the months equal those of the placements and contracts.
-- All exchange rates are more than 0 and convert to one currency, whose own rate is 1.

with

amounts as (
    select currency, 'fees' as kind, fee as shown, 0 as expected from {{ ref('sum_months') }}
    union all
    select currency, 'billings', billings, 0 from {{ ref('sum_months') }}
    union all
    select currency, 'fees', 0, fee from {{ ref('fct_placements') }} where is_placement
    union all
    select currency, 'billings', 0, billings from {{ ref('fct_contract_months') }}
),

rates as (
    select *, min(reporting_currency) over () as first_currency from {{ ref('exchange_rates') }}
)

select currency || ' ' || kind as about, sum(shown) as found, sum(expected) as expected
from amounts
group by currency, kind
having coalesce(sum(shown), 0) <> coalesce(sum(expected), 0)
union all
select currency, rate, 1
from rates
where reporting_currency <> first_currency
    or rate <= 0
    or (currency = reporting_currency and rate <> 1)
