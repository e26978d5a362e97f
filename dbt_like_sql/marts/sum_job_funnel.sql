-- model: sum_job_funnel
-- grain: one row per dimension (all, company, consultant, employment_type) and member
-- The funnels of jobs added up; a candidate counts once for each job.

with

summed as (
    select
        case
            when grouping(company_id) = 0 then 'company'
            when grouping(consultant_id) = 0 then 'consultant'
            when grouping(employment_type) = 0 then 'employment_type'
            else 'all'
        end as dimension,
        case
            when grouping(employment_type) = 0 then coalesce(employment_type, 'unknown')
            else coalesce(company_name, consultant_name, 'all')
        end as member,
        coalesce(company_id, consultant_id) as member_id,
        count(*) as jobs,
        count(*) filter (where interviews > 0) as jobs_with_interview,
        count(*) filter (where placements > 0) as jobs_with_placement,
        coalesce(sum(interviews), 0)::bigint as interviews,
        coalesce(sum(candidates_interviewed), 0)::bigint as interviewed,
        coalesce(sum(candidates_interviewed_again), 0)::bigint as interviewed_again,
        coalesce(sum(candidates_placed), 0)::bigint as placed,
        coalesce(sum(candidates_placed_after_interview), 0)::bigint as placed_after_interview,
        coalesce(sum(placements), 0)::bigint as placements
    from {{ ref('fct_job_funnel') }}
    group by grouping sets (
        (), (company_id, company_name), (consultant_id, consultant_name), (employment_type)
    )
)

select
    dimension, member, member_id,
    jobs, jobs_with_interview, jobs_with_placement,
    interviews, interviewed, interviewed_again, placed, placed_after_interview, placements,
    placed_after_interview / nullif(interviewed, 0) as interview_to_placement_rate,
    interviews / nullif(placements, 0) as interviews_per_placement
from summed
