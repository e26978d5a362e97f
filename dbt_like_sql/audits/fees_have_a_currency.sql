-- audit: fees_have_a_currency
-- Every placement with a fee is of a job that names a currency.
{{ config(severity='warn') }}

select booking_id, job_id
from {{ ref('fct_placements') }}
where fee is not null and currency is null
