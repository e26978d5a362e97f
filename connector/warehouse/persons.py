"""Personal data in the work file: finds and removes the rows of a person.

All functions use an open connection; the caller begins and ends the transaction. A removed row
stays as an anonymous row, with its ids, statuses, dates and sources, so that counts do not change.
Fields that describe the person become null and are removed from `_record`, and `sync.erased` names
the row. Texts in other people's records stay and are listed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog import CATALOG, subjects_of
from connector.catalog.field import MARK
from connector.catalog.resource import Declaration
from connector.ledger.person import (
    PHONE_DIGITS,
    Mention,
    Person,
    SuppressionFilter,
    SuppressionList,
    fields_to_remove,
    find_mentions,
    groups_describing,
    without_person,
)
from connector.warehouse.duckdb_file import literal, quoted, staged_table
from connector.warehouse.published_file import open_snapshot
from connector.warehouse.schema import as_json

_SCHEMAS = ("landing", "history")
_BATCH = 1000
_SIGNS = "' -()./'"
"""Separators between the digits of a telephone number, as an SQL literal."""

Record = tuple[str, dict[str, Any]]
"""Version of a record, with its resource."""


@dataclass(frozen=True, slots=True)
class CurrentErasure:
    """Id and time of the erasure in progress."""

    erasure: str
    at: datetime


@dataclass(slots=True)
class PersonRows:
    """Places in the work file that contain a person.

    Attributes:
        rows: Number of rows by table.
        fields: Names of the fields that an erasure removes, by resource and id.
        mentions: Texts in other people's records that name the person. They are kept.
    """

    rows: Counter[str] = field(default_factory=Counter)
    fields: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    mentions: set[Mention] = field(default_factory=set)


def find_person_versions(connection: duckdb.DuckDBPyConnection, person: Person) -> Iterator[Record]:
    """Yield each version of a record that has an identifier of the person in a declared field."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            where = _subject_conditions(resource, person)
            for _, record in _find_rows(connection, schema, resource, where):
                yield resource.name, record


