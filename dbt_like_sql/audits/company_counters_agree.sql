-- audit: company_counters_agree
-- The platform's own counters of each company are those of what landed.
{{ config(severity='warn') }}

select company_id, counter, platform_count, our_count
from {{ ref('fct_company_counters') }}
where difference <> 0
