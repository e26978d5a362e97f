with

meetings as (
    select job_id, candidate_id, 1 as interviews, is_held::integer as held, 0 as placements
    from {{ ref('stg_interviews') }}
    union all
    select job_id, candidate_id, 0, 0, 1 from {{ ref('fct_placements') }}
    where is_placement
),

candidates as (
    select
        job_id,
        candidate_id,
        sum(interviews) as interviews,
        sum(held) as held,
        sum(placements) as placements
    from meetings
    group by job_id, candidate_id
),

counted as (
    select
        job_id,
        sum(interviews)::bigint as interviews,
        sum(held)::bigint as interviews_held,
        sum(placements)::bigint as placements,
        count(*) filter (where interviews > 0) as candidates_with_interview,
        count(*) filter (where held > 0) as candidates_interviewed,
        count(*) filter (where held > 1) as candidates_interviewed_again,
        count(*) filter (where placements > 0) as candidates_placed,
        count(*) filter (where placements > 0 and held > 0)
            as candidates_placed_after_interview
    from candidates
    group by job_id
),

cancelled as (
    select job_id, count(*) as interviews_cancelled
    from {{ ref('stg_bookings') }}
    where booking_type = 'interview' and status = 'cancelled'
    group by job_id
)

select
    jobs.job_id,
    jobs.job_title,
    jobs.job_status,
    jobs.is_open,
    jobs.is_decided,
    jobs.company_id,
    jobs.company_name,
    jobs.consultant_id,
    jobs.consultant_name,
    jobs.team,
    jobs.employment_type,
    jobs.positions,
    coalesce(counted.interviews, 0) as interviews,
    coalesce(counted.interviews_held, 0) as interviews_held,
    coalesce(cancelled.interviews_cancelled, 0) as interviews_cancelled,
    coalesce(counted.candidates_with_interview, 0) as candidates_with_interview,
    coalesce(counted.candidates_interviewed, 0) as candidates_interviewed,
    coalesce(counted.candidates_interviewed_again, 0) as candidates_interviewed_again,
    coalesce(counted.candidates_placed, 0) as candidates_placed,
    coalesce(counted.candidates_placed_after_interview, 0) as candidates_placed_after_interview,
    coalesce(counted.candidates_placed - counted.candidates_placed_after_interview, 0)
        as candidates_placed_without_interview,
    coalesce(counted.placements, 0) as placements,
    counted.candidates_placed_after_interview / nullif(counted.candidates_interviewed, 0)
        as interview_to_placement_rate,
    counted.interviews_held / nullif(counted.placements, 0) as interviews_per_placement
from {{ ref('dim_jobs') }} as jobs
left join counted on counted.job_id = jobs.job_id
left join cancelled on cancelled.job_id = jobs.job_id
