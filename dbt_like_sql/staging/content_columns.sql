-- A key can be any text. Names consist of a-z, 0-9 and single underscores; if two of them are
-- equal, the second gets two underscores and a number, which no other name can have.

{{ config(materialized='view') }}

with fields as (
    select
        id as field_id,
        _content_type_id as content_type_id,
        field_key,
        name as field_name,
        field_type,
        display_order,
        help_text,
        left(trim(regexp_replace(lower(field_key), '[^a-z0-9]+', '_', 'g'), '_'), 40) as wanted
    from {{ source('landing', 'content_type_fields') }}
    where _deleted_at is null and field_key is not null
),

named_fields as (
    select
        *,
        case
            when wanted = '' then 'field'
            when
                regexp_matches(wanted, '^[0-9]')
                or wanted in (
                    'id', 'title', 'slug', 'status', 'published_at', 'created_at', 'updated_at'
                )
                then 'field_' || wanted
            else wanted
        end as bare,
        row_number() over (
            partition by content_type_id, bare order by display_order nulls last, field_id
        ) as place
    from fields
)

select
    f.field_id,
    f.content_type_id,
    f.bare || case when f.place > 1 then '__' || f.place else '' end as column_name,
    case f.field_type
        when 'number' then 'DOUBLE'
        when 'date' then 'DATE'
        when 'datetime' then 'TIMESTAMPTZ'
        when 'boolean' then 'BOOLEAN'
        when 'multi_select' then 'VARCHAR[]'
        else 'VARCHAR'
    end as column_type,
    f.field_key,
    f.field_name,
    f.field_type,
    f.help_text,
    row_number() over (
        partition by f.content_type_id order by f.display_order nulls last, f.field_id
    ) as column_place
from named_fields as f
