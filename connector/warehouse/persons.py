"""Persons in the work file: rows that tell of them, and what remains of these.

They use an open connection; the caller begins and ends the transaction. A row stays where it
is, with its ids, states, dates and sources, so that counts stay as they were; fields that tell of
the person become null, `_record` loses them, and `sync.erased` says that it was so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog import CATALOG, subjects_of
from connector.catalog.field import DataSubject
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.suppression.identifiers import PHONE_DIGITS
from connector.suppression.person import (
    Mention,
    Person,
    changed_elsewhere,
    owned,
    scrubbed,
    without_groups,
)
from connector.warehouse.duckdb_file import literal, quoted
from connector.warehouse.published_file import asking
from connector.warehouse.queries import staged
from connector.warehouse.rows import as_json

_SCHEMAS = ("landing", "history")
_OTHERS = ("sync", "push")
_BATCH = 1000
_TEXT_TYPES = ("VARCHAR", "JSON")
_KEYS = ("run_id", "resource", "id")


@dataclass(frozen=True, slots=True)
class Met:
    """A version of a record, and the groups of its fields that tell of somebody."""

    resource: str
    record: Mapping[str, Any]
    groups: tuple[DataSubject, ...]


@dataclass(frozen=True, slots=True)
class Erasing:
    """What is to be written with what is removed: the erasure, and its moment."""

    erasure: str
    at: datetime


@dataclass(slots=True)
class PersonRows:
    """Rows of each table that hold somebody, and texts of others that name them."""

    rows: Counter[str] = field(default_factory=Counter)
    mentions: set[Mention] = field(default_factory=set)


def met(connection: duckdb.DuckDBPyConnection, person: Person) -> Iterator[Met]:
    """Every version of every record that tells of the person, by an id or an address."""
    for resource, record in _versions(connection, lambda each: _known_by(each, person)):
        groups = owned(resource.name, record, person)
        if groups:
            yield Met(resource.name, record, groups)


def alike(
    connection: duckdb.DuckDBPyConnection, person: Person
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Versions of records in which one of the person's marks may be.

    It is a first look, to be looked at again. Deleted records are among them.
    """

    def where(resource: Declaration) -> Iterator[str]:
        yield from _known_by(resource, person)
        yield from _named_in("_record", person)
        yield from _called(resource, person)

    for resource, record in _versions(connection, where):
        yield resource.name, record


def every_version(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every version of every record that the file holds, with its resource."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            name = f"{schema}.{quoted(resource.name)}"
            rows = connection.execute(f"SELECT DISTINCT _record::VARCHAR FROM {name}")
            while batch := rows.fetchmany(_BATCH):
                for (record,) in batch:
                    if record is not None:
                        yield resource.name, json.loads(record)


def named_rows(path: Path, person: Person) -> Counter[str]:
    """Rows that name the person, by published table. Raises a `WarehouseError`."""
    found: Counter[str] = Counter()
    with asking(path) as ask:
        columns: dict[str, list[tuple[str, str]]] = {}
        for schema, table, column, type in ask(
            "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
            "JOIN duckdb_tables() USING (database_name, schema_name, table_name) "
            "WHERE data_type IN ('VARCHAR', 'JSON') ORDER BY ALL"
        ).rows:
            columns.setdefault(f"{quoted(schema)}.{quoted(table)}", []).append((column, type))
        for table, typed in columns.items():
            # One text of all columns, since a condition for each would cost more than the look.
            text = f"lower(concat_ws(chr(31), {', '.join(quoted(name) for name, _ in typed)}))"
            where = " OR ".join(f"contains({text}, {literal(each)})" for each in person.needles)
            if where:
                shown = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name, _ in typed)
                rows = ask(f"SELECT {shown} FROM {table} WHERE {where}").rows
                types = [type for _, type in typed]
                found[table.replace('"', "")] += sum(_names(row, types, person) for row in rows)
    return +found


def _names(texts: Iterable[str | None], types: Iterable[str], person: Person) -> bool:
    """Whether one of a row's texts names the person."""
    pairs = zip(texts, types, strict=True)
    return any(text is not None and _scrubbed(text, type, person) != text for text, type in pairs)


def take_out(
    connection: duckdb.DuckDBPyConnection, person: Person, erasing: Erasing | None
) -> PersonRows:
    """Take the person out of every table; without `erasing` nothing is written."""
    found = PersonRows()
    for resource in CATALOG.values():
        where = [*_known_by(resource, person), *_named_in("_record", person)]
        for schema in _SCHEMAS:
            table = f"{schema}.{resource.name}"
            for rowid, record in _rows(connection, schema, resource, where):
                groups = owned(resource.name, record, person)
                left = without_groups(resource, record, groups, person)
                if left == record:
                    continue
                found.rows[table] += 1
                for name in changed_elsewhere(record, left, groups):
                    found.mentions.add(Mention(resource.name, str(record["id"]), name))
                if erasing is not None:
                    _replace(connection, table, rowid, _columns(resource, record, left, groups))
                    if schema == "landing" and groups:
                        _mark(connection, resource.name, record["id"], erasing)
    for table, columns in _text_columns(connection).items():
        _scrub(connection, table, columns, person, found, writes=erasing is not None)
    found.rows = +found.rows
    return found


