"""Persons in the journal of pushes: where they are, and what remains of the rows without them.

Functions over an open connection; whoever calls them holds the transaction. A row stays, with its
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
from typing import Any, Self

from connector.catalog import CATALOG
from connector.catalog.field import Owner
from connector.catalog.resource import Declaration
from connector.catalog.value import MARK, VALUE_ERASED, is_redacted
from connector.engine.push_commands import Move
from connector.engine.push_plan import RowProblem
from connector.ledger import journal_writes as writes
from connector.ledger.journal_reads import Key
from connector.ledger.journal_writes import Stamp
from connector.ledger.migrations import OPEN
from connector.suppression.person import (
    Mention,
    Person,
    changed_elsewhere,
    is_own,
    marked_groups,
    owned,
)

_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "push_batches": ("file", "message"),
    "push_attempts": ("reason",),
    "push_problems": ("message", "received", "found", "allowed", "fix"),
}
"""By table, columns in which somebody may be named, whatever row they are of."""

ERASED = RowProblem(
    "person_erased",
    "The row is about a person who was erased.",
    fix="Take the row out; 'connector erase --release' lets the person in again.",
)
"""Problem of a row that was planned when its person was erased."""

REDACTED = RowProblem(
    VALUE_ERASED,
    "A value of the row was changed by an erasure, so that the row is not sent.",
    fix="Correct the row in its file, and push it again.",
)
"""Problem of a row that was planned when somebody whom a text of it names was erased."""


@dataclass(slots=True)
class InJournal:
    """What the journal holds of a person: rows by table, the batches that they are of with the
    names of their files, the rows whose writes are in doubt, and the texts that name the person in
    rows about others.
    """

    counts: Counter[str] = field(default_factory=Counter)
    batches: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    in_doubt: list[Key] = field(default_factory=list)
    mentions: set[Mention] = field(default_factory=set)


@dataclass(slots=True)
class _Row:
    """One row with every record and body that is kept of it."""

    key: Key
    declaration: Declaration
    operation: str | None
    is_open: bool
    is_planned: bool
    record_id: str | None
    task: dict[str, Any] | None
    bodies: dict[int, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)

    def groups(self, person: Person) -> tuple[Owner, ...]:
        """The groups of fields that tell of the person in any of it."""
        found: dict[Owner, None] = {}
        for values in self.mappings():
            asked = {"id": self.record_id, **values}
            found |= dict.fromkeys(owned(self.declaration.name, asked, person))
        return tuple(found)

    def mappings(self) -> Iterator[Mapping[str, Any]]:
        """Every record and body that is kept of the row."""
        if self.task is not None:
            joined: dict[str, Any] = {}
            for name in reversed(_TASK_MAPPINGS):
                joined |= self.task[name]
            yield joined
            yield self.task["base"]
        for each in (*self.bodies.values(), *self.before.values()):
            if isinstance(each, Mapping):
                yield each


def reduce_journal(
    connection: sqlite3.Connection, person: Person, stamp: Stamp | None
) -> InJournal:
    """What the journal holds of the person; with a `stamp`, it is taken out."""
    found = InJournal()
    for row in _rows(connection):
        _reduce_row(connection, row, person, stamp, found)
    names = dict(connection.execute("SELECT batch, file FROM push_batches").fetchall())
    for table in _TEXTS:
        _scrub(connection, table, person, stamp, found)
    found.files = {batch: names[batch] for batch in found.batches}
    return found


def everything_kept(connection: sqlite3.Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record and body that the journal holds, with its resource and the record's id; without
    values that were removed, and without nulls, which tell nothing of anybody.
    """
    for row in _rows(connection):
        for values in row.mappings():
            left = {name: each for name, each in values.items() if each not in (None, MARK)}
            yield row.declaration.name, {"id": row.record_id, **left}


def _rows(connection: sqlite3.Connection) -> Iterator[_Row]:
    bodies: dict[Key, dict[int, Any]] = {}
    for batch, number, attempt, body in connection.execute(
        "SELECT batch, number, attempt, body FROM push_attempts WHERE body IS NOT NULL"
    ):
        bodies.setdefault((batch, number), {})[attempt] = json.loads(body)
    before: dict[Key, dict[str, Any]] = {}
    for batch, number, step, record in connection.execute(
        "SELECT batch, number, step, record FROM push_before"
    ):
        before.setdefault((batch, number), {})[step] = json.loads(record)
    rows = connection.execute(
        f"SELECT batch, number, resource, operation, {OPEN}, state = 'planned', record_id, task"
        " FROM push_rows JOIN push_batches USING (batch) ORDER BY batch, number"
    ).fetchall()
    for batch, number, resource, operation, is_open, is_planned, record_id, task in rows:
        key = (batch, number)
        yield _Row(
            key,
            CATALOG[resource],
            operation,
            bool(is_open),
            bool(is_planned),
            record_id,
            None if task is None else json.loads(task),
            bodies.get(key, {}),
            before.get(key, {}),
        )


