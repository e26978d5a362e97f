-- model: stg_candidate_stages
-- grain: one row per candidate status of the seed candidate_stages
-- Candidate statuses with their position in the pipeline and their kind.
{{ config(materialized='view') }}

select
    stage,
    stage_order,
    kind as stage_kind,
    coalesce(kind in ('open', 'paused'), false) as is_active,
    coalesce(kind = 'lost', false) as is_lost
from {{ ref('candidate_stages') }}
