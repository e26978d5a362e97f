-- audit: placements_have_fees
-- At most a tenth of the placements have no known fee.
{{ config(severity='warn') }}

select question, missing, total
from {{ ref('sum_coverage') }}
where question = 'placements_with_fee' and missing > 0.1 * total
