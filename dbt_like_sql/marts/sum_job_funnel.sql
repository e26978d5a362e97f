with

summed as (
    select
        case
            when grouping(company_id) = 0 then 'company'
            when grouping(consultant_id) = 0 then 'consultant'
            when grouping(team) = 0 then 'team'
            when grouping(employment_type) = 0 then 'employment_type'
            else 'all'
        end as group_by,
        case
            when grouping(team) = 0 then coalesce(team, 'unknown')
            when grouping(employment_type) = 0 then coalesce(employment_type, 'unknown')
            else coalesce(company_name, consultant_name, 'all')
        end as group_name,
        coalesce(company_id, consultant_id) as group_id,
        count(*) as jobs,
        count(*) filter (where candidates_with_interview > 0) as jobs_with_interview,
        count(*) filter (where candidates_interviewed > 0) as jobs_interviewed,
        count(*) filter (where placements > 0) as jobs_with_placement,
        coalesce(sum(interviews), 0)::bigint as interviews,
        coalesce(sum(interviews_held), 0)::bigint as interviews_held,
        coalesce(sum(candidates_with_interview), 0)::bigint as candidate_job_pairs_with_interview,
        coalesce(sum(candidates_interviewed), 0)::bigint as candidate_job_pairs_interviewed,
        coalesce(sum(candidates_interviewed_again), 0)::bigint
            as candidate_job_pairs_interviewed_again,
        coalesce(sum(candidates_placed), 0)::bigint as candidate_job_pairs_placed,
        coalesce(sum(candidates_placed_after_interview), 0)::bigint
            as candidate_job_pairs_placed_after_interview,
        coalesce(sum(placements), 0)::bigint as placements
    from {{ ref('fct_job_funnel') }}
    group by grouping sets (
        (), (company_id, company_name), (consultant_id, consultant_name), (team),
        (employment_type)
    )
)

select
    *,
    candidate_job_pairs_placed_after_interview / nullif(candidate_job_pairs_interviewed, 0)
        as interview_to_placement_rate,
    interviews_held / nullif(placements, 0) as interviews_per_placement
from summed
