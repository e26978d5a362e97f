"""Records of one resource in SQLite, and their order in lists.

Each resource has two tables, derived from its declaration. The narrow table has an indexed column
for each value by which lists sort, filter or join, so that counts, filters and large offsets read
no complete record. The other table has the record as a JSON object. The store decides what is
written and when a transaction ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from connector.catalog import references
from connector.catalog.field import Kind
from connector.catalog.resource import Declaration
from connector.sandbox.behaviour import Behaviours

StoredRecord = dict[str, Any]
"""A record as kept: every field that has a value, the write-only ones and undeclared ones too.

A name that begins with an underscore is the sandbox's own and never shown.
"""

_BATCH = 500


@dataclass(frozen=True, slots=True)
class StoredRow:
    """Stored record, its insertion number `serial`, and the id of its content type, if any."""

    serial: int
    parent: str | None
    record: StoredRecord


@dataclass(frozen=True, slots=True)
class RowCondition:
    """SQL condition on a resource's table, named `t`, and its parameters; all rows by default."""

    sql: str = "1"
    parameters: tuple[Any, ...] = ()

    def narrowed(self, sql: str, *parameters: Any) -> RowCondition:
        """Return this condition AND another one."""
        joined = sql if self.sql == "1" else f"{self.sql} AND {sql}"
        return RowCondition(joined, self.parameters + parameters)


