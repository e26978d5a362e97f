-- model: fct_placement_outcomes
-- grain: one row per permanent or contract booking that was agreed, cancelled ones included
-- The result of each agreed placement: started, completed or cancelled, when and why.

with

-- The cancellation's versions are those after the last status that was not cancelled.
versions as (
    select
        booking_id,
        stands,
        status,
        valid_from,
        version,
        max(version) filter (where status <> 'cancelled') over (partition by booking_id)
            as last_not_cancelled
    from {{ ref('stg_booking_versions') }}
    where booking_type in ('permanent', 'contract') and status is not null
),

seen as (
    select
        booking_id,
        bool_or(stands) as was_agreed,
        -- If a booking was already cancelled when it was first read, the day is unknown.
        min(valid_from) filter (where version > last_not_cancelled) as cancelled_at
    from versions
    group by booking_id
),

agreed as (
    select
        bookings.*,
        placements.completed_on,
        placements.booking_id is null as is_cancelled,
        case when placements.booking_id is null
            then (seen.cancelled_at at time zone bookings.time_zone)::date
        end as cancelled_on,
        (bookings.start_date + to_months(bookings.probation_period_months))::date
            as probation_end_on
    from {{ ref('stg_bookings') }} as bookings
    join seen on seen.booking_id = bookings.booking_id
    left join {{ ref('stg_placements') }} as placements
        on placements.booking_id = bookings.booking_id
    where placements.booking_id is not null
        or (
            bookings.status = 'cancelled'
            and (seen.was_agreed or bookings.offer_accepted_date is not null)
        )
)

select
    agreed.booking_id,
    agreed.booking_type,
    agreed.status as booking_status,
    agreed.candidate_id,
    agreed.job_id,
    jobs.job_title,
    coalesce(agreed.company_id, jobs.company_id) as company_id,
    case when coalesce(agreed.company_id, jobs.company_id) is null then 'no company'
        else coalesce(companies.name, 'unknown company')
    end as company_name,
    coalesce(agreed.assigned_to, jobs.consultant_id) as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    agreed.agreed_on,
    date_trunc('month', agreed.agreed_on)::date as agreed_month,
    agreed.start_date,
    case
        when agreed.is_cancelled and agreed.cancelled_on >= agreed.start_date
            then 'cancelled_after_start'
        when agreed.is_cancelled and agreed.cancelled_on is not null
            then 'cancelled_before_start'
        when agreed.is_cancelled then 'cancelled'
        when agreed.completed_on is not null then 'completed'
        when agreed.start_date <= as_of.as_of_date then 'started'
        else 'to_come'
    end as outcome,
    agreed.is_cancelled as is_fall_off,
    agreed.cancelled_on,
    agreed.cancelled_on - agreed.agreed_on as days_until_cancelled,
    case when agreed.is_cancelled then nullif(trim(agreed.cancellation_reason), '') end
        as cancellation_reason,
    agreed.probation_period_months,
    agreed.probation_end_on,
    case
        when agreed.probation_end_on is null then null
        when agreed.is_cancelled and agreed.cancelled_on is null then null
        when agreed.is_cancelled and agreed.cancelled_on < agreed.start_date then 'not_started'
        when agreed.is_cancelled and agreed.cancelled_on < agreed.probation_end_on then 'failed'
        when as_of.as_of_date >= agreed.probation_end_on then 'passed'
        else 'running'
    end as probation_state,
    agreed.time_zone,
    agreed.is_fully_read
from agreed
cross join {{ ref('as_of') }} as as_of
left join {{ ref('dim_jobs') }} as jobs on jobs.job_id = agreed.job_id
left join {{ ref('stg_known_companies') }} as companies
    on companies.company_id = coalesce(agreed.company_id, jobs.company_id)
left join {{ ref('dim_people') }} as people
    on people.person_id = coalesce(agreed.assigned_to, jobs.consultant_id)
