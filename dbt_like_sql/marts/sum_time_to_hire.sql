-- model: sum_time_to_hire
-- grain: one row per group_by (all, booking_type, source_group ...) and group_name
-- The distribution of the days to hire.

with

hires as (
    select *, strftime(hired_month, '%Y-%m') as month from {{ ref('fct_time_to_hire') }}
)

select
    case
        when grouping(booking_type) = 0 then 'booking_type'
        when grouping(source_group) = 0 then 'source_group'
        when grouping(consultant_id) = 0 then 'consultant'
        when grouping(team) = 0 then 'team'
        when grouping(company_id) = 0 then 'company'
        when grouping(month) = 0 then 'month'
        else 'all'
    end as group_by,
    case
        when grouping(team) = 0 then coalesce(team, 'unknown')
        when grouping(month) = 0 then coalesce(month, 'unknown')
        else coalesce(booking_type, source_group, consultant_name, company_name, 'all')
    end as group_name,
    coalesce(consultant_id, company_id) as group_id,
    count(*) as placements,
    count(days_to_hire) as measured,
    count(days_to_hire) / nullif(count(*), 0) as measured_share,
    round(avg(days_to_hire), 2) as mean_days,
    round(quantile_cont(days_to_hire, 0.10), 2) as p10_days,
    round(quantile_cont(days_to_hire, 0.25), 2) as p25_days,
    round(quantile_cont(days_to_hire, 0.50), 2) as p50_days,
    round(quantile_cont(days_to_hire, 0.75), 2) as p75_days,
    round(quantile_cont(days_to_hire, 0.90), 2) as p90_days,
    round(quantile_cont(working_days_to_hire, 0.50), 2) as p50_working_days
from hires
group by grouping sets (
    (), (booking_type), (source_group), (consultant_id, consultant_name),
    (team), (company_id, company_name), (month)
)
