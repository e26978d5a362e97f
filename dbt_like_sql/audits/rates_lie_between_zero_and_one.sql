-- audit: rates_lie_between_zero_and_one
-- No rate or share is below 0 or above 1.

with

rates as (
    select 'sum_stage_conversion.conversion_rate' as rate,
        group_by || ' ' || group_name || ' ' || stage as subject,
        conversion_rate as value
    from {{ ref('sum_stage_conversion') }}
    union all
    select 'sum_stage_conversion.pass_through_rate' as rate,
        group_by || ' ' || group_name || ' ' || stage as subject,
        pass_through_rate as value
    from {{ ref('sum_stage_conversion') }}
    union all
    select 'sum_stage_conversion.decided_rate' as rate,
        group_by || ' ' || group_name || ' ' || stage as subject,
        decided_rate as value
    from {{ ref('sum_stage_conversion') }}
    union all
    select 'sum_offer_acceptance.acceptance_rate' as rate,
        group_by || ' ' || group_name as subject,
        acceptance_rate as value
    from {{ ref('sum_offer_acceptance') }}
    union all
    select 'sum_job_funnel.interview_to_placement_rate' as rate,
        group_by || ' ' || group_name as subject,
        interview_to_placement_rate as value
    from {{ ref('sum_job_funnel') }}
    union all
    select 'sum_time_to_fill.measured_share' as rate,
        group_by || ' ' || group_name as subject,
        measured_share as value
    from {{ ref('sum_time_to_fill') }}
    union all
    select 'sum_time_to_hire.measured_share' as rate,
        group_by || ' ' || group_name as subject,
        measured_share as value
    from {{ ref('sum_time_to_hire') }}
    union all
    select 'sum_time_in_stage.measured_share' as rate,
        stage as subject,
        measured_share as value
    from {{ ref('sum_time_in_stage') }}
    union all
    select 'sum_stage_survival.survival_probability' as rate,
        stage_survival_id as subject,
        survival_probability as value
    from {{ ref('sum_stage_survival') }}
    union all
    select 'sum_lead_conversion.conversion_rate' as rate,
        group_by || ' ' || group_name as subject,
        conversion_rate as value
    from {{ ref('sum_lead_conversion') }}
    union all
    select 'sum_client_fill_rate.marked_filled_rate' as rate,
        company_key as subject,
        marked_filled_rate as value
    from {{ ref('sum_client_fill_rate') }}
    union all
    select 'sum_client_fill_rate.position_placed_rate' as rate,
        company_key as subject,
        position_placed_rate as value
    from {{ ref('sum_client_fill_rate') }}
    union all
    select 'sum_source_effectiveness.interview_rate' as rate,
        source as subject,
        interview_rate as value
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'sum_source_effectiveness.placement_rate' as rate,
        source as subject,
        placement_rate as value
    from {{ ref('sum_source_effectiveness') }}
    union all
    select 'sum_fee_forecast.fee_coverage' as rate,
        currency as subject,
        fee_coverage as value
    from {{ ref('sum_fee_forecast') }}
    union all
    select 'sum_contract_billings.rate_coverage' as rate,
        month_start::varchar as subject,
        rate_coverage as value
    from {{ ref('sum_contract_billings') }}
    union all
    select 'sum_coverage.coverage' as rate,
        question as subject,
        coverage as value
    from {{ ref('sum_coverage') }}
    union all
    select 'data_freshness.fully_read_share' as rate,
        resource as subject,
        fully_read_share as value
    from {{ ref('data_freshness') }}
)

select rate, subject, value
from rates
where value < 0 or value > 1 or not isfinite(value)
