with

days as (
    select
        unnest(generate_series(date '2000-01-01', date '2049-12-31', interval 1 day))::date as day
),

marked as (
    select
        days.day,
        holidays.name as holiday_name,
        isodow(days.day) > 5 as is_weekend,
        isodow(days.day) <= 5 and holidays.day is null as is_working_day
    from days
    left join {{ ref('holidays') }} as holidays on holidays.day = days.day
)

select
    day,
    date_trunc('week', day)::date as week_start,
    date_trunc('month', day)::date as month_start,
    holiday_name,
    is_weekend,
    is_working_day,
    sum(is_working_day::integer) over (order by day)::bigint as working_day_number
from marked
