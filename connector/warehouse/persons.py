"""Persons in the work file: the rows that tell of them, and what remains of those rows.

Functions over an open connection; whoever calls them holds the transaction. A row stays where it
is, with its ids, states, dates and sources, so that counts stay as they were; fields that tell of
the person become null, `_record` loses them, and `sync.erased` says that it was so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog import CATALOG
from connector.resource import Declaration
from connector.suppression import Group, Person, groups_of, owned
from connector.suppression.identifiers import PHONE_DIGITS
from connector.suppression.reduction import scrubbed, without_groups
from connector.value import Kind
from connector.warehouse.looks import staged
from connector.warehouse.query import asking
from connector.warehouse.quoting import literal, quoted
from connector.warehouse.rows import as_json

_SCHEMAS = ("landing", "history")
_OTHERS = ("sync", "push")
_BATCH = 1000
_TEXT_TYPES = ("VARCHAR", "JSON")


@dataclass(frozen=True, slots=True)
class Met:
    """A version of a record in which somebody was looked for and found, and the groups of its
    fields that tell of them.
    """

    resource: str
    record: Mapping[str, Any]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Erasing:
    """What is to be written with what is removed: the erasure, and its moment."""

    erasure: str
    at: datetime


def met(connection: duckdb.DuckDBPyConnection, person: Person) -> Iterator[Met]:
    """Every version of every record that tells of the person, by an id, an address or a number."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            for _, record in _rows(connection, schema, resource, _known_by(resource, person)):
                groups = owned(resource.name, record, person)
                if groups:
                    yield Met(resource.name, record, groups)


