with

-- A hold decides nothing: the earlier status continues, and the status after it is the result.
unheld as (
    select
        candidate_id, visit_number, stage, entered_at, is_entry_observed,
        lag(stage) over (partition by candidate_id order by visit_number) as stage_before,
        last_value(left_by) over (
            partition by candidate_id order by visit_number
            rows between unbounded preceding and unbounded following
        ) as last_left_by
    from {{ ref('fct_candidate_stages') }}
    where stage_kind is distinct from 'paused'
),

visits as (
    select
        *,
        lead(stage) over (partition by candidate_id order by visit_number) as stage_after
    from unheld
    where stage is distinct from stage_before
),

offers as (
    select
        candidate_id,
        entered_at,
        is_entry_observed,
        case
            when stage <> 'offer_made' then 'accepted_offer_not_observed'
            when stage_after in ('offer_accepted', 'placed') then 'accepted'
            when stage_after is not null then 'declined'
            when last_left_by = 'deletion' then 'candidate_deleted'
            else 'pending'
        end as outcome
    from visits
    where stage = 'offer_made'
        -- Observed change from a status before the offer to an acceptance.
        or (
            stage in ('offer_accepted', 'placed')
            and stage_before not in ('offer_made', 'offer_accepted', 'placed')
        )
),

described as (
    select
        offers.outcome,
        -- For a record older than the local copy, the last edit does not date the offer.
        case when offers.is_entry_observed
            then strftime(offers.entered_at at time zone as_of.time_zone, '%Y-%m')
            else 'not_observed'
        end as month,
        coalesce(candidates.source_group, 'unknown') as source_group,
        candidates.consultant_id,
        coalesce(candidates.consultant_name, 'unknown') as consultant_name,
        candidates.team
    from offers
    cross join {{ ref('as_of') }} as as_of
    left join {{ ref('dim_candidates') }} as candidates
        on candidates.candidate_id = offers.candidate_id
),

counted as (
    select
        case
            when grouping(month) = 0 then 'month'
            when grouping(source_group) = 0 then 'source_group'
            when grouping(consultant_id) = 0 then 'consultant'
            when grouping(team) = 0 then 'team'
            else 'all'
        end as group_by,
        case when grouping(team) = 0 then coalesce(team, 'unknown')
            else coalesce(month, source_group, consultant_name, 'all')
        end as group_name,
        consultant_id as group_id,
        count(*) filter (where outcome = 'accepted') as accepted,
        count(*) filter (where outcome = 'declined') as declined,
        count(*) filter (where outcome = 'pending') as pending,
        count(*) filter (where outcome = 'candidate_deleted') as candidate_deleted,
        count(*) filter (where outcome = 'accepted_offer_not_observed')
            as accepted_offer_not_observed
    from described
    group by grouping sets (
        (), (month), (source_group), (consultant_id, consultant_name), (team)
    )
)

select
    group_by, group_name, group_id,
    accepted + declined + pending + candidate_deleted as offers,
    accepted, declined, pending, candidate_deleted,
    accepted + declined as decided,
    accepted / nullif(accepted + declined, 0) as acceptance_rate,
    accepted_offer_not_observed
from counted
