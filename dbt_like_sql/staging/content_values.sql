-- A time without an offset is UTC, like all times of the API. A single text in a field of
-- several values is a list with one element. Empty texts are null.

{{ config(materialized='view') }}

with found as (
    select
        i.id as item_id,
        c.field_id,
        c.content_type_id,
        c.column_type,
        -- In a JSON pointer only ~ and / are special characters, so every other key is safe.
        json_extract(
            i.fields, '/' || replace(replace(c.field_key, '~', '~0'), '/', '~1')
        ) as value,
        json_type(value) as shape,
        case
            when shape in ('VARCHAR', 'BIGINT', 'UBIGINT', 'DOUBLE', 'BOOLEAN')
                then nullif(value ->> '$', '')
        end as plain
    from {{ source('landing', 'content_items') }} as i
    inner join {{ ref('content_columns') }} as c on c.content_type_id = i._content_type_id
    where i._deleted_at is null
),

typed as (
    select
        *,
        case when column_type = 'VARCHAR' then plain end as as_text,
        case
            when column_type = 'DOUBLE' and isfinite(try_cast(plain as double))
                then try_cast(plain as double)
        end as as_number,
        case when column_type = 'DATE' then try_cast(plain as date) end as as_date,
        case
            when column_type = 'TIMESTAMPTZ' then try_cast(
                case
                    when regexp_matches(plain, '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$') then plain
                    else plain || 'Z'
                end as timestamptz
            )
        end as as_moment,
        case when column_type = 'BOOLEAN' then try_cast(plain as boolean) end as as_boolean,
        case
            when column_type <> 'VARCHAR[]' then null
            when shape = 'ARRAY' then try_cast(value as varchar[])
            when plain is not null then [plain]
        end as as_list
    from found
)

select
    item_id,
    field_id,
    content_type_id,
    as_text,
    as_number,
    as_date,
    as_moment,
    as_boolean,
    as_list,
    coalesce(shape, 'NULL') <> 'NULL' and value <> '""'::json as has_value,
    coalesce(
        as_text, as_number::varchar, as_date::varchar, as_moment::varchar, as_boolean::varchar,
        as_list::varchar
    ) is not null or not has_value as fits
from typed
