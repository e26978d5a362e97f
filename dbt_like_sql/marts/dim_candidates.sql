with

-- A list may have shown a status that no detail has shown yet; the history has it first.
current_visits as (
    select candidate_id, stage from {{ ref('fct_candidate_stages') }} where is_current
)

select
    candidates.candidate_id,
    trim(concat_ws(' ', candidates.first_name, candidates.last_name)) as full_name,
    candidates.first_name,
    candidates.last_name,
    candidates.email,
    candidates.phone,
    candidates.mobile,
    candidates.city,
    candidates.country,
    candidates.current_job_title,
    candidates.current_company,
    candidates.employment_type,
    candidates.employment_status,
    coalesce(current_visits.stage, candidates.status, 'unknown') as stage,
    candidates.source_key as source,
    sources.source_group,
    candidates.assigned_to as consultant_id,
    coalesce(people.person_name, 'unassigned') as consultant_name,
    people.team,
    candidates.skills,
    candidates.years_of_experience,
    try_cast(candidates.expected_salary as decimal(18, 2)) as expected_salary,
    nullif(regexp_extract(upper(trim(candidates.salary_currency)), '^[A-Z]{3}$'), '') as salary_currency,
    try_cast(candidates.expected_day_rate as decimal(18, 2)) as expected_day_rate,
    nullif(regexp_extract(upper(trim(candidates.rate_currency)), '^[A-Z]{3}$'), '') as rate_currency,
    candidates.notice_period_days,
    candidates.available_from,
    candidates.rating,
    candidates.created_at,
    candidates.updated_at,
    candidates.is_fully_read
from {{ ref('stg_candidates') }} as candidates
left join current_visits on current_visits.candidate_id = candidates.candidate_id
left join {{ ref('dim_sources') }} as sources on sources.source = candidates.source_key
left join {{ ref('stg_people') }} as people on people.person_id = candidates.assigned_to
