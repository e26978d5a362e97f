-- audit: content_values_that_do_not_fit
-- Every value of a content item can be read as its field's type. One that cannot is null in the
-- type's view, and stays as it is in landing.content_items.
{{ config(severity='warn') }}

select
    item_id,
    field_id,
    content_type_id
from {{ ref('content_values') }}
where not fits