class RecordTable:
    """The two SQLite tables of one resource. The caller opens the transaction."""

    def __init__(self, connection: sqlite3.Connection, declaration: Declaration) -> None:
        self._connection = connection
        self._declaration = declaration
        self._table = declaration.name
        related = references(declaration)
        self._columns = tuple(
            each.name
            for each in declaration.fields.values()
            if (each.listed or each.sortable or each.filterable or each.name in related)
            and each.name != "id"
            # What is computed for each answer is not kept.
            and not each.is_computed
        )
        self._related = tuple(related)

    def create_tables(self) -> None:
        """Create the tables if they do not exist."""
        columns = "".join(f", {name}{self._collation_clause(name)}" for name in self._columns)
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            f"(serial INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, parent TEXT{columns})"
        )
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {self._table}_record "
            "(serial INTEGER PRIMARY KEY, record TEXT NOT NULL)"
        )

    def create_indexes(self) -> None:
        """Create missing indexes."""
        self._execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {self._table}_id ON {self._table} (id)")
        within = ("parent",) if self._declaration.parent else ()
        for name in self._declaration.sortable:
            self._create_index(*within, name)
        for name in self._related:
            self._create_index(name, *(("status",) if "status" in self._columns else ()))
        for each in self._declaration.filters:
            if each.name in self._columns:
                for order in ("created_at", "updated_at"):
                    self._create_index(*within, each.name, order)

    def _create_index(self, *columns: str) -> None:
        """Create an index over these columns if it does not exist."""
        name = "_".join((self._table, "by", *columns))
        listed = ", ".join(columns)
        self._execute(f"CREATE INDEX IF NOT EXISTS {name} ON {self._table} ({listed})")

    def _collation_clause(self, column: str) -> str:
        """Return the COLLATE clause of a column; empty unless it contains free text."""
        # People's words sort without regard to case, as databases behind such services do.
        declared = self._declaration.fields[column]
        is_text = declared.kind is Kind.STRING and not declared.values
        return " COLLATE NOCASE" if is_text else ""

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def add(self, records: Iterable[tuple[StoredRecord, str | None]]) -> None:
        """Insert records with the ids of their content types.

        Raises `sqlite3.IntegrityError` if an id already exists.
        """
        serial: int = self._execute(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", (self._table,)
        ).fetchone()[0]
        marks = ", ".join("?" * (3 + len(self._columns)))
        narrow = f"INSERT INTO {self._table} VALUES ({marks})"
        whole = f"INSERT INTO {self._table}_record VALUES (?, ?)"
        rows, texts = [], []
        for record, parent in records:
            serial += 1
            rows.append((serial, record["id"], parent, *map(record.get, self._columns)))
            texts.append((serial, _to_json(record)))
        self._connection.executemany(narrow, rows)
        self._connection.executemany(whole, texts)

    def replace(self, serial: int, record: StoredRecord) -> None:
        """Store another version of the record with this serial."""
        values = ", ".join(f"{name} = ?" for name in ("id", *self._columns))
        self._execute(
            f"UPDATE {self._table} SET {values} WHERE serial = ?",
            (record["id"], *map(record.get, self._columns), serial),
        )
        self._execute(
            f"UPDATE {self._table}_record SET record = ? WHERE serial = ?",
            (_to_json(record), serial),
        )

    def remove(self, serial: int) -> None:
        """Delete the record with this serial."""
        self._execute(f"DELETE FROM {self._table} WHERE serial = ?", (serial,))
        self._execute(f"DELETE FROM {self._table}_record WHERE serial = ?", (serial,))

    def find(self, id: str, *, parent: str | None = None) -> StoredRow | None:
        """Return the record with this id, or None if it does not exist or has another parent."""
        found = self._execute(
            f"SELECT t.serial, t.parent, r.record FROM {self._table} t "
            f"JOIN {self._table}_record r ON r.serial = t.serial WHERE t.id = ?",
            (id,),
        ).fetchone()
        if found is None or (parent is not None and found[1] != parent):
            return None
        return StoredRow(found[0], found[1], json.loads(found[2]))

    def has(self, where: RowCondition) -> bool:
        """Return True if a record meets the condition."""
        sql = f"SELECT 1 FROM {self._table} t WHERE {where.sql} LIMIT 1"
        return self._execute(sql, where.parameters).fetchone() is not None

    def count(self, where: RowCondition) -> int:
        """Count the records that meet the condition."""
        sql = f"SELECT count(*) FROM {self._table} t WHERE {where.sql}"
        counted: int = self._execute(sql, where.parameters).fetchone()[0]
        return counted

    def count_by(self, where: RowCondition, by: str) -> Iterator[tuple[Any, int]]:
        """Yield each value of a column with the number of records that meet the condition."""
        sql = f"SELECT {by}, count(*) FROM {self._table} t WHERE {where.sql} GROUP BY {by}"
        return iter(self._execute(sql, where.parameters))

    def page(
        self, where: RowCondition, order: str, *, limit: int, offset: int
    ) -> list[StoredRecord]:
        """Return a page of the records that meet the condition. `order` is an SQL expression."""
        # In two steps: a join would fetch every record that the offset skips.
        serials = [
            found[0]
            for found in self._execute(
                f"SELECT t.serial FROM {self._table} t WHERE {where.sql} "
                f"ORDER BY {order} LIMIT ? OFFSET ?",
                (*where.parameters, limit, offset),
            )
        ]
        marks = ", ".join("?" * len(serials))
        texts = dict(
            self._execute(
                f"SELECT serial, record FROM {self._table}_record WHERE serial IN ({marks})",
                serials,
            )
        )
        return [json.loads(texts[serial]) for serial in serials]

    def rows(self, parent: str | None = None) -> Iterator[StoredRow]:
        """Yield all records in order of insertion, or only those of a parent."""
        condition = "" if parent is None else "WHERE t.parent = ?"
        found = self._execute(
            f"SELECT t.serial, t.parent, r.record FROM {self._table} t "
            f"JOIN {self._table}_record r ON r.serial = t.serial {condition} ORDER BY t.serial",
            () if parent is None else (parent,),
        )
        while batch := found.fetchmany(_BATCH):
            for serial, owner, text in batch:
                yield StoredRow(serial, owner, json.loads(text))


def _to_json(record: StoredRecord) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


# -- Time ----------------------------------------------------------------------------------------
# Timestamps as the store keeps them and as answers show them.
#
# Kept, every timestamp is one fixed-width text in UTC, so that texts sort as times do; shown, it
# has the precision and the suffix that the behaviours ask for. This module reads no clock.


Clock = Callable[[], datetime]
"""What tells the server's time: an aware datetime. A simulation passes its own."""

