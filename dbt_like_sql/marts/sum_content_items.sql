with

items as (
    select
        content_type_id,
        count(*) as items,
        count(*) filter (where status = 'published') as items_published,
        count(*) filter (where status = 'draft') as items_draft,
        max(published_at) as last_published_at,
        max(updated_at) as last_updated_at
    from {{ ref('stg_content_items') }}
    group by content_type_id
)

select
    types.content_type_id,
    coalesce(types.name, types.slug, types.content_type_id) as content_type_name,
    types.is_system,
    types.is_active,
    coalesce(items.items, 0) as items,
    coalesce(items.items_published, 0) as items_published,
    coalesce(items.items_draft, 0) as items_draft,
    items.last_published_at,
    (items.last_published_at at time zone as_of.time_zone)::date as last_published_on,
    items.last_updated_at,
    (items.last_updated_at at time zone as_of.time_zone)::date as last_updated_on
from {{ ref('stg_content_types') }} as types
cross join {{ ref('as_of') }} as as_of
left join items on items.content_type_id = types.content_type_id
