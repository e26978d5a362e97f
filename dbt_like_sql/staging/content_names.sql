-- A slug can be any text. Names consist of a-z, 0-9 and single underscores; if two of them are
-- equal, the second gets two underscores and a number, which no other name can have.

{{ config(materialized='view') }}

with types as (
    select
        id as content_type_id,
        name as type_name,
        slug,
        left(trim(regexp_replace(lower(coalesce(slug, '')), '[^a-z0-9]+', '_', 'g'), '_'), 40)
            as wanted
    from {{ source('landing', 'content_types') }}
    where _deleted_at is null
),

numbered as (
    select
        *,
        coalesce(nullif(wanted, ''), 'type') as bare,
        row_number() over (partition by bare order by content_type_id) as place
    from types
)

select
    content_type_id,
    type_name,
    slug,
    'content_' || bare || case when place > 1 then '__' || place else '' end as view_name
from numbered
