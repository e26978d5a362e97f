"""What `dbt_like_sql` has for each resource: a staging view, descriptions, and parts of queries.

A query over all resources is written for jobs alone: the first select of its block is repeated for
each of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from generate.files import (
    ROOT,
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

# -- Views -----------------------------------------------------------------------------------------


def staging_views() -> Texts:
    """Return the SQL of the staging view of each resource that has none."""
    paths = {f"{_STAGING}/{each.view}.sql": each for each in CATALOG.values()}
    return {p: _view_sql(each) for p, each in paths.items() if not (ROOT / p).exists()}


def _id_prefix(resource: Declaration) -> str:
    """Return the name of the resource's id column without `_id`."""
    return resource.singular.replace(" ", "_")


def _view_sql(resource: Declaration) -> str:
    """Return the SQL of a new staging view, which passes on every field of its landing table."""
    return f"""{{{{ config(materialized='view') }}}}

with

source as (
    select * from {{{{ source('landing', '{resource.name}') }}}} where _deleted_at is null
)

select
    id as {_id_prefix(resource)}_id,
    * exclude (id, created_at, updated_at, _record, _hydrated_at, _deleted_at, _run_id),
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