def find_versions_by_name(connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[Record]:
    """Yield each version of a record about a person with this first, last or full name."""
    words = [literal(each) for each in name.lower().split()]
    for resource in CATALOG.values():
        parts = [each for group in resource.subjects if group.is_record for each in group.names]
        for names in parts:
            texts = [f"lower(concat_ws(' ', {', '.join(map(quoted, names))}))"]
            texts += [f"lower({quoted(each)})" for each in names]
            where = [
                rf"regexp_split_to_array(trim({each}), '\s+') = [{', '.join(words)}]"
                for each in texts
            ]
            for schema in _SCHEMAS:
                for _, record in _find_rows(connection, schema, resource, where):
                    yield resource.name, record


def count_person_rows(path: Path, person: Person) -> Counter[str]:
    """Return the number of the person's rows by table. Raises a `WarehouseError`."""
    found: Counter[str] = Counter()
    with open_snapshot(path) as ask:
        columns: dict[str, list[str]] = {}
        for schema, table, column in ask(
            "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
            "JOIN duckdb_tables() USING (database_name, schema_name, table_name) "
            "WHERE data_type = 'VARCHAR' ORDER BY ALL"
        ).rows:
            columns.setdefault(f"{quoted(schema)}.{quoted(table)}", []).append(column)
        for table, names in columns.items():
            where = " OR ".join(
                each for name in names for each in identifier_conditions(name, person)
            )
            if where:
                ((count,),) = ask(f"SELECT count(*) FROM {table} WHERE {where}").rows
                found[table.replace('"', "")] += count
    return +found


def identifier_conditions(column: str, person: Person) -> Iterator[str]:
    """Yield SQL conditions: the column contains an email, profile or phone number of the person."""
    name = quoted(column)
    yield from _in_condition(f"lower(trim({name}))", person.emails)
    yield from _in_condition(_profile_expression(name), person.profiles)
    number = rf"regexp_full_match({name}, '\+?[0-9 ()./-]{{7,20}}')"
    for each in _in_condition(_phone_expression(name), person.phones):
        yield f"({number} AND {each})"


def remove_listed_persons(
    connection: duckdb.DuckDBPyConnection, suppressed: SuppressionList, erasure: str, at: datetime
) -> bool:
    """Remove all people on the list of erased people; return True if any was found."""
    noticing = SuppressionFilter(suppressed)
    for resource, record in all_versions(connection):
        without_person(CATALOG[resource], record, noticing)
    if noticing.found:
        remove_person(connection, noticing.as_person(), CurrentErasure(erasure, at))
    return bool(noticing.found)


def all_versions(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each distinct version of each record in the file, with its resource."""
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            name = f"{schema}.{quoted(resource.name)}"
            rows = connection.execute(f"SELECT DISTINCT _record::VARCHAR FROM {name}")
            while batch := rows.fetchmany(_BATCH):
                for (record,) in batch:
                    if record is not None:
                        yield resource.name, json.loads(record)


def remove_person(
    connection: duckdb.DuckDBPyConnection, person: Person, erasing: CurrentErasure | None
) -> PersonRows:
    """Remove the person's data from every table; with `erasing=None`, only search for it."""
    found = PersonRows()
    for resource in CATALOG.values():
        for schema in _SCHEMAS:
            table = f"{schema}.{resource.name}"
            for rowid, record in _find_rows(
                connection, schema, resource, _subject_conditions(resource, person)
            ):
                gone = fields_to_remove(resource, record, person)
                if not gone:
                    continue
                found.rows[table] += 1
                key = resource.name, str(record["id"])
                shown = {name for name in gone if record[name] is not None}
                found.fields.setdefault(key, set()).update(shown)
                if erasing is not None:
                    remaining = {name: each for name, each in record.items() if name not in gone}
                    nulls = {e.name: None for e in resource.detail_fields if e.name in gone}
                    _update_row(connection, table, rowid, {"_record": as_json(remaining), **nulls})
                    if schema == "landing" and groups_describing(resource.name, record, person):
                        _mark_redacted(connection, resource.name, record["id"], erasing)
            found.mentions.update(_mentions(connection, schema, resource, person))
    # Each remaining text is listed once.
    now = {(each.row, each.field) for each in found.mentions if not each.is_past}
    found.mentions = {e for e in found.mentions if not e.is_past or (e.row, e.field) not in now}
    for table, column in _own_text_columns(connection):
        _remove_texts(connection, table, column, person, found, writes=erasing is not None)
    found.rows = +found.rows
    return found


def _find_rows(
    connection: duckdb.DuckDBPyConnection, schema: str, resource: Declaration, where: Iterable[str]
) -> list[tuple[int, dict[str, Any]]]:
    """Return row id and record of each row that any of the conditions selects."""
    conditions = " OR ".join(where)
    if not conditions:
        return []
    name = f"{schema}.{quoted(resource.name)}"
    rows = connection.execute(
        f"SELECT rowid, _record::VARCHAR FROM {name} WHERE {conditions}"
    ).fetchall()
    return [(rowid, json.loads(record)) for rowid, record in rows if record is not None]


def _subject_conditions(resource: Declaration, person: Person) -> Iterator[str]:
    """Yield SQL conditions: a declared field contains an identifier of the person."""
    subjects = subjects_of(resource.name)
    # The API accepts some fields only in requests and never shows them.
    shown = {each.name: each for each in resource.detail_fields}
    urls = {name for name, each in shown.items() if subjects and each.format == "url"}
    columns: tuple[tuple[str, set[str], frozenset[str]], ...] = (
        ("lower({})", {name for each in subjects for name in each.ids}, person.ids),
        ("lower(trim({}))", {name for each in subjects for name in each.emails}, person.emails),
        (
            _phone_expression("{}"),
            {name for each in subjects for name in each.phones},
            person.phones,
        ),
        (_profile_expression("{}"), urls, person.profiles),
    )
    for form, names, values in columns:
        for name in sorted(names & shown.keys()):
            yield from _in_condition(form.replace("{}", quoted(name)), values)


def _in_condition(text: str, values: frozenset[str]) -> Iterator[str]:
    """Yield the SQL condition that the expression is one of the values; nothing without values."""
    if values:
        yield f"{text} IN ({', '.join(map(literal, sorted(values)))})"


def _phone_expression(name: str) -> str:
    """Return the SQL for the last digits of a telephone number."""
    return f"right(regexp_replace({name}, '[^0-9]', '', 'g'), {PHONE_DIGITS})"


def _profile_expression(name: str) -> str:
    """Return the SQL for a web address without protocol, `www.` and trailing slash."""
    return rf"rtrim(regexp_replace(lower(trim({name})), '^(https?://)?(www\.)?', ''), '/')"


def _mention_conditions(column: str, person: Person) -> Iterator[str]:
    """Yield SQL conditions: the text may name the person. The caller checks the text exactly."""
    text = f"lower(CAST({quoted(column)} AS VARCHAR))"
    words = {max(each.split(), key=len) for each in person.names if each}
    for each in sorted({*person.emails, *person.profiles, *words}):
        yield f"contains({text}, {literal(each)})"
    for each in sorted(person.phones):
        yield f"contains(translate({text}, {_SIGNS}, ''), {literal(each)})"


def _mentions(
    connection: duckdb.DuckDBPyConnection, schema: str, resource: Declaration, person: Person
) -> Iterator[Mention]:
    """Yield the texts that name the person in fields that an erasure keeps."""
    table = f"{schema}.{resource.name}"
    for _, record in _find_rows(
        connection, schema, resource, _mention_conditions("_record", person)
    ):
        gone = fields_to_remove(resource, record, person)
        remaining = {name: each for name, each in record.items() if name not in gone}
        yield from find_mentions(table, str(record["id"]), remaining, person)


def _update_row(
    connection: duckdb.DuckDBPyConnection, table: str, rowid: int, columns: Mapping[str, Any]
) -> None:
    """Set text columns of the row; None sets null."""
    schema, _, name = table.partition(".")
    texts = {each: value for each, value in columns.items() if value is not None}
    sets = [f"{quoted(each)} = NULL" for each in columns if each not in texts]
    sets += [f"{quoted(each)} = stage.{quoted(each)}" for each in texts]
    stage = pa.table({each: pa.array([value], pa.string()) for each, value in texts.items()})
    with staged_table(connection, stage):
        connection.execute(
            f"UPDATE {schema}.{quoted(name)} AS held SET {', '.join(sets)} FROM stage "
            f"WHERE held.rowid = {int(rowid)}"
        )


def _mark_redacted(
    connection: duckdb.DuckDBPyConnection, resource: str, id: str, erasing: CurrentErasure
) -> None:
    """Record in `sync.erased` that the erasure anonymized the row."""
    values = ", ".join(map(literal, (resource, id, erasing.erasure)))
    known = f"resource = {literal(resource)} AND id = {literal(id)}"
    connection.execute(f"DELETE FROM sync.erased WHERE {known}")
    connection.execute(
        "INSERT INTO sync.erased (resource, id, erasure, erased_at) "
        f"VALUES ({values}, {literal(erasing.at.isoformat())}::TIMESTAMPTZ)"
    )


def _own_text_columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return table and column of each text column in the schema `sync`."""
    return connection.execute(
        "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database() "
        "AND schema_name = 'sync' AND data_type = 'VARCHAR' ORDER BY ALL"
    ).fetchall()


def _remove_texts(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    column: str,
    person: Person,
    found: PersonRows,
    *,
    writes: bool,
) -> None:
    """Count texts of a `sync` table that name the person; with `writes`, replace them by a mark."""
    where = " OR ".join(_mention_conditions(column, person))
    if not where:
        return
    name = quoted(column)
    rows = connection.execute(f"SELECT rowid, {name} FROM {table} WHERE {where}").fetchall()
    for rowid, text in rows:
        if person.is_named_in(text):
            found.rows[table] += 1
            if writes:
                _update_row(connection, table, rowid, {column: MARK})


# -- Overdue records -------------------------------------------------------------------------------
# Records whose retention period has expired, by a timestamp and the values of choice fields.
#
# A placed candidate is always excluded: the placement continues, or fees and guarantees depend on
# it. These functions only read.


_PLACED = (
    "held.status IN ('placed', 'offer_accepted')",
    "held.employment_status = 'placed'",
    "held.id IN (SELECT candidate_id FROM landing.bookings WHERE _deleted_at IS NULL"
    " AND booking_type IN ('contract', 'permanent')"
    " AND coalesce(status, '') NOT IN ('draft', 'cancelled') AND candidate_id IS NOT NULL)",
)
"""Conditions that show that a candidate is placed (API 2.2, 2.4)."""


@dataclass(frozen=True, slots=True)
class OverdueRecords:
    """Ids of the records that a retention rule selects.

    `placed` is the number of records kept because the candidate is placed, `undated` the number of
    records without a date.
    """

    ids: tuple[str, ...]
    placed: int
    undated: int


def find_overdue(
    connection: duckdb.DuckDBPyConnection,
    resource: str,
    field: str,
    cutoff: datetime,
    conditions: Sequence[tuple[str, tuple[str, ...]]],
) -> OverdueRecords:
    """Return the records that meet the conditions and whose date in `field` is at most `cutoff`.

    `conditions` are choice fields with their values. Records that were erased are not included.
    """
    placed = " OR ".join(f"coalesce({each}, FALSE)" for each in _PLACED)
    is_placed = placed if resource == "candidates" else "FALSE"
    column = f"held.{quoted(field)}"
    where = " AND ".join(_rule_conditions(resource, conditions))
    rows = connection.execute(
        f"SELECT held.id, {column} IS NULL, {is_placed} FROM landing.{quoted(resource)} AS held "
        f"WHERE {where} AND ({column} IS NULL OR "
        f"{column}::TIMESTAMPTZ <= {literal(cutoff.isoformat())}::TIMESTAMPTZ) ORDER BY held.id"
    ).fetchall()
    dated = [(id, is_excepted) for id, is_undated, is_excepted in rows if not is_undated]
    return OverdueRecords(
        ids=tuple(id for id, is_excepted in dated if not is_excepted),
        placed=sum(is_excepted for _, is_excepted in dated),
        # A live record is not one whose date of deletion is missing.
        undated=0 if field == "_deleted_at" else len(rows) - len(dated),
    )


def _rule_conditions(
    resource: str, conditions: Sequence[tuple[str, tuple[str, ...]]]
) -> Iterator[str]:
    """Yield the SQL conditions for records that are not erased and have the values of a rule."""
    yield f"held.id NOT IN (SELECT id FROM sync.erased WHERE resource = {literal(resource)})"
    for name, values in conditions:
        yield f"held.{quoted(name)} IN ({', '.join(map(literal, values))})"
