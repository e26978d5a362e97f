-- No rate or share is below 0 or above 1.

with

rates as (
    select 'sum_stage_conversion' as mart,
        unnest([conversion_rate, pass_through_rate, decided_rate]) as rate
    from {{ ref('sum_stage_conversion') }}
    union all
    select 'sum_offer_acceptance', acceptance_rate from {{ ref('sum_offer_acceptance') }}
    union all
    select 'sum_time_to_fill', measured_share from {{ ref('sum_time_to_fill') }}
    union all
    select 'sum_time_in_stage', measured_share from {{ ref('sum_time_in_stage') }}
    union all
    select 'sum_stage_survival', survival_probability from {{ ref('sum_stage_survival') }}
    union all
    select 'sum_client_fill_rate', unnest([marked_filled_rate, position_placed_rate])
    from {{ ref('sum_client_fill_rate') }}
    union all
    select 'sum_source_effectiveness', unnest([interview_rate, placement_rate])
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'sum_fee_forecast', fee_coverage from {{ ref('sum_fee_forecast') }}
    union all
    select 'sum_contract_billings', rate_coverage from {{ ref('sum_contract_billings') }}
    union all
    select 'sum_coverage', coverage from {{ ref('sum_coverage') }}
    union all
    select 'data_freshness', fully_read_share from {{ ref('data_freshness') }}
)

select mart, rate
from rates
where rate < 0 or rate > 1 or not isfinite(rate)
