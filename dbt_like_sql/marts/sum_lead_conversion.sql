with

leads as (
    select
        *,
        strftime(created_month, '%Y-%m') as month,
        case when is_converted then days_to_convert end as converted_days
    from {{ ref('fct_lead_conversion') }}
),

counted as (
    select
        case
            when grouping(source_group) = 0 then 'source_group'
            when grouping(consultant_id) = 0 then 'consultant'
            when grouping(team) = 0 then 'team'
            when grouping(lead_status_id) = 0 then 'lead_status'
            when grouping(month) = 0 then 'month'
            else 'all'
        end as group_by,
        case when grouping(team) = 0 then coalesce(team, 'unknown')
            when grouping(month) = 0 then coalesce(month, 'unknown')
            else coalesce(source_group, consultant_name, lead_status_name, 'all')
        end as group_name,
        coalesce(consultant_id, lead_status_id) as group_id,
        count(*) as leads,
        count(*) filter (where is_converted) as converted,
        count(*) filter (where is_lost) as lost,
        count(converted_days) as converted_with_date,
        round(quantile_cont(converted_days, 0.50), 2) as p50_days_to_convert
    from leads
    group by grouping sets (
        (), (source_group), (consultant_id, consultant_name), (team),
        (lead_status_id, lead_status_name), (month)
    )
)

select
    group_by, group_name, group_id,
    leads, converted, lost,
    converted / nullif(leads, 0) as conversion_rate,
    converted_with_date,
    p50_days_to_convert
from counted
