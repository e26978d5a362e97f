with

-- Grouped by quarter-hours first, since conversion to a time zone is slow: in every zone, a
-- quarter-hour is on one day.
done as (
    select assigned_to as consultant_id, epoch_us(created_at) // 900000000 as quarter,
        'candidate' as kind
    from {{ ref('stg_candidates') }}
    union all
    select assigned_to, epoch_us(created_at) // 900000000, 'lead' from {{ ref('stg_leads') }}
    union all
    select assigned_to, epoch_us(created_at) // 900000000, 'job' from {{ ref('stg_jobs') }}
),

days as (
    select
        quarters.quarter,
        (to_timestamp(quarters.quarter * 900) at time zone as_of.time_zone)::date as day
    from (select distinct quarter from done) as quarters
    cross join {{ ref('as_of') }} as as_of
),

dated as (
    select done.consultant_id, days.day, done.kind,
        null::decimal(18, 2) as reporting_fee, null as reporting_currency
    from done
    join days on days.quarter = done.quarter
    union all
    select consultant_id, created_date, 'interview_booked', null, null
    from {{ ref('fct_bookings') }}
    where counts_as in ('interview_held', 'interview_to_come')
    union all
    select consultant_id, start_date, counts_as, null, null
    from {{ ref('fct_bookings') }}
    where is_held
    union all
    select consultant_id, placed_on, 'placement', reporting_fee, reporting_currency
    from {{ ref('fct_placements') }}
    where is_placement
),

-- Days are counted first, since there are far fewer of them than records.
daily as (
    select consultant_id, day, kind, count(*) as number, count(reporting_fee) as with_fee,
        sum(reporting_fee) as reporting_fee, max(reporting_currency) as reporting_currency
    from dated
    group by consultant_id, day, kind
),

periods as (
    select *, 'week' as period, date_trunc('week', day)::date as period_start from daily
    union all
    select *, 'month' as period, date_trunc('month', day)::date as period_start from daily
),

summed as (
    select
        period,
        period_start,
        consultant_id,
        sum(number) filter (where kind = 'candidate') as candidates_added,
        sum(number) filter (where kind = 'lead') as leads_added,
        sum(number) filter (where kind = 'job') as jobs_added,
        sum(number) filter (where kind = 'interview_booked') as interviews_booked,
        sum(number) filter (where kind = 'interview_held') as interviews_held,
        sum(number) filter (where kind = 'consultation') as consultations_held,
        sum(number) filter (where kind = 'site_visit') as site_visits_held,
        sum(number) filter (where kind = 'placement') as placements,
        sum(with_fee) as placements_with_reporting_fee,
        sum(reporting_fee) as reporting_fee,
        max(reporting_currency) as reporting_currency
    from periods
    group by period, period_start, consultant_id
)

select
    summed.period,
    summed.period_start,
    summed.consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    coalesce(summed.candidates_added, 0)::bigint as candidates_added,
    coalesce(summed.leads_added, 0)::bigint as leads_added,
    coalesce(summed.jobs_added, 0)::bigint as jobs_added,
    coalesce(summed.interviews_booked, 0)::bigint as interviews_booked,
    coalesce(summed.interviews_held, 0)::bigint as interviews_held,
    coalesce(summed.consultations_held, 0)::bigint as consultations_held,
    coalesce(summed.site_visits_held, 0)::bigint as site_visits_held,
    coalesce(summed.placements, 0)::bigint as placements,
    summed.placements_with_reporting_fee::bigint as placements_with_reporting_fee,
    summed.reporting_fee::decimal(18, 2) as reporting_fee,
    summed.reporting_currency
from summed
left join {{ ref('stg_people') }} as people on people.person_id = summed.consultant_id
