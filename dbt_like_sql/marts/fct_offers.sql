with

-- A hold decides nothing: the earlier status continues, and the status after it is the result.
unheld as (
    select
        *,
        lag(stage) over in_order as stage_before,
        last_value(left_by) over (
            in_order rows between unbounded preceding and unbounded following
        ) as last_left_by
    from {{ ref('fct_candidate_stages') }}
    where stage_kind is distinct from 'paused'
    window in_order as (partition by candidate_id order by visit_number)
),

visits as (
    select
        *,
        lead(stage) over in_order as stage_after,
        lead(entered_at) over in_order as answered_at
    from unheld
    where stage is distinct from stage_before
    window in_order as (partition by candidate_id order by visit_number)
)

select
    visits.stage_visit_id as offer_id,
    visits.candidate_id,
    -- For a record older than the local copy, the last edit does not date the offer.
    if(stage = 'offer_made' and is_entry_observed, entered_at, null) as offered_at,
    date_trunc('month', offered_at at time zone as_of.time_zone)::date as offered_month,
    case
        when stage <> 'offer_made' then 'accepted_offer_not_observed'
        when stage_after in ('offer_accepted', 'placed') then 'accepted'
        when stage_after is not null then 'declined'
        when last_left_by = 'deletion' then 'candidate_deleted'
        else 'pending'
    end as offer_outcome,
    case offer_outcome
        when 'accepted_offer_not_observed' then if(is_entry_observed, entered_at, null)
        when 'accepted' then visits.answered_at
        when 'declined' then visits.answered_at
    end as answered_at,
    offer_outcome in ('accepted', 'declined') as is_answered,
    offer_outcome = 'accepted' as is_accepted,
    visits.source,
    visits.source_group,
    visits.consultant_id,
    visits.consultant_name,
    visits.team
from visits
cross join {{ ref('as_of') }} as as_of
where visits.stage = 'offer_made'
    -- Observed change from a status before the offer to an acceptance.
    or (
        visits.stage in ('offer_accepted', 'placed')
        and visits.stage_before not in ('offer_made', 'offer_accepted', 'placed')
    )
