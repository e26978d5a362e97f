-- The platform's own counters of each company equal the counts of the loaded records.
{{ config(severity='warn') }}

select company_id, counter, platform_count, our_count
from {{ ref('fct_company_counters') }}
where difference <> 0
