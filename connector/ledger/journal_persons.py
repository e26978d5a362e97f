"""Persons in the journal of pushes: where they are, and what remains without.

They use an open connection; the caller begins and ends the transaction. A row stays, with its
outcome, its record's id and its request counts; what was sent, what was there before, and what was
told of it lose the values that tell of the person. A mark stays where a value was: without it, a
removed value could not be told from an empty one, and an undo would empty the field.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import DataSubject
from connector.catalog.resource import Declaration
from connector.catalog.value import MARK, VALUE_ERASED, is_redacted
from connector.engine.push_commands import Move
from connector.engine.push_plan import Problem
from connector.ledger.journal_reads import Key
from connector.ledger.journal_writes import JournalChange
from connector.ledger.ledger_schema import OPEN
from connector.suppression.person import (
    Mention,
    Person,
    changed_elsewhere,
    is_own,
    marked_groups,
    owned,
)

_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")
_KEPT_AS = {"push_attempts": ("attempt", "body", "BLOB"), "push_before": ("step", "record", "TEXT")}
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "push_batches": ("file", "message"),
    "push_attempts": ("reason",),
    "push_problems": ("message", "received", "found", "allowed", "fix"),
}
"""By table, columns in which somebody may be named, whatever row they are of."""

ERASED = Problem(
    "person_erased",
    "The row is about a person who was erased.",
    fix="Take the row out; 'connector erase --release' lets the person in again.",
)
"""Problem of a row that was planned when its person was erased."""

REDACTED = Problem(
    VALUE_ERASED,
    "A value of the row was changed by an erasure, so that the row is not sent.",
    fix="Correct the row in its file, and push it again.",
)
"""Problem of a row that was planned when somebody whom a text of it names was erased."""


@dataclass(slots=True)
class InJournal:
    """What the journal holds of a person: rows by table, the batches that they are of
    with the names of their files, the rows whose writes are in doubt, and the texts that name
    the person in rows about others.
    """

    counts: Counter[str] = field(default_factory=Counter)
    batches: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    in_doubt: list[Key] = field(default_factory=list)
    mentions: set[Mention] = field(default_factory=set)


Part = tuple[str, str | int]
"""Where a record or body of a row is kept: its table, and which of the row's it is there."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One row with every record and body that is kept of it."""

    key: Key
    declaration: Declaration
    operation: str | None
    is_open: bool
    is_planned: bool
    record_id: str | None
    task: dict[str, Any] | None
    parts: Mapping[Part, Any]

    def mappings(self) -> Iterator[Mapping[str, Any]]:
        """Every record and body that is kept of the row."""
        if self.task is not None:
            joined: dict[str, Any] = {}
            for name in reversed(_TASK_MAPPINGS):
                joined |= self.task[name]
            yield joined
            yield self.task["base"]
        for (table, _), values in self.parts.items():
            if table != "push_rows" and isinstance(values, Mapping):
                yield values

    def groups(self, person: Person) -> tuple[DataSubject, ...]:
        """The groups of fields that tell of the person in any of it."""
        found: dict[DataSubject, None] = {}
        for values in self.mappings():
            asked = {"id": self.record_id, **values}
            found |= dict.fromkeys(owned(self.declaration.name, asked, person))
        return tuple(found)

    def reduced(self, groups: tuple[DataSubject, ...], person: Person) -> dict[Part, Any]:
        """The parts that change without these groups of fields, as they are then."""
        left = {
            part: marked_groups(self.declaration, values, groups, person)
            for part, values in self.parts.items()
            if isinstance(values, Mapping)
        }
        return {part: values for part, values in left.items() if values != self.parts[part]}


def reduce_journal(
    connection: sqlite3.Connection, person: Person, change: JournalChange | None
) -> InJournal:
    """What the journal holds of the person; with a `change`, it is taken out."""
    found = InJournal()
    for row in _rows(connection):
        _reduce_row(row, person, change, found)
    names = dict(connection.execute("SELECT batch, file FROM push_batches").fetchall())
    for table in _TEXTS:
        _scrub(connection, table, person, change, found)
    found.files = {batch: names[batch] for batch in found.batches}
    return found