_MICROSECONDS_KEPT = {"microseconds": 1, "milliseconds": 1_000, "seconds": 1_000_000}
# The lengths of a kept text without its suffix, by the precision that is shown.
_LENGTHS = {"microseconds": 26, "milliseconds": 23, "seconds": 19}
_LENGTH_KEPT = 27


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def format_stored_time(moment: datetime) -> str:
    """Format a time as stored: in UTC, with microseconds and `Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def truncate_time(moment: datetime, behaviours: Behaviours) -> datetime:
    """Truncate a time to the precision of the behaviour `timestamp_precision`."""
    unit = _MICROSECONDS_KEPT[behaviours.timestamp_precision]
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def parse_date(text: str) -> date:
    """Parse a date in the form YYYY-MM-DD. Raises `ValueError` for other ISO forms too."""
    if len(text) != len("2024-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)


def format_shown_time(kept: str, behaviours: Behaviours) -> str:
    """Format a stored time as responses show it, with the precision of the behaviours.

    Other texts, which only a test can store, are returned unchanged.
    """
    if len(kept) != _LENGTH_KEPT:
        return kept
    return kept[: _LENGTHS[behaviours.timestamp_precision]] + "Z"


# -- Shape -----------------------------------------------------------------------------------------
# How a stored record is shown: as a detail, as a list item, in which timestamps and nulls.
#
# The declared shapes decide (API 2); this module reads no store and changes nothing.


EXTRA_FIELD = "workspace_id"
_EXTRA_VALUE = "5f0c7f5e-9d0f-4c6b-8a53-0d5e8a7c1b11"


class AnswerShape:
    """Fields of one resource in detail responses and in lists, under given behaviours."""

    def __init__(self, declaration: Declaration, behaviours: Behaviours) -> None:
        self._behaviours = behaviours
        declared = declaration.fields
        self._declared = frozenset(declared)
        self._detail = tuple(each.name for each in declaration.detail_fields)
        self._item = tuple(each.name for each in declaration.item_fields)
        if declaration.name == "content_types" and behaviours.content_type_items != "declared":
            self._item = tuple(name for name in self._item if name != "updated_at")
        self._datetimes = frozenset(
            name for name, each in declared.items() if each.kind is Kind.DATETIME
        )
        self._write_only = tuple(name for name, each in declared.items() if each.write_only)

    def detail(self, record: StoredRecord, computed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record's fields in a detail response, including undeclared fields."""
        extras = [n for n in record if n not in self._declared and not n.startswith("_")]
        return self._select_fields(record, computed, (*self._detail, *extras))

    def item(self, record: StoredRecord, computed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record's fields in a list, which are only declared fields."""
        return self._select_fields(record, computed, self._item)

    def write_only_fields(self, record: StoredRecord) -> dict[str, Any]:
        """Return the record's write-only fields, which no response contains."""
        return {name: record.get(name) for name in self._write_only}

    def echoed_fields(
        self, detail: Mapping[str, Any], names: Collection[str] | None
    ) -> dict[str, Any]:
        """Return the named fields for the response to a write, or all if None (API 4.7)."""
        if names is None:
            return dict(detail)
        return {name: value for name, value in detail.items() if name in names}

    def _select_fields(
        self, record: StoredRecord, computed: Mapping[str, Any], names: Iterable[str]
    ) -> dict[str, Any]:
        """Return the named fields with formatted times and computed counters."""
        read = record.get
        shown = {name: read(name) for name in names}
        for name in self._datetimes:
            if isinstance(kept := shown.get(name), str):
                shown[name] = format_shown_time(kept, self._behaviours)
        shown |= {name: value for name, value in computed.items() if name in shown}
        if self._behaviours.nulls == "absent":
            shown = {name: value for name, value in shown.items() if value is not None}
        if self._behaviours.extra_fields == "shown":
            shown[EXTRA_FIELD] = _EXTRA_VALUE
        return shown


# -- Counters --------------------------------------------------------------------------------------
# A company's counters, computed from jobs and bookings whenever they are shown (API 2.3).
#
# What counts as active, or as a placement, is not shown; the two conditions below are ours.
# Counting writes nothing, so that a counter changes while the company's `updated_at` stands.


_ACTIVE = "t.status = 'published'"
_PLACEMENT = (
    "t.booking_type IN ('contract', 'permanent') "
    "AND t.status IN ('confirmed', 'in_progress', 'completed')"
)

_SLICE = 500
"""Number of companies counted by one statement: SQLite limits its parameters."""

Counters = dict[str, int]


def count_company_records(
    companies: Sequence[str], jobs: RecordTable, bookings: RecordTable
) -> dict[str, Counters]:
    """Return the numbers of jobs, active jobs and placements of each company by id."""
    names = ("jobs_count", "active_jobs_count", "placements_count")
    counted = {id: dict.fromkeys(names, 0) for id in companies}
    for start in range(0, len(companies), _SLICE):
        ids = tuple(companies[start : start + _SLICE])
        among = RowCondition(f"t.company_id IN ({', '.join('?' * len(ids))})", ids)
        for name, shelf, where in (
            ("jobs_count", jobs, among),
            ("active_jobs_count", jobs, among.narrowed(_ACTIVE)),
            ("placements_count", bookings, among.narrowed(_PLACEMENT)),
        ):
            for id, number in shelf.count_by(where, "company_id"):
                counted[id][name] = number
    return counted
