with

openings as (
    select
        fills.*,
        strftime(fills.filled_month, '%Y-%m') as month,
        strftime(fills.opened_month, '%Y-%m') as month_opened,
        if(fills.outcome = 'open', greatest(as_of.as_of_date - fills.opened_on, 0), null)
            as open_days
    from {{ ref('fct_time_to_fill') }} as fills
    cross join {{ ref('as_of') }} as as_of
    where fills.outcome in ('filled', 'partly_filled', 'open')
)

select
    case
        when grouping(employment_type) = 0 then 'employment_type'
        when grouping(consultant_id) = 0 then 'consultant'
        when grouping(company_id) = 0 then 'company'
        when grouping(team) = 0 then 'team'
        when grouping(month) = 0 then 'month'
        when grouping(month_opened) = 0 then 'opened_month'
        else 'all'
    end as group_by,
    case
        when grouping(employment_type) = 0 then coalesce(employment_type, 'unknown')
        when grouping(team) = 0 then coalesce(team, 'unknown')
        when grouping(month) = 0 then coalesce(month, 'unknown')
        when grouping(month_opened) = 0 then coalesce(month_opened, 'unknown')
        else coalesce(consultant_name, company_name, 'all')
    end as group_name,
    coalesce(consultant_id, company_id) as group_id,
    count(*) filter (where outcome <> 'open') as openings_filled,
    count(days_to_fill) as measured,
    count(days_to_fill) / nullif(openings_filled, 0) as measured_share,
    round(avg(days_to_fill), 2) as mean_days,
    round(quantile_cont(days_to_fill, 0.10), 2) as p10_days,
    round(quantile_cont(days_to_fill, 0.25), 2) as p25_days,
    round(quantile_cont(days_to_fill, 0.50), 2) as p50_days,
    round(quantile_cont(days_to_fill, 0.75), 2) as p75_days,
    round(quantile_cont(days_to_fill, 0.90), 2) as p90_days,
    round(quantile_cont(working_days_to_fill, 0.50), 2) as p50_working_days,
    -- An open opening has no month of fill.
    if(grouping(month) = 0, null, count(*) filter (where outcome = 'open')) as openings_open,
    if(grouping(month) = 0, null, round(quantile_cont(open_days, 0.50), 2)) as open_p50_days
from openings
group by grouping sets (
    (), (employment_type), (consultant_id, consultant_name), (team), (company_id, company_name),
    (month), (month_opened)
)
-- The month is the month of the fill.
having grouping(month) = 1 or openings_filled > 0