def journal_contents(connection: sqlite3.Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record and body that the journal holds, with its resource and the record's
    id; without values that were removed, and without nulls, which tell nothing of anybody.
    """
    for row in _rows(connection):
        for values in row.mappings():
            left = {name: each for name, each in values.items() if each not in (None, MARK)}
            yield row.declaration.name, {"id": row.record_id, **left}


def _rows(connection: sqlite3.Connection) -> Iterator[_Row]:
    kept: dict[Key, dict[Part, Any]] = {}
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
        parts: dict[Part, Any] = kept.get(key, {})
        if task is not None:
            parts = {**{("push_rows", name): task[name] for name in _TASK_MAPPINGS}, **parts}
        state = bool(is_open), bool(is_planned)
        yield _Row(key, CATALOG[resource], operation, *state, record_id, task, parts)


def _shown(key: Key) -> str:
    """A row's key as receipts show it."""
    return "/".join(map(str, key))


def _reduce_row(row: _Row, person: Person, change: JournalChange | None, found: InJournal) -> None:
    groups = row.groups(person)
    left = row.reduced(groups, person)
    if left:
        tables = Counter(table for table, _ in left)
        # A row counts once, however many of its task's mappings change.
        tables["push_rows"] = min(tables["push_rows"], 1)
        found.counts.update(tables)
        found.batches.add(row.key[0])
        found.mentions.update(
            Mention(part[0], _shown(row.key), name)
            for part, values in left.items()
            for name in changed_elsewhere(row.parts[part], values, groups)
        )
        if row.is_open:
            found.in_doubt.append(row.key)
    if change is None:
        return
    written = (("push_rows", "fields"), ("push_rows", "afterwards"))
    is_unfit = any(is_redacted({**row.parts, **left}.get(part)) for part in written)
    if row.is_planned and not row.is_open and (groups or is_unfit):
        # Never sent, and never to be.
        problem = ERASED if groups else REDACTED
        change.move(row.key, Move("refused_here", problem.code, (problem,)))
    elif groups:
        gone = [name for group in groups for name in group.fields]
        change.connection.execute(
            "UPDATE push_problems SET received = NULL, found = NULL, change = ?"
            " WHERE batch = ? AND number = ? AND (?"
            " OR field IN (SELECT value FROM json_each(?)))",
            (change.number, *row.key, is_own(groups), json.dumps(gone)),
        )
    if left:
        _write(row, left, change, is_about=bool(groups))


def _write(row: _Row, left: Mapping[Part, Any], change: JournalChange, *, is_about: bool) -> None:
    values: dict[str, Any] = {}
    if row.task is not None:
        mappings = {which: each for (table, which), each in left.items() if table == "push_rows"}
        values["task"] = json.dumps({**row.task, **mappings})
    # In a row of somebody else's stays what keeps it from being sent twice. Else a hash without a
    # key can be guessed: it goes, but for that of a conversion, which is of an id, and keeps a
    # lead from being converted twice.
    if is_about and row.operation != "convert":
        values["fingerprint"] = None
    if is_about and (row.record_id is None or row.operation == "create"):
        values["subject"] = None
    change.update_row(row.key, **values)
    for (table, which), each in left.items():
        if table in _KEPT_AS:
            name, column, kind = _KEPT_AS[table]
            change.connection.execute(
                f"UPDATE {table} SET {column} = CAST(? AS {kind}), change = ?"
                f" WHERE batch = ? AND number = ? AND {name} = ?",
                (json.dumps(each), change.number, *row.key, which),
            )


def _scrub(
    connection: sqlite3.Connection,
    table: str,
    person: Person,
    change: JournalChange | None,
    found: InJournal,
) -> None:
    """Look for the person in the texts of a table."""
    columns = _TEXTS[table]
    names = ", ".join(columns)
    number = "NULL" if table == "push_batches" else "number"
    rows = connection.execute(f"SELECT rowid, batch, {number}, {names} FROM {table}").fetchall()
    for rowid, batch, row, *texts in rows:
        left = [None if text is None else person.without(text) for text in texts]
        if left == texts:
            continue
        found.counts[table] += 1
        found.batches.add(batch)
        key = batch if row is None else _shown((batch, row))
        changed = (name for name, a, b in zip(columns, texts, left, strict=True) if a != b)
        found.mentions.update(Mention(table, key, name) for name in changed)
        if change is not None:
            sets = ", ".join(f"{name} = ?" for name in columns)
            connection.execute(
                f"UPDATE {table} SET {sets}, change = ? WHERE rowid = ?",
                (*left, change.number, rowid),
            )
            if table == "push_problems":
                # What is told of a row is copied for analysts with the row.
                connection.execute(
                    "UPDATE push_rows SET change = ? WHERE (batch, number) IN"
                    " (SELECT batch, number FROM push_problems WHERE rowid = ?)",
                    (change.number, rowid),
                )
