-- Every currency of a known fee has a rate in the seed exchange_rates.
{{ config(severity='warn') }}

select currency, count(*) as placements
from {{ ref('fct_placements') }}
where is_placement and fee is not null and currency is not null and reporting_currency is null
group by currency
