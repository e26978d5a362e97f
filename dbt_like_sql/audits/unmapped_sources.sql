-- Every source in the records has a group in the seed source_groups.
{{ config(severity='warn') }}

select source, candidates, leads
from {{ ref('dim_sources') }}
where source_group = 'unmapped'
