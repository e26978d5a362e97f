-- Every name in a statement is a safe name from content_columns, and every id is quoted.
-- The views are created after all models: marts.content_ and the type's slug, one row per item.

{{ config(materialized='view') }}

with columns as (
    select
        content_type_id,
        column_place,
        '"' || column_name || '"' as quoted_name,
        case column_type
            when 'DOUBLE' then 'as_number'
            when 'DATE' then 'as_date'
            when 'TIMESTAMPTZ' then 'as_moment'
            when 'BOOLEAN' then 'as_boolean'
            when 'VARCHAR[]' then 'as_list'
            else 'as_text'
        end as holder,
        replace(field_id, '''', '''''') as quoted_id
    from {{ ref('content_columns') }}
),

gathered as (
    select
        content_type_id,
        string_agg(', v.' || quoted_name, '' order by column_place) as shown,
        string_agg(
            ', any_value(' || holder || ') filter (where field_id = ''' || quoted_id || ''') as '
            || quoted_name,
            '' order by column_place
        ) as picked
    from columns
    group by content_type_id
),

types as (
    select
        t.content_type_id,
        t.view_name,
        t.type_name,
        replace(t.content_type_id, '''', '''''') as quoted_id,
        -- A type without fields has a view, too.
        coalesce(g.shown, '') as shown,
        coalesce(g.picked, '') as picked
    from {{ ref('content_names') }} as t
    left join gathered as g on g.content_type_id = t.content_type_id
)

select
    content_type_id,
    type_name,
    view_name,
    'create or replace view marts."' || view_name || '" as '
    || 'select i.id, i.title, i.slug, i.status, i.published_at, i.created_at, i.updated_at'
    || shown
    || ' from landing.content_items as i left join (select item_id' || picked
    || ' from staging.content_values where content_type_id = ''' || quoted_id
    || ''' group by item_id) as v on v.item_id = i.id where i._content_type_id = '''
    || quoted_id || ''' and i._deleted_at is null' as statement
from types
