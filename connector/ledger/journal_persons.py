"""People in the journal of pushes: find and remove them.

The functions use an open connection; the caller begins and ends the transaction. A row stays, with
its outcome, the id of its record and its number of requests. Its sent body and its former record
lose the values that describe the person. A mark replaces each value, because an undo would
otherwise empty the field. Texts in other people's rows stay and are listed. Messages and file names
that contain the person's name are replaced completely.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import MARK, DataSubject
from connector.catalog.resource import Declaration
from connector.ledger.journal_records import RowKey, Transition
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.ledger_schema import OPEN
from connector.ledger.person import (
    Mention,
    Person,
    find_mentions,
    groups_describing,
    mark_removed_fields,
)
from connector.ledger.push_plan import Problem

_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")
_KEPT_AS = {"push_attempts": ("attempt", "body", "BLOB"), "push_before": ("step", "record", "TEXT")}
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "push_batches": ("file", "message"),
    "push_attempts": ("reason", "answer"),
    "push_problems": ("message", "received", "found", "allowed", "fix"),
}
"""Text columns that may name a person, by table."""

ERASED = Problem(
    "person_erased",
    "The row is about a person who was erased.",
    fix="Remove the row. To import the person again, run 'connector erase --release' first.",
)
"""Problem of a planned row whose person was erased."""


@dataclass(slots=True)
class JournalMatches:
    """Data of a person in the journal of pushes.

    Attributes:
        counts: Number of rows with data of the person, by table.
        batches: Batches of these rows.
        files: Name of the pushed file, by batch.
        in_doubt: Rows about the person whose write may have been applied.
        mentions: Texts in rows about other people that name the person.
    """

    counts: Counter[str] = field(default_factory=Counter)
    batches: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    in_doubt: list[RowKey] = field(default_factory=list)
    mentions: set[Mention] = field(default_factory=set)


PartKey = tuple[str, str | int]
"""Place of a record or body of a row: its table, and its key there."""


@dataclass(frozen=True, slots=True)
class _JournalRow:
    """Row of a batch with all records and bodies that the journal has of it, by table and key."""

    key: RowKey
    declaration: Declaration
    operation: str | None
    is_open: bool
    is_planned: bool
    record_id: str | None
    task: dict[str, Any] | None
    parts: Mapping[PartKey, Any]

    def records_and_bodies(self) -> Iterator[Mapping[str, Any]]:
        """Yield the values by field of the row's task, joined, of its base, records and bodies."""
        if self.task is not None:
            joined: dict[str, Any] = {}
            for name in reversed(_TASK_MAPPINGS):
                joined |= self.task[name]
            yield joined
            yield self.task["base"]
        for (table, _), values in self.parts.items():
            if table != "push_rows" and isinstance(values, Mapping):
                yield values

    def groups_describing(self, person: Person) -> tuple[DataSubject, ...]:
        """Return the groups of fields that describe the person in any record or body of the row."""
        found: dict[DataSubject, None] = {}
        for values in self.records_and_bodies():
            asked = {"id": self.record_id, **values}
            found |= dict.fromkeys(groups_describing(self.declaration.name, asked, person))
        return tuple(found)

    def redacted_parts(self, groups: tuple[DataSubject, ...], person: Person) -> dict[PartKey, Any]:
        """Return the records and bodies that an erasure changes, with their new values."""
        left = {
            part: mark_removed_fields(self.declaration, values, person, groups)
            for part, values in self.parts.items()
            if isinstance(values, Mapping)
        }
        return {part: values for part, values in left.items() if values != self.parts[part]}


def find_or_redact_person(
    connection: sqlite3.Connection, person: Person, journal: JournalWriter | None
) -> JournalMatches:
    """Return the data of a person in the journal. If `journal` is given, also redact the data."""
    found = JournalMatches()
    for row in _read_rows(connection):
        _find_or_redact_in_row(row, person, journal, found)
    names = dict(connection.execute("SELECT batch, file FROM push_batches").fetchall())
    for table in _TEXTS:
        _find_or_redact_in_texts(connection, table, person, journal, found)
    found.files = {batch: names[batch] for batch in found.batches}
    return found


