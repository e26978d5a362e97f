"""Views of the fields that the API sends and the catalog does not name.

The landing keeps these fields in `_record`. `staging.candidates_extra` has one row for each live
candidate, with its `id` and a column for each such field that any live record has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import duckdb

from connector.catalog import CATALOG
from connector.warehouse.duckdb_file import literal, quoted, transaction

ENDING = "_extra"
"""Ending of the views' names."""

_POINTER = "'/' || replace(replace(key, '~', '~0'), '/', '~1')"
_NUMBERS = {"BIGINT", "UBIGINT", "DOUBLE"}
_DIGITS_MAX = 15
"""Digits that a floating-point number keeps."""


def create_extra_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `staging.RESOURCE_extra` for each resource with undocumented fields."""
    found = connection.execute(
        "SELECT DISTINCT resource FROM sync.events WHERE kind = 'unknown_field' ORDER BY ALL"
    ).fetchall()
    with transaction(connection):
        for (resource,) in found:
            if resource in CATALOG:
                _create_view(connection, resource)


def is_extra_view(table: str) -> bool:
    """Return True for the name of a view of undocumented fields, as `schema.table`."""
    schema, _, name = table.partition(".")
    return schema == "staging" and name.removesuffix(ENDING) in CATALOG and name not in CATALOG


def _create_view(connection: duckdb.DuckDBPyConnection, resource: str) -> None:
    """Create the view of the resource's undocumented fields, if live records have any."""
    fields = connection.execute(
        f"""
        WITH extra AS (
            SELECT _record, unnest(list_filter(
                json_keys(_record), lambda name: NOT list_contains($1, name)
            )) AS key
            FROM landing.{quoted(resource)} WHERE _deleted_at IS NULL
        ),
        sent AS (
            SELECT key, {_POINTER} AS place,
                json_type(_record, {_POINTER}) AS kind,
                json_extract_string(_record, {_POINTER}) AS text
            FROM extra
        )
        SELECT key, any_value(place), list(DISTINCT kind) FILTER (kind <> 'NULL'),
            bool_and(try_cast(text AS BIGINT) IS NOT NULL) FILTER (kind <> 'NULL'),
            bool_and(length(regexp_replace(text, '[^0-9]', '', 'g')) <= {_DIGITS_MAX}),
            bool_and(regexp_full_match(text, '\\d{{4}}-\\d\\d-\\d\\d')
                AND try_cast(text AS DATE) IS NOT NULL) FILTER (kind <> 'NULL'),
            bool_and(regexp_full_match(text, '\\d{{4}}-\\d\\d-\\d\\dT.*(Z|[+-]\\d\\d:?\\d\\d)')
                AND try_cast(text AS TIMESTAMPTZ) IS NOT NULL) FILTER (kind <> 'NULL')
        FROM sent GROUP BY key ORDER BY key
        """,
        [list(CATALOG[resource].fields)],
    ).fetchall()
    if not fields:
        return
    view = f"staging.{quoted(resource + ENDING)}"
    columns, statements = ["id"], list[str]()
    names = _unique_column_names([key for key, *_ in fields])
    for (key, place, *seen), name in zip(fields, names, strict=True):
        type = _narrowest_type(*seen)
        arrow = "->" if type == "JSON" else "->>"
        value = f"(_record {arrow} {literal(place)})"
        columns.append(
            f"{value if type in ('JSON', 'VARCHAR') else f'try_cast({value} AS {type})'}"
            f" AS {quoted(name)}"
        )
        about = literal(f"Field {key} of the API, which the connector does not know.")
        statements.append(f"COMMENT ON COLUMN {view}.{quoted(name)} IS {about}")
    about = literal(f"Fields of landing.{resource} that the connector does not know.")
    connection.execute("CREATE SCHEMA IF NOT EXISTS staging")
    connection.execute(
        f"CREATE OR REPLACE VIEW {view} AS SELECT {', '.join(columns)} "
        f"FROM landing.{quoted(resource)} WHERE _deleted_at IS NULL;"
        f"COMMENT ON VIEW {view} IS {about}; {'; '.join(statements)}"
    )


def _narrowest_type(
    kinds: Collection[str] | None,
    is_whole: bool | None,  # a row of the query
    is_short: bool | None,
    is_day: bool | None,
    is_time: bool | None,
) -> str:
    """Return the narrowest column type that keeps every value of a field.

    `kinds` are DuckDB's JSON types of the values. Each flag is True if all values have the
    property: a whole number, at most 15 digits, a date, a timestamp. Without values, all of them
    are None.
    """
    kinds = set(kinds or ())
    if kinds & {"OBJECT", "ARRAY"}:
        return "JSON"
    if kinds == {"BOOLEAN"}:
        return "BOOLEAN"
    if kinds and kinds <= _NUMBERS:
        if "DOUBLE" not in kinds and is_whole:
            return "BIGINT"
        return "DOUBLE" if is_short else "VARCHAR"
    if kinds == {"VARCHAR"} and (is_day or is_time):
        return "DATE" if is_day else "TIMESTAMPTZ"
    return "VARCHAR"


def _unique_column_names(keys: Collection[str]) -> Iterator[str]:
    """Yield a column name for each field, unique without regard to case, as DuckDB requires."""
    taken = {"id"}
    for key in keys:
        name, number = key or "field", 1
        while name.lower() in taken:
            number += 1
            name = f"{key or 'field'}_{number}"
        taken.add(name.lower())
        yield name
