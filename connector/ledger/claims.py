"""What rows of a push lay claim to: writes that are done or open, things written about, records.

Functions over an open connection; nothing here writes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from connector.engine.push_plan import Plan, unpacked
from connector.engine.push_states import Operation, State
from connector.ledger.journal_reads import Key
from connector.ledger.migrations import OPEN

VALUES_AT_ONCE = 500
"""Values that one statement looks for; SQLite takes only so many."""

T = TypeVar("T")


def open_subjects(connection: sqlite3.Connection) -> dict[str, Key]:
    """What is written about at present, or was and nobody knows with what result, by the row."""
    rows = connection.execute(
        f"SELECT subject, batch, number FROM push_rows WHERE subject IS NOT NULL AND {OPEN}"
    ).fetchall()
    return {subject: (batch, number) for subject, batch, number in rows}


@dataclass(frozen=True, slots=True)
class Done:
    """A row that has applied a write, or has it open; `is_open` says which."""

    key: Key
    operation: Operation
    state: State
    record_id: str | None
    is_open: bool


def done(
    connection: sqlite3.Connection, fingerprints: Iterable[str], *, outside: str | None = None
) -> dict[str, Done]:
    """The rows that answer for these writes, by fingerprint: those open, else those applied last;
    `outside` is a batch whose own rows are none of them.

    What was put back answers for nothing, nor does an update that did not turn out as sent, or
    whose record another row has changed since: it is worth sending again.
    """
    found: dict[str, Done] = {}
    for some in _slices(fingerprints):
        rows = connection.execute(
            f"SELECT fingerprint, batch, number, operation, state, record_id, {OPEN}, change"
            f" FROM push_rows WHERE fingerprint IN ({_marks(some)}) AND undone_at IS NULL"
            f" AND batch IS NOT ? AND (state IN ('applied', 'not_applied') OR {OPEN})"
            " ORDER BY state IN ('applied', 'not_applied'), change DESC",
            (*some, outside),
        ).fetchall()
        for print_, batch, number, operation, state, record_id, is_open, change in rows:
            if print_ in found:
                continue
            is_update = operation == "update" and not is_open
            if is_update and (state != "applied" or _is_past(connection, record_id, change)):
                continue
            found[print_] = Done((batch, number), operation, state, record_id, bool(is_open))
    return found


def _is_past(connection: sqlite3.Connection, record_id: str, change: int) -> bool:
    """Whether another row has changed the record after that."""
    later = connection.execute(
        "SELECT 1 FROM push_rows WHERE record_id = ? AND change > ? AND operation = 'update'"
        " AND state IN ('applied', 'not_applied') LIMIT 1",
        (record_id, change),
    ).fetchone()
    return later is not None


def claimed(connection: sqlite3.Connection, ids: tuple[str, ...], key: Key) -> frozenset[str]:
    """Which of these records are another row's."""
    found: set[str] = set()
    for some in _slices(ids):
        rows = connection.execute(
            f"SELECT record_id FROM push_rows WHERE record_id IN ({_marks(some)})"
            " AND operation = 'create' AND NOT (batch = ? AND number = ?)"
            " AND (is_begun = 1 OR state IN ('applied', 'not_applied'))",
            (*some, *key),
        )
        found |= {id for (id,) in rows}
    return frozenset(found)


def taken_back(connection: sqlite3.Connection, record_id: str) -> tuple[tuple[str, str], ...]:
    """The updates of a record that were undone: `updated_at` before each, and after its undo."""
    rows = connection.execute(
        "SELECT json_extract(record, '$.updated_at'), updated_at FROM push_rows"
        " JOIN push_before USING (batch, number) WHERE record_id = ? AND operation = 'update'"
        " AND undone_at IS NOT NULL AND updated_at IS NOT NULL AND step = 'first'",
        (record_id,),
    ).fetchall()
    return tuple((before, after) for before, after in rows if before is not None)


def open_creates(connection: sqlite3.Connection, key: Key) -> tuple[Mapping[str, Any], ...]:
    """What other open creates of the row's resource and parent have sent."""
    rows = connection.execute(
        "SELECT batch, number, task FROM push_rows WHERE operation = 'create'"
        f" AND (batch = ? AND number = ? OR {OPEN})",
        key,
    ).fetchall()
    tasks = {(batch, number): unpacked(task) for batch, number, task in rows}
    mine = tasks.pop(key)
    return tuple(
        task.fields
        for task in tasks.values()
        if (task.resource, task.parent) == (mine.resource, mine.parent)
    )


def is_of(connection: sqlite3.Connection, batch: str, plan: Plan) -> bool:
    """Whether the batch has just the rows that the plan has, by their numbers."""
    ((rows,),) = connection.execute("SELECT count(*) FROM push_rows WHERE batch = ?", (batch,))
    if rows != plan.rows:
        return False
    for some in _slices(plan.numbers):
        ((found,),) = connection.execute(
            f"SELECT count(*) FROM push_rows WHERE batch = ? AND number IN ({_marks(some)})",
            (batch, *some),
        )
        if found != len(some):
            return False
    return True


def _slices(values: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """The values in portions that one statement takes."""
    left = iter(values)
    while some := tuple(islice(left, VALUES_AT_ONCE)):
        yield some


def _marks(values: tuple[Any, ...]) -> str:
    return ", ".join("?" for _ in values)
