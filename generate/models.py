"""The staging views of `dbt_like_sql`, their descriptions, and queries that name each resource.

A view passes on every column that its landing table has. A query over all resources is written for
jobs alone: the first select of its block is repeated for each of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.catalog.resource import Declaration
from generate.files import (
    COMMAND,
    ROOT,
    BlockMissing,
    Texts,
    block_content,
    block_names,
    read_or_empty,
    replace_block,
    wrap_list,
)

_FOLDER = "dbt_like_sql"
_STAGING = f"{_FOLDER}/staging"
_PART = ("content_type_fields", "stg_content_type_fields")
"""The landing table of a content type's fields, and its view."""
_LAST = ("created_at", "updated_at")
"""Fields that a view passes on behind the columns of its own."""


# -- Views -----------------------------------------------------------------------------------------


def staging_views() -> Texts:
    """Return the SQL of each resource's staging view, with all columns of its landing table."""
    texts = {_view_path(each.view): _view_sql(each) for each in CATALOG.values()}
    fields = ContentTypeField.fields_declared.values()
    part = [
        *_select_expressions(fields, "content_type_field"),
        "_content_type_id as content_type_id",
    ]
    texts[_view_path(_PART[1])] = _fill_columns(_view_path(_PART[1]), _PART[0], part)
    return texts


def _view_path(view: str) -> str:
    """Return the path of a staging view's SQL file."""
    return f"{_STAGING}/{view}.sql"


def _view_sql(resource: Declaration) -> str:
    """Return the SQL of a resource's staging view: the existing file, with current columns."""
    fields = [each for each in resource.detail_fields if each.name not in _LAST]
    columns = list(_select_expressions(fields, _id_prefix(resource)))
    if resource.parent:
        parent = _id_prefix(CATALOG[resource.parent])
        columns.insert(1, f"_{parent}_id as {parent}_id")
    return _fill_columns(
        _view_path(resource.view), resource.name, columns, _view_template(resource)
    )


def _id_prefix(resource: Declaration) -> str:
    """Return the name of the resource's id column without `_id`."""
    return resource.singular.replace(" ", "_")


def _select_expressions(fields: Iterable[Field], key: str) -> Iterator[str]:
    """Yield the SELECT expression of each field; `id` gets the prefix `key`."""
    for each in fields:
        if each.kind is not Kind.ARRAY:
            yield f"id as {key}_id" if each.name == "id" else each.name


def _fill_columns(path: str, name: str, columns: list[str], new: str = "") -> str:
    """Return the view's SQL with these columns. `new` is the SQL of a view without a file.

    Raises `BlockMissing` if the file was written by hand.
    """
    text = read_or_empty(path) or new
    try:
        return replace_block(text, f"columns of {name}", wrap_list(columns, "    ") + ",\n")
    except BlockMissing:
        raise BlockMissing(
            f"{path} is written by hand: give the resource a view of another name on its page,"
            f' for example view="stg_api_{name}"'
        ) from None


def _view_template(resource: Declaration) -> str:
    """Return the SQL of a new staging view, with an empty block for its columns."""
    return f"""{{{{ config(materialized='view') }}}}

with

source as (
    select * from {{{{ source('landing', '{resource.name}') }}}} where _deleted_at is null
)

select
    -- columns of {resource.name}: written by `{COMMAND}`
    -- end of columns of {resource.name}
    created_at, updated_at,
    _hydrated_at is not null as is_fully_read,
    _hydrated_at as hydrated_at,
    _run_id as run_id
from source
"""


# -- Descriptions ----------------------------------------------------------------------------------


def yaml_descriptions() -> Texts:
    """Return `sources.yml` and `schema.yml`: landing tables with tests, and undescribed views."""
    sources = read_or_empty(f"{_STAGING}/sources.yml")
    landing = "".join(line for each in CATALOG.values() for line in _source_table_yaml(each))
    history = "".join(f"      - name: {name}\n" for name in CATALOG)
    sources = replace_block(sources, "landed tables", f"{landing}      - name: {_PART[0]}\n")
    sources = replace_block(sources, "tables of versions", history)
    schema = read_or_empty(f"{_STAGING}/schema.yml")
    name = "views of other resources"
    by_hand = (
        schema.replace(block_content(schema, name), "") if block_content(schema, name) else schema
    )
    others = (e for e in CATALOG.values() if f"- name: {e.view}\n" not in by_hand)
    schema = replace_block(schema, name, "".join(map(_view_yaml, others)))
    return {f"{_STAGING}/sources.yml": sources, f"{_STAGING}/schema.yml": schema}


def _source_table_yaml(resource: Declaration) -> Iterator[str]:
    """Yield YAML lines of a landing table with its tests."""
    yield f"      - name: {resource.name}\n        columns:\n"
    yield "          - {name: id, data_tests: [unique, not_null]}\n"
    for each in resource.fields.values():
        if each.values and each.filterable:
            converted = [resource.converted_status] if each.name == "status" else []
            values = [*each.values, *filter(None, converted)]
            yield f"          - name: {each.name}\n            data_tests:\n"
            yield "              - accepted_values:\n                  arguments:\n"
            items = [f"[{values[0]}", *values[1:-1], f"{values[-1]}]"]
            yield f"                    values:\n{wrap_list(items, ' ' * 22, 98)}\n"
            yield "                  config: {severity: warn}\n"


def _view_yaml(resource: Declaration) -> str:
    """Return a YAML description of a staging view without a description by hand."""
    name, key = resource.name.replace("_", " "), _id_prefix(resource)
    return f"""  - name: {resource.view}
    description: >-
      {name.capitalize()} in their current state, without deleted ones.
      One row per {resource.singular}.
    columns:
      - name: {key}_id
        description: "The {resource.singular}'s id."
        data_tests: [unique, not_null]
      - name: is_fully_read
        description: "Whether the whole record was read, and not only listed."

"""


# -- Queries over all resources --------------------------------------------------------------------


def queries_per_resource() -> Texts:
    """Return the SQL files of audits and models that contain one SELECT for each resource."""
    texts = {}
    for path in sorted((ROOT / _FOLDER).rglob("*.sql")):
        text = path.read_text(encoding="utf-8")
        for name in block_names(text):
            if name.startswith("each resource"):
                text = replace_block(
                    text, name, _repeat_select(block_content(text, name), "parts" in name)
                )
                texts[path.relative_to(ROOT).as_posix()] = text
    return texts


def _repeat_select(selects: str, has_parts: bool) -> str:
    """Repeat the first SELECT for each resource; with `has_parts` also for content type fields."""
    first, _, _ = selects.partition("    union all\n")
    tables = [(each.name, each.view) for each in CATALOG.values()] + [_PART] * has_parts
    return "    union all\n".join(
        first.replace("stg_jobs", view).replace("'jobs'", f"'{name}'") for name, view in tables
    )