def journal_contents(connection: sqlite3.Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the resource and the values of every record and body in the journal.

    The values include the record's id. Redacted values and nulls are left out.
    """
    for row in _read_rows(connection):
        for values in row.records_and_bodies():
            left = {name: each for name, each in values.items() if each not in (None, MARK)}
            yield row.declaration.name, {"id": row.record_id, **left}


def _read_rows(connection: sqlite3.Connection) -> Iterator[_JournalRow]:
    """Yield every row of the journal with its records and bodies."""
    kept: dict[RowKey, dict[PartKey, Any]] = {}
    for table, batch, number, which, text in connection.execute(
        "SELECT 'push_attempts', batch, number, attempt, body FROM push_attempts"
        " WHERE body IS NOT NULL"
        " UNION ALL SELECT 'push_before', batch, number, step, record FROM push_before"
    ):
        kept.setdefault((batch, number), {})[table, which] = json.loads(text)
    rows = connection.execute(
        f"SELECT batch, number, resource, operation, {OPEN}, state = 'planned', record_id, task"
        " FROM push_rows JOIN push_batches USING (batch) ORDER BY batch, number"
    ).fetchall()
    for batch, number, resource, operation, is_open, is_planned, record_id, text in rows:
        key, task = (batch, number), None if text is None else json.loads(text)
        parts: dict[PartKey, Any] = kept.get(key, {})
        if task is not None:
            parts = {**{("push_rows", name): task[name] for name in _TASK_MAPPINGS}, **parts}
        state = bool(is_open), bool(is_planned)
        yield _JournalRow(key, CATALOG[resource], operation, *state, record_id, task, parts)


def _find_or_redact_in_row(
    row: _JournalRow, person: Person, journal: JournalWriter | None, found: JournalMatches
) -> None:
    """Add the person's data in a row to `found`. If `journal` is given, also redact the data."""
    groups = row.groups_describing(person)
    left = row.redacted_parts(groups, person)
    for (table, _), values in {**row.parts, **left}.items():
        if isinstance(values, Mapping):
            place = "/".join(map(str, row.key))
            found.mentions.update(
                find_mentions(f"push.{table.removeprefix('push_')}", place, values, person)
            )
    if left:
        tables = Counter(table for table, _ in left)
        # A row counts once, however many of its task's mappings change.
        tables["push_rows"] = min(tables["push_rows"], 1)
        found.counts.update(tables)
        found.batches.add(row.key[0])
        if row.is_open:
            found.in_doubt.append(row.key)
    if journal is not None and (groups or left):
        _redact_row(row, groups, left, journal)


def _redact_row(
    row: _JournalRow,
    groups: tuple[DataSubject, ...],
    redacted: Mapping[PartKey, Any],
    journal: JournalWriter,
) -> None:
    """Write the redacted parts of a row. A row that was never sent ends as invalid."""
    with journal.writing() as change:
        if row.is_planned and not row.is_open:
            # Never sent, and never to be.
            ended = Transition("refused_here", ERASED.code, (ERASED,))
            journal.record_transition(row.key, ended)
        elif groups:
            is_own = any(group.ids == ("id",) for group in groups)
            gone = [name for group in groups for name in group.fields]
            change.connection.execute(
                "UPDATE push_problems SET received = NULL, found = NULL, change = ?"
                " WHERE batch = ? AND number = ? AND (?"
                " OR field IN (SELECT value FROM json_each(?)))",
                (change.number, *row.key, is_own, json.dumps(gone)),
            )
        if redacted:
            _write_redacted_parts(row, redacted, journal, is_about=bool(groups))


def _write_redacted_parts(
    row: _JournalRow, redacted: Mapping[PartKey, Any], journal: JournalWriter, *, is_about: bool
) -> None:
    """Replace the redacted parts of a row, and remove hashes from which the person could be
    guessed.

    `is_about` is True if a group of fields in the row describes the person.
    """
    values: dict[str, Any] = {}
    if row.task is not None:
        mappings = {
            which: each for (table, which), each in redacted.items() if table == "push_rows"
        }
        values["task"] = json.dumps({**row.task, **mappings})
    # In a row of another user's stays what keeps it from being sent twice. Else a hash without a
    # key can be guessed: it goes, but for that of a conversion, which is of an id, and keeps a
    # lead from being converted twice.
    if is_about and row.operation != "convert":
        values["fingerprint"] = None
    if is_about and (row.record_id is None or row.operation == "create"):
        values["subject"] = None
    with journal.writing() as change:
        journal.update_row(row.key, **values)
        for (table, which), each in redacted.items():
            if table in _KEPT_AS:
                name, column, kind = _KEPT_AS[table]
                change.connection.execute(
                    f"UPDATE {table} SET {column} = CAST(? AS {kind}), change = ?"
                    f" WHERE batch = ? AND number = ? AND {name} = ?",
                    (json.dumps(each), change.number, *row.key, which),
                )


def _find_or_redact_in_texts(
    connection: sqlite3.Connection,
    table: str,
    person: Person,
    journal: JournalWriter | None,
    found: JournalMatches,
) -> None:
    """Add texts of a table that name the person to `found`. If `journal` is given, also redact
    them.
    """
    columns = _TEXTS[table]
    rows = connection.execute(f"SELECT rowid, batch, {', '.join(columns)} FROM {table}").fetchall()
    for rowid, batch, *texts in rows:
        left = [MARK if text and person.is_named_in(text) else text for text in texts]
        if left == texts:
            continue
        found.counts[table] += 1
        found.batches.add(batch)
        if journal is None:
            continue
        sets = ", ".join(f"{name} = ?" for name in columns)
        with journal.writing() as change:
            connection.execute(
                f"UPDATE {table} SET {sets}, change = ? WHERE rowid = ?",
                (*left, change.number, rowid),
            )
            if table == "push_problems":
                # Problems of a row are copied for analysts with the row.
                connection.execute(
                    "UPDATE push_rows SET change = ? WHERE (batch, number) IN"
                    " (SELECT batch, number FROM push_problems WHERE rowid = ?)",
                    (change.number, rowid),
                )
