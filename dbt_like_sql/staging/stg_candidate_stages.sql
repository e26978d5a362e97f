{{ config(materialized='view') }}

select
    stage,
    stage_order,
    kind as stage_kind,
    coalesce(kind in ('open', 'paused'), false) as is_active,
    coalesce(kind = 'lost', false) as is_lost
from {{ ref('candidate_stages') }}
