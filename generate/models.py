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
    NotGenerated,
    Texts,
    block,
    block_names,
    read,
    with_block,
    wrapped,
)

_FOLDER = "dbt_like_sql"
_STAGING = f"{_FOLDER}/staging"
_PART = ("content_type_fields", "stg_content_type_fields")
"""The landing table of a content type's fields, and its view."""
_LAST = ("created_at", "updated_at")
"""Fields that a view passes on behind the columns of its own."""


# -- Views -----------------------------------------------------------------------------------------


def staging() -> Texts:
    """Each resource's view, with every column that it lands."""
    texts = {_path(each.view): _view(each) for each in CATALOG.values()}
    fields = ContentTypeField.fields_declared.values()
    part = [*_passed_on(fields, "content_type_field"), "_content_type_id as content_type_id"]
    texts[_path(_PART[1])] = _with_columns(_path(_PART[1]), _PART[0], part)
    return texts


def _path(view: str) -> str:
    return f"{_STAGING}/{view}.sql"


def _view(resource: Declaration) -> str:
    fields = [each for each in resource.detail_fields if each.name not in _LAST]
    columns = list(_passed_on(fields, _key(resource)))
    if resource.parent:
        parent = _key(CATALOG[resource.parent])
        columns.insert(1, f"_{parent}_id as {parent}_id")
    return _with_columns(_path(resource.view), resource.name, columns, _new_view(resource))


def _key(resource: Declaration) -> str:
    return resource.singular.replace(" ", "_")


def _passed_on(fields: Iterable[Field], key: str) -> Iterator[str]:
    for each in fields:
        if each.kind is not Kind.ARRAY:
            yield f"id as {key}_id" if each.name == "id" else each.name


def _with_columns(path: str, name: str, columns: list[str], new: str = "") -> str:
    text = read(path) or new
    try:
        return with_block(text, f"columns of {name}", wrapped(columns, "    ") + ",\n")
    except NotGenerated:
        raise NotGenerated(
            f"{path} is written by hand: give the resource a view of another name on its page,"
            f' for example view="stg_api_{name}"'
        ) from None


def _new_view(resource: Declaration) -> str:
    return f"""-- model: {resource.view}
-- grain: one row per live {resource.singular}
-- {resource.name.replace("_", " ").capitalize()} as they stand, deletions left out.
{{{{ config(materialized='view') }}}}

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
    _seen_at as seen_at,
    _run_id as run_id
from source
"""


# -- Descriptions ----------------------------------------------------------------------------------


def descriptions() -> Texts:
    """The landed tables with their tests, and views that nobody has described by hand."""
    sources = read(f"{_STAGING}/sources.yml")
    landing = "".join(line for each in CATALOG.values() for line in _landed(each))
    history = "".join(f"      - name: {name}\n" for name in CATALOG)
    sources = with_block(sources, "landed tables", f"{landing}      - name: {_PART[0]}\n")
    sources = with_block(sources, "tables of versions", history)
    schema = read(f"{_STAGING}/schema.yml")
    name = "views of other resources"
    by_hand = schema.replace(block(schema, name), "") if block(schema, name) else schema
    others = (e for e in CATALOG.values() if f"- name: {e.view}\n" not in by_hand)
    schema = with_block(schema, name, "".join(map(_described, others)))
    return {f"{_STAGING}/sources.yml": sources, f"{_STAGING}/schema.yml": schema}


def _landed(resource: Declaration) -> Iterator[str]:
    yield f"      - name: {resource.name}\n        columns:\n"
    yield "          - {name: id, data_tests: [unique, not_null]}\n"
    for each in resource.fields.values():
        if each.values and each.filterable:
            converted = [resource.converted_status] if each.name == "status" else []
            values = [*each.values, *filter(None, converted)]
            yield f"          - name: {each.name}\n            data_tests:\n"
            yield "              - accepted_values:\n                  arguments:\n"
            yield f"                    values:\n{wrapped(_listed(values), ' ' * 22, 98)}\n"
            yield "                  config: {severity: warn}\n"


def _listed(values: list[str]) -> list[str]:
    return [f"[{values[0]}", *values[1:-1], f"{values[-1]}]"]


def _described(resource: Declaration) -> str:
    name, key = resource.name.replace("_", " "), _key(resource)
    return f"""  - name: {resource.view}
    description: >-
      {name.capitalize()} as they stand, deletions left out.
      One row per {resource.singular}.
    columns:
      - name: {key}_id
        description: "The {resource.singular}'s id."
        data_tests: [unique, not_null]
      - name: is_fully_read
        description: "Whether the whole record was read, and not only listed."

"""


# -- Queries over all resources --------------------------------------------------------------------


def per_resource() -> Texts:
    """Audits and models that hold one select for each resource."""
    texts = {}
    for path in sorted((ROOT / _FOLDER).rglob("*.sql")):
        text = path.read_text(encoding="utf-8")
        for name in block_names(text):
            if name.startswith("each resource"):
                text = with_block(text, name, _repeated(block(text, name), "parts" in name))
                texts[path.relative_to(ROOT).as_posix()] = text
    return texts


def _repeated(selects: str, has_parts: bool) -> str:
    first, _, _ = selects.partition("    union all\n")
    tables = [(each.name, each.view) for each in CATALOG.values()] + [_PART] * has_parts
    return "    union all\n".join(
        first.replace("stg_jobs", view).replace("'jobs'", f"'{name}'") for name, view in tables
    )
