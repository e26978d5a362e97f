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

comments as (
    select
        n.content_type_id,
        n.view_name,
        c.column_name,
        concat_ws(': ', nullif(c.field_name, ''), nullif(c.help_text, '')) as comment
    from {{ ref('content_columns') }} as c
    inner join {{ ref('content_names') }} as n on n.content_type_id = c.content_type_id
    union all
    select n.content_type_id, n.view_name, c.column_name, c.comment
    from duckdb_columns() as c
    cross join {{ ref('content_names') }} as n
    where
        c.database_name = current_database()
        and c.schema_name = 'landing'
        and c.table_name = 'content_items'
        and c.column_name in (
            'id', 'title', 'slug', 'status', 'published_at', 'created_at', 'updated_at'
        )
),

commented as (
    select
        content_type_id,
        string_agg(
            '; comment on column marts."' || view_name || '"."' || column_name || '" is '''
            || replace(comment, '''', '''''') || '''',
            '' order by column_name
        ) as column_comments
    from comments
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
        coalesce(g.picked, '') as picked,
        '; comment on view marts."' || t.view_name || '" is ''Live content items of the type '
        || replace(coalesce(t.type_name, ''), '''', '''''')
        || ', with a typed column for each field.''' || c.column_comments as commented
    from {{ ref('content_names') }} as t
    inner join commented as c on c.content_type_id = t.content_type_id
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
    || quoted_id || ''' and i._deleted_at is null' || commented as statement
from types
