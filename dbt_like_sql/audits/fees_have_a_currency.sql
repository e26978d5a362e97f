-- The job of every placement with a fee has a currency.
{{ config(severity='warn') }}

select booking_id, job_id
from {{ ref('fct_placements') }}
where is_placement and fee is not null and currency is null
