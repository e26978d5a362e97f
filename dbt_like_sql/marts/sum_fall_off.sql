-- model: sum_fall_off
-- grain: one row per group_by (all, booking_type, consultant, team, company, month) and group_name
-- Share of agreed placements that were cancelled, with the number of placements.

with

outcomes as (
    select *, strftime(agreed_month, '%Y-%m') as month
    from {{ ref('fct_placement_outcomes') }}
)

select
    case
        when grouping(booking_type) = 0 then 'booking_type'
        when grouping(consultant_id) = 0 then 'consultant'
        when grouping(team) = 0 then 'team'
        when grouping(company_id) = 0 then 'company'
        when grouping(month) = 0 then 'month'
        else 'all'
    end as group_by,
    case
        when grouping(booking_type) = 0 then booking_type
        when grouping(team) = 0 then coalesce(team, 'unknown')
        when grouping(month) = 0 then coalesce(month, 'unknown')
        else coalesce(consultant_name, company_name, 'all')
    end as group_name,
    coalesce(consultant_id, company_id) as group_id,
    count(*) as placements_agreed,
    count(*) filter (where is_fall_off) as placements_cancelled,
    count(*) filter (where outcome = 'cancelled_before_start') as cancelled_before_start,
    count(*) filter (where outcome = 'cancelled_after_start') as cancelled_after_start,
    count(*) filter (where probation_state = 'failed') as cancelled_in_probation,
    placements_cancelled / nullif(placements_agreed, 0) as fall_off_rate,
    round(quantile_cont(days_until_cancelled, 0.5), 2) as p50_days_until_cancelled
from outcomes
group by grouping sets (
    (), (booking_type), (consultant_id, consultant_name), (team), (company_id, company_name), (month)
)
