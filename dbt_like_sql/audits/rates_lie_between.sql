-- No rate or share is below 0 or above 1.

with

rates as (
    select 'sum_time_in_stage' as mart, measured_share as rate from {{ ref('sum_time_in_stage') }}
    union all
    select 'dim_companies', unnest([marked_filled_rate, position_placed_rate])
    from {{ ref('dim_companies') }}
    union all
    select 'sum_source_effectiveness', unnest([interview_rate, placement_rate, lead_conversion_rate])
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'sum_months', unnest([fee_coverage, rate_coverage]) from {{ ref('sum_months') }}
    union all
    select 'data_quality', coverage from {{ ref('data_quality') }}
)

select mart, rate
from rates
where rate < 0 or rate > 1 or not isfinite(rate)