@dataclass(slots=True)
class _Left:
    """What remains of a row: its task, and those of its bodies and records that change."""

    task: dict[str, Any] | None
    bodies: dict[int, Any]
    before: dict[str, Any]

    @classmethod
    def of(cls, row: _Row, groups: tuple[Owner, ...], person: Person) -> Self:
        """What remains of the row without these groups of fields."""

        def left(values: Any) -> Any:
            if not isinstance(values, Mapping):
                return values
            return marked_groups(row.declaration, values, groups, person)

        task = row.task
        if task is not None:
            task = {**task, **{name: left(task[name]) for name in _TASK_MAPPINGS}}
        return cls(
            task,
            {number: left(each) for number, each in row.bodies.items() if left(each) != each},
            {step: left(each) for step, each in row.before.items() if left(each) != each},
        )

    @property
    def is_unfit(self) -> bool:
        """Whether a value that the row would write was redacted."""
        task = self.task or {}
        return any(is_redacted(task.get(name)) for name in ("fields", "afterwards"))

    def mentions(self, row: _Row, groups: tuple[Owner, ...]) -> Iterator[Mention]:
        """The texts that change in a row that is not the person's own."""
        key = _shown(row.key)
        if row.task is not None and self.task is not None:
            for mapping in _TASK_MAPPINGS:
                for name in changed_elsewhere(row.task[mapping], self.task[mapping], groups):
                    yield Mention("push_rows", key, name)
        for number, body in self.bodies.items():
            if isinstance(body, Mapping):
                for name in changed_elsewhere(row.bodies[number], body, groups):
                    yield Mention("push_attempts", key, name)
        for step, record in self.before.items():
            for name in changed_elsewhere(row.before[step], record, groups):
                yield Mention("push_before", key, name)


def _shown(key: Key) -> str:
    """A row's key as receipts show it."""
    return "/".join(map(str, key))


def _reduce_row(
    connection: sqlite3.Connection,
    row: _Row,
    person: Person,
    stamp: Stamp | None,
    found: InJournal,
) -> None:
    groups = row.groups(person)
    left = _Left.of(row, groups, person)
    is_changed = left.task != row.task or bool(left.bodies or left.before)
    if is_changed:
        found.batches.add(row.key[0])
        found.counts["push_rows"] += left.task != row.task
        found.counts["push_attempts"] += len(left.bodies)
        found.counts["push_before"] += len(left.before)
        found.mentions.update(left.mentions(row, groups))
        if row.is_open:
            found.in_doubt.append(row.key)
    if stamp is None:
        return
    is_unsent = row.is_planned and not row.is_open
    if is_unsent and (groups or left.is_unfit):
        # Never sent, and never to be.
        problem = ERASED if groups else REDACTED
        writes.move(connection, row.key, Move("refused_here", problem.code, (problem,)), stamp)
    elif groups:
        gone = [name for group in groups for name in group.fields]
        connection.execute(
            "UPDATE push_problems SET received = NULL, found = NULL, change = ?"
            " WHERE batch = ? AND number = ? AND (?"
            " OR field IN (SELECT value FROM json_each(?)))",
            (stamp.change, *row.key, is_own(groups), json.dumps(gone)),
        )
    if is_changed:
        _write(connection, row.key, left, stamp, is_about=bool(groups))


def _write(
    connection: sqlite3.Connection, key: Key, left: _Left, stamp: Stamp, *, is_about: bool
) -> None:
    task = None if left.task is None else json.dumps(left.task)
    if not is_about:
        # The row is somebody else's: what keeps it from being sent twice stays.
        connection.execute(
            "UPDATE push_rows SET task = ?, change = ? WHERE batch = ? AND number = ?",
            (task, stamp.change, *key),
        )
    else:
        _write_without_hashes(connection, key, task, stamp)
    for attempt, body in left.bodies.items():
        connection.execute(
            "UPDATE push_attempts SET body = ?, change = ?"
            " WHERE batch = ? AND number = ? AND attempt = ?",
            (json.dumps(body).encode(), stamp.change, *key, attempt),
        )
    for step, record in left.before.items():
        connection.execute(
            "UPDATE push_before SET record = ?, change = ?"
            " WHERE batch = ? AND number = ? AND step = ?",
            (json.dumps(record), stamp.change, *key, step),
        )


def _write_without_hashes(
    connection: sqlite3.Connection, key: Key, task: str | None, stamp: Stamp
) -> None:
    connection.execute(
        # A hash without a key can be guessed: it goes, but for that of a conversion, which is of
        # an id, and keeps a lead from being converted twice.
        "UPDATE push_rows SET task = ?, change = ?,"
        " fingerprint = CASE operation WHEN 'convert' THEN fingerprint END,"
        " subject = CASE WHEN record_id IS NOT NULL AND operation <> 'create' THEN subject END"
        " WHERE batch = ? AND number = ?",
        (task, stamp.change, *key),
    )


def _scrub(
    connection: sqlite3.Connection,
    table: str,
    person: Person,
    stamp: Stamp | None,
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
        if stamp is not None:
            sets = ", ".join(f"{name} = ?" for name in columns)
            connection.execute(
                f"UPDATE {table} SET {sets}, change = ? WHERE rowid = ?",
                (*left, stamp.change, rowid),
            )
            if table == "push_problems":
                # What is told of a row is copied for analysts with the row.
                connection.execute(
                    "UPDATE push_rows SET change = ? WHERE (batch, number) IN"
                    " (SELECT batch, number FROM push_problems WHERE rowid = ?)",
                    (stamp.change, rowid),
                )