def _versions(
    connection: duckdb.DuckDBPyConnection, where: Callable[[Declaration], Iterable[str]]
) -> Iterator[tuple[Declaration, dict[str, Any]]]:
    """Every version of every record that any of a resource's conditions selects."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            for _, record in _rows(connection, schema, resource, where(resource)):
                yield resource, record


def _rows(
    connection: duckdb.DuckDBPyConnection, schema: str, resource: Declaration, where: Iterable[str]
) -> list[tuple[int, dict[str, Any]]]:
    """Rows that any of the conditions selects: their numbers and records."""
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
        "id": {name for group in subjects_of(resource.name) for name in group.ids},
        "email": {name for group in subjects_of(resource.name) for name in group.emails},
        "phone": {name for group in subjects_of(resource.name) for name in group.phones},
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
    """Conditions under which a text may name the person: a first look."""
    for each in person.needles:
        yield f"contains(lower(CAST({quoted(column)} AS VARCHAR)), {literal(each)})"


def _called(resource: Declaration, person: Person) -> Iterator[str]:
    """Conditions under which somebody may have one of the person's names."""
    for parts in {parts for group in subjects_of(resource.name) for parts in group.names}:
        name = f"lower(concat_ws(' ', {', '.join(map(quoted, parts))}))"
        name = f"regexp_replace(trim({name}), '[\\s\\p{{Z}}]+', ' ', 'g')"
        for each in sorted(person.texts):
            yield f"contains({name}, {literal(each)})"


def _columns(
    resource: Declaration,
    record: Mapping[str, Any],
    left: Mapping[str, Any],
    groups: tuple[DataSubject, ...],
) -> dict[str, Any]:
    """The columns of a row that change: null for what is gone, else the text."""
    gone = {name for group in groups for name in group.fields}
    changed: dict[str, Any] = {"_record": as_json(left)}
    for each in resource.detail_fields:
        if each.name in gone:
            changed[each.name] = None
        elif each.name in left and left[each.name] != record[each.name]:
            is_json = each.kind is Kind.VALUES
            value = left[each.name]
            changed[each.name] = as_json(value) if is_json else value
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
    found: PersonRows,
    *,
    writes: bool,
) -> None:
    """Look for the person in the texts of a table."""
    named = set()
    keys = [name for name, _ in columns if name in _KEYS]
    key = f"concat_ws('/', {', '.join(map(quoted, keys))})" if keys else "''"
    for name, type in columns:
        where = " OR ".join(_named_in(name, person))
        if not where:
            return
        rows = connection.execute(
            f"SELECT rowid, {key}, CAST({quoted(name)} AS VARCHAR) FROM {table} WHERE {where}"
        ).fetchall()
        for rowid, row, text in rows:
            left = _scrubbed(text, type, person)
            if left == text:
                continue
            named.add(rowid)
            if not table.startswith("push."):
                # The journal's copy has what the journal has, which is named by its own rows.
                found.mentions.add(Mention(table, row, name))
            if writes:
                _replace(connection, table, rowid, {name: left})
    found.rows[table] += len(named)


def _scrubbed(text: str, type: str, person: Person) -> str:
    if type != "JSON":
        return person.without(text)
    value = json.loads(text)
    left = scrubbed(value, person)
    return text if left == value else as_json(left)


# -- Overdue ---------------------------------------------------------------------------------------
# Records whose time is over, by a moment of theirs and the values of their choices.
#
# Who is placed is excepted, whatever a rule says: the placement is still under way, or fees and
# guarantees hang on it. Functions over an open connection; nothing here writes.


_PLACED = (
    "held.status IN ('placed', 'offer_accepted')",
    "held.employment_status = 'placed'",
    "held.id IN (SELECT candidate_id FROM landing.bookings WHERE _deleted_at IS NULL"
    " AND booking_type IN ('contract', 'permanent')"
    " AND coalesce(status, '') NOT IN ('draft', 'cancelled') AND candidate_id IS NOT NULL)",
)
"""Signs that a candidate is placed (API 2.2, 2.4)."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """The ids that are due, and how many are not: excepted, or without a date."""

    ids: tuple[str, ...]
    excepted: int
    undated: int


def overdue(
    connection: duckdb.DuckDBPyConnection,
    resource: str,
    field: str,
    cutoff: datetime,
    conditions: Sequence[tuple[str, tuple[str, ...]]],
) -> Overdue:
    """Records that fulfil the conditions, and whose `field` is not after `cutoff`.

    Those that were erased before are left out.
    """
    placed = " OR ".join(f"coalesce({each}, FALSE)" for each in _PLACED)
    is_placed = placed if resource == "candidates" else "FALSE"
    moment = f"held.{quoted(field)}"
    where = " AND ".join(_where(resource, conditions))
    rows = connection.execute(
        f"SELECT held.id, {moment} IS NULL, {is_placed} FROM landing.{quoted(resource)} AS held "
        f"WHERE {where} AND ({moment} IS NULL OR "
        f"{moment}::TIMESTAMPTZ <= {literal(cutoff.isoformat())}::TIMESTAMPTZ) ORDER BY held.id"
    ).fetchall()
    dated = [(id, is_excepted) for id, is_undated, is_excepted in rows if not is_undated]
    return Overdue(
        ids=tuple(id for id, is_excepted in dated if not is_excepted),
        excepted=sum(is_excepted for _, is_excepted in dated),
        # A record that was never deleted is not one whose deletion has no date.
        undated=0 if field == "_deleted_at" else len(rows) - len(dated),
    )


def _where(resource: str, conditions: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    yield f"held.id NOT IN (SELECT id FROM sync.erased WHERE resource = {literal(resource)})"
    for name, values in conditions:
        yield f"held.{quoted(name)} IN ({', '.join(map(literal, values))})"
