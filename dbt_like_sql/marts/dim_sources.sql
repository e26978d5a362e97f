with

written as (
    select source_key as source, 'candidate' as kind from {{ ref('stg_candidates') }}
    union all
    select source_key, 'lead' from {{ ref('stg_leads') }}
    union all
    -- A converted lead may be deleted, and still counts for its source.
    select distinct source_key, 'former' from {{ ref('stg_lead_versions') }}
    union all
    -- A deleted candidate's source is unknown, and the placements still count.
    select distinct 'unknown', 'former'
    from {{ ref('stg_placements') }} as placements
    anti join {{ ref('stg_candidates') }} as candidates
        on candidates.candidate_id = placements.candidate_id
),

counted as (
    select
        source,
        count(*) filter (where kind = 'candidate') as candidates,
        count(*) filter (where kind = 'lead') as leads
    from written
    group by source
),

grouped as (
    select lower(trim(source)) as source, min(source_group) as source_group
    from {{ ref('source_groups') }}
    where source_group is not null
    group by lower(trim(source))
)

select
    counted.source,
    case
        when counted.source in ('not stated', 'unread', 'unknown') then counted.source
        else coalesce(grouped.source_group, 'unmapped')
    end as source_group,
    grouped.source is not null as is_mapped,
    counted.candidates,
    counted.leads
from counted
left join grouped on grouped.source = counted.source
