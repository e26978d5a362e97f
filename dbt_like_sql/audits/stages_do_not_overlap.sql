-- audit: stages_do_not_overlap
-- No candidate is in two stages at the same time. A live candidate with a known stage is in one.

with

visits as (
    select
        candidate_id, visit_number, entered_at, is_current,
        lag(coalesce(left_at, 'infinity')) over (
            partition by candidate_id order by visit_number
        ) as left_before
    from {{ ref('fct_candidate_stages') }}
),

overlapping as (
    select candidate_id from visits where entered_at < left_before
),

homeless as (
    select candidates.candidate_id
    from {{ ref('dim_candidates') }} as candidates
    left join visits on visits.candidate_id = candidates.candidate_id and visits.is_current
    where candidates.stage <> 'unknown'
    group by candidates.candidate_id
    having count(visits.candidate_id) <> 1
)

select candidate_id from overlapping
union
select candidate_id from homeless