def every_version(
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every version of every record that the file holds, with its resource."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            name = f"{schema}.{quoted(resource.name)}"
            rows = connection.execute(f"SELECT DISTINCT _record::VARCHAR FROM {name}")
            while batch := rows.fetchmany(_BATCH):
                for (record,) in batch:
                    if record is not None:
                        yield resource.name, json.loads(record)


def namesakes(
    connection: duckdb.DuckDBPyConnection, names: Iterable[str], person: Person
) -> frozenset[str]:
    """Which of these lower-case names somebody else has as well, by a landed record that is not
    the person's.
    """
    wanted = ", ".join(map(literal, sorted(names)))
    found: set[str] = set()
    for resource in CATALOG.values() if wanted else ():
        for group in groups_of(resource.name):
            for parts in group.names:
                columns = ", ".join(f"trim({quoted(each)})" for each in parts)
                name = f"lower(concat_ws(' ', {columns}))"
                rows = connection.execute(
                    f"SELECT {name}, _record::VARCHAR FROM landing.{quoted(resource.name)} "
                    f"WHERE {name} IN ({wanted})"
                ).fetchall()
                for each, record in rows:
                    if not owned(resource.name, json.loads(record), person):
                        found.add(each)
    return frozenset(found)


def named_rows(path: Path, person: Person) -> Counter[str]:
    """How many rows of each table of a published file name the person. Raises a
    `WarehouseError`.
    """
    found: Counter[str] = Counter()
    with asking(path) as ask:
        columns: dict[str, list[str]] = {}
        for schema, table, column in ask(
            "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
            "JOIN duckdb_tables() USING (database_name, schema_name, table_name) "
            "WHERE data_type IN ('VARCHAR', 'JSON') ORDER BY ALL"
        ).rows:
            columns.setdefault(f"{quoted(schema)}.{quoted(table)}", []).append(column)
        for table, names in columns.items():
            # One text of all columns, since a condition for each would cost more than the look.
            text = f"concat_ws(chr(31), {', '.join(map(quoted, names))})"
            where = " OR ".join(_named_in("text", person))
            if where:
                rows = ask(
                    f"SELECT count(*) FROM (SELECT {text} AS text FROM {table}) WHERE {where}"
                )
                found[table.replace('"', "")] += int(rows.rows[0][0])
    return +found


def take_out(
    connection: duckdb.DuckDBPyConnection, person: Person, erasing: Erasing | None
) -> Counter[str]:
    """Take the person out of every table; how many rows of each there were. Without `erasing`
    nothing is written.
    """
    found: Counter[str] = Counter()
    for resource in CATALOG.values():
        where = [*_known_by(resource, person), *_named_in("_record", person)]
        for schema in _SCHEMAS:
            table = f"{schema}.{resource.name}"
            for rowid, record in _rows(connection, schema, resource, where):
                groups = owned(resource.name, record, person)
                left = without_groups(resource, record, groups, person)
                if left == record:
                    continue
                found[table] += 1
                if erasing is not None:
                    _replace(connection, table, rowid, _columns(resource, record, left, groups))
                    if schema == "landing" and groups:
                        _mark(connection, resource.name, record["id"], erasing)
    for table, columns in _text_columns(connection).items():
        found[table] += _scrub(connection, table, columns, person, writes=erasing is not None)
    return +found


def _rows(
    connection: duckdb.DuckDBPyConnection, schema: str, resource: Declaration, where: Iterable[str]
) -> list[tuple[int, dict[str, Any]]]:
    """The rows that any of the conditions selects, each by its number, with its record."""
    conditions = " OR ".join(where)
    if not conditions:
        return []
    name = f"{schema}.{quoted(resource.name)}"
    rows = connection.execute(
        f"SELECT rowid, _record::VARCHAR FROM {name} WHERE {conditions}"
    ).fetchall()
    return [(rowid, json.loads(record)) for rowid, record in rows if record is not None]


def _known_by(resource: Declaration, person: Person) -> Iterator[str]:
    """Conditions on the columns by which people are known."""
    columns = {
        "id": {name for group in groups_of(resource.name) for name in group.ids},
        "email": {name for group in groups_of(resource.name) for name in group.emails},
        "phone": {name for group in groups_of(resource.name) for name in group.phones},
    }
    forms = {
        "id": ("lower({})", person.ids),
        "email": ("lower(trim({}))", person.emails),
        "phone": (f"right(regexp_replace({{}}, '[^0-9]', '', 'g'), {PHONE_DIGITS})", person.phones),
    }
    for kind, names in columns.items():
        form, values = forms[kind]
        if values:
            known = ", ".join(map(literal, sorted(values)))
            for name in sorted(names):
                yield f"{form.format(quoted(name))} IN ({known})"


def _named_in(column: str, person: Person) -> Iterator[str]:
    """Conditions under which a text may name the person: a first look, to be looked at again."""
    for each in person.needles:
        yield f"contains(lower(CAST({quoted(column)} AS VARCHAR)), {literal(each)})"


def _columns(
    resource: Declaration,
    record: Mapping[str, Any],
    left: Mapping[str, Any],
    groups: tuple[Group, ...],
) -> dict[str, Any]:
    """The columns of a row that change: null for what is gone, else the text as it is now."""
    gone = {name for group in groups for name in group.fields}
    changed: dict[str, Any] = {"_record": as_json(left)}
    for field in resource.detail_fields:
        if field.name in gone:
            changed[field.name] = None
        elif field.name in left and left[field.name] != record[field.name]:
            is_json = field.kind is Kind.VALUES
            value = left[field.name]
            changed[field.name] = as_json(value) if is_json else value
    return changed


def _replace(
    connection: duckdb.DuckDBPyConnection, table: str, rowid: int, columns: Mapping[str, Any]
) -> None:
    schema, _, name = table.partition(".")
    texts = {each: value for each, value in columns.items() if value is not None}
    sets = [f"{quoted(each)} = NULL" for each in columns if each not in texts]
    sets += [f"{quoted(each)} = stage.{quoted(each)}" for each in texts]
    stage = pa.table({each: pa.array([value], pa.string()) for each, value in texts.items()})
    with staged(connection, stage):
        connection.execute(
            f"UPDATE {schema}.{quoted(name)} AS held SET {', '.join(sets)} FROM stage "
            f"WHERE held.rowid = {int(rowid)}"
        )


def _mark(connection: duckdb.DuckDBPyConnection, resource: str, id: str, erasing: Erasing) -> None:
    """Say of a row that it is what remains."""
    values = ", ".join(map(literal, (resource, id, erasing.erasure)))
    known = f"resource = {literal(resource)} AND id = {literal(id)}"
    connection.execute(f"DELETE FROM sync.erased WHERE {known}")
    connection.execute(
        "INSERT INTO sync.erased (resource, id, erasure, erased_at) "
        f"VALUES ({values}, {literal(erasing.at.isoformat())}::TIMESTAMPTZ)"
    )


def _text_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """The columns of all other tables that may hold a text, with their types."""
    rows = connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database() "
        f"AND schema_name IN ({', '.join(map(literal, _OTHERS))}) ORDER BY ALL"
    ).fetchall()
    found: dict[str, list[tuple[str, str]]] = {}
    for table, name, type in rows:
        if type in _TEXT_TYPES:
            found.setdefault(table, []).append((name, type))
    return found


def _scrub(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: list[tuple[str, str]],
    person: Person,
    *,
    writes: bool,
) -> int:
    """Look for the person in the texts of a table; how many of its rows name them."""
    named = set()
    for name, type in columns:
        where = " OR ".join(_named_in(name, person))
        if not where:
            return 0
        rows = connection.execute(
            f"SELECT rowid, CAST({quoted(name)} AS VARCHAR) FROM {table} WHERE {where}"
        ).fetchall()
        for rowid, text in rows:
            left = _scrubbed(text, type, person)
            if left != text:
                named.add(rowid)
                if writes:
                    _replace(connection, table, rowid, {name: left})
    return len(named)


def _scrubbed(text: str, type: str, person: Person) -> str:
    if type != "JSON":
        return person.without(text)
    value = json.loads(text)
    left = scrubbed(value, person)
    return text if left == value else as_json(left)
