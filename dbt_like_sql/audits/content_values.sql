-- Every value of a content item has its field's type. A value of another type is null in the
-- type's view, and unchanged in landing.content_items.
{{ config(severity='warn') }}

select
    item_id,
    field_id,
    content_type_id
from {{ ref('content_values') }}
where not fits
