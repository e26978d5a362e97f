"""What is written into the journal of pushes: batches and their rows, attempts, transitions.

Functions over an open connection; whoever calls them holds the transaction. Every change of a state
is looked up in the table of transitions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

from connector.client.request import Request
from connector.engine.push_commands import Attempt, Move
from connector.engine.push_plan import (
    Plan,
    RowProblem,
    Terms,
    Verdict,
    fingerprint,
    packed,
    subject,
)
from connector.engine.push_states import RowEvent, State, Task, after
from connector.ledger.claims import VALUES_AT_ONCE, Done, done
from connector.ledger.journal_reads import PROBLEM_COLUMNS, Key, terms_text

UNFINISHED: tuple[State, ...] = ("planned", "intent", "unknown", "settling")
"""States of rows at which a push can work."""

_VERDICTS: Mapping[str, RowEvent] = {
    "invalid": "refused_here",
    "duplicate": "repeated",
    "unchanged": "up_to_date",
}
_FRESH = "(state = 'planned' AND is_begun = 0 AND is_in_doubt = 0)"
_DOUBTS: Mapping[RowEvent, bool] = {
    "lost": True,
    "refused_in_doubt": True,
    "unapplied": False,
    "begun": False,
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every change is marked with: when it was made, and its number."""

    at: datetime
    change: int

    @property
    def text(self) -> str:
        """The moment as it is written down."""
        return self.at.isoformat()


def stamped(connection: sqlite3.Connection, at: datetime) -> Stamp:
    """A new number for what this transaction changes."""
    ((last,),) = connection.execute(
        "UPDATE push_changes SET last = last + 1 RETURNING last"
    ).fetchall()
    return Stamp(at, last)


def begin_batch(
    connection: sqlite3.Connection,
    batch: str,
    plan: Plan,
    terms: Terms,
    *,
    landed_before: Iterable[str],
    stamp: Stamp,
) -> None:
    """Write down a new batch with all of its rows."""
    connection.execute(
        "INSERT INTO push_batches (batch, resource, mode, file, digest, terms, landed_before,"
        " run_id, begun_at, requests, seconds, change) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?)",
        (
            *(batch, plan.resource, plan.mode, plan.file, plan.digest, terms_text(terms)),
            *(json.dumps(sorted(landed_before)), batch, stamp.text, stamp.change),
        ),
    )
    add_rows(connection, batch, plan, stamp)


def add_rows(connection: sqlite3.Connection, batch: str, plan: Plan, stamp: Stamp) -> None:
    """Write down the rows of the plan that the batch does not have."""
    _add_tasks(connection, batch, plan, stamp)
    for verdict in plan.verdicts:
        _add_verdict(connection, batch, verdict, stamp)
    ((rows,),) = connection.execute("SELECT count(*) FROM push_rows WHERE batch = ?", (batch,))
    assert rows == plan.rows, "a row has two plans"


def _add_tasks(connection: sqlite3.Connection, batch: str, plan: Plan, stamp: Stamp) -> None:
    """Write down rows that are to be written."""

    def columns(task: Task) -> tuple[Any, ...]:
        assert task.resource == plan.resource, task.resource
        return (
            *(batch, task.number, task.operation, fingerprint(task), subject(task)),
            *(after("read", "undertaken"), task.record_id, stamp.text, stamp.change),
            packed(task),
        )

    connection.executemany(
        "INSERT INTO push_rows (batch, number, operation, fingerprint, subject, state, code,"
        " is_begun, is_in_doubt, is_altered, record_id, moved_at, change, task)"
        " VALUES (?, ?, ?, ?, ?, ?, '', 0, 0, 0, ?, ?, ?, ?)"
        " ON CONFLICT (batch, number) DO NOTHING",
        map(columns, plan.tasks),
    )


def _add_verdict(
    connection: sqlite3.Connection, batch: str, verdict: Verdict, stamp: Stamp
) -> None:
    """Write down a row that is not to be written, and why."""
    state = after("read", _VERDICTS[verdict.outcome])
    assert state == verdict.outcome, verdict
    added = connection.execute(
        "INSERT INTO push_rows (batch, number, state, code, is_begun, is_in_doubt, is_altered,"
        " record_id, moved_at, change) VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?, ?)"
        " ON CONFLICT (batch, number) DO NOTHING",
        (
            *(batch, verdict.number, state, verdict.code, verdict.record_id),
            *(stamp.text, stamp.change),
        ),
    )
    if added.rowcount:
        set_problems(connection, (batch, verdict.number), verdict.problems, stamp)


def remove_unsent(connection: sqlite3.Connection, batch: str) -> None:
    """Take out the batch's rows of which nothing was ever intended."""
    untried = (
        "batch = ? AND state = 'planned' AND number NOT IN"
        " (SELECT number FROM push_attempts WHERE batch = ?)"
    )
    connection.execute(
        f"DELETE FROM push_problems WHERE batch = ? AND number IN"
        f" (SELECT number FROM push_rows WHERE {untried})",
        (batch, batch, batch),
    )
    connection.execute(f"DELETE FROM push_rows WHERE {untried}", (batch, batch))


def set_problems(
    connection: sqlite3.Connection, key: Key, problems: Iterable[RowProblem], stamp: Stamp
) -> None:
    """Put these in the place of the row's problems."""
    connection.execute("DELETE FROM push_problems WHERE batch = ? AND number = ?", key)
    marks = ", ".join("?" for _ in PROBLEM_COLUMNS)
    connection.executemany(
        f"INSERT INTO push_problems (batch, number, place, {', '.join(PROBLEM_COLUMNS)}, change)"
        f" VALUES (?, ?, ?, {marks}, ?)",
        [(*key, place, *astuple(each), stamp.change) for place, each in enumerate(problems)],
    )


def intend(
    connection: sqlite3.Connection,
    key: Key,
    request: Request,
    *,
    before: Mapping[str, Any] | None,
    sent_after: datetime,
    stamp: Stamp,
) -> Attempt:
    """Write an attempt down, before a byte of it leaves."""
    state, is_begun = _state(connection, key)
    step = "afterwards" if is_begun else "first"
    ((last,),) = connection.execute(
        "SELECT coalesce(max(attempt), 0) FROM push_attempts WHERE batch = ? AND number = ?", key
    ).fetchall()
    connection.execute(
        "INSERT INTO push_attempts (batch, number, attempt, step, method, path, body, intended_at,"
        " sent_after, change) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(*key, last + 1, step, request.method, request.path, request.body),
            *(stamp.text, sent_after.isoformat(), stamp.change),
        ),
    )
    if before is not None:
        _note_before(connection, key, step, before, stamp)
    connection.execute(
        "UPDATE push_rows SET state = ?, code = 'in_doubt', moved_at = ?, change = ?"
        " WHERE batch = ? AND number = ?",
        (after(state, "intended"), stamp.text, stamp.change, *key),
    )
    return Attempt(last + 1, "afterwards" if is_begun else "first", stamp.at, sent_after)


def move(
    connection: sqlite3.Connection,
    key: Key,
    what: Move,
    stamp: Stamp,
    *,
    same: Key | None = None,
) -> State:
    """Write a transition down with all that it says; returns the new state. `same` is the row that
    this one repeats or follows.
    """
    state, is_begun = _state(connection, key)
    to = after(state, what.event)
    is_altered = what.event == "altered" or any(p.code == "values_differ" for p in what.problems)
    doubt = _DOUBTS.get(what.event)
    connection.execute(
        "UPDATE push_rows SET state = ?, code = ?, is_begun = ?, is_in_doubt ="
        " coalesce(?, is_in_doubt), is_altered = max(is_altered, ?),"
        " record_id = coalesce(?, record_id), updated_at = coalesce(?, updated_at),"
        " same_batch = ?, same_number = ?, moved_at = ?, change = ?"
        " WHERE batch = ? AND number = ?",
        (
            *(to, what.code, is_begun or what.event == "begun", doubt, is_altered),
            *(what.record_id, what.updated_at, *(same or (None, None))),
            *(stamp.text, stamp.change, *key),
        ),
    )
    if what.fate is not None:
        connection.execute(
            "UPDATE push_attempts SET ended_at = ?, fate = ?, reason = ?, change = ?"
            " WHERE batch = ? AND number = ? AND ended_at IS NULL",
            (stamp.text, what.fate, what.reason, stamp.change, *key),
        )
    if what.before is not None:
        _note_before(connection, key, "afterwards", what.before, stamp)
    if what.problems or to == "applied" or what.event in ("begun", "resent", "looked_again"):
        set_problems(connection, key, what.problems, stamp)
    return to


def recover(connection: sqlite3.Connection, stamp: Stamp) -> int:
    """Put in doubt whatever was under way when a push ended without a word; returns how many."""
    rows = connection.execute("SELECT batch, number FROM push_rows WHERE state = 'intent'")
    keys: list[Key] = rows.fetchall()
    for key in keys:
        reason = "the push ended before an answer was recorded"
        move(connection, key, Move("lost", "in_doubt", fate="lost", reason=reason), stamp)
    return len(keys)


def relate(connection: sqlite3.Connection, batch: str, terms: Terms, stamp: Stamp) -> None:
    """End those of the batch's planned rows whose write was done, or is open, elsewhere."""
    repeated = connection.execute(
        "SELECT number, earlier FROM (SELECT number, is_fresh, first_value(number)"
        " OVER (PARTITION BY fingerprint ORDER BY is_fresh, number) AS earlier"
        f" FROM (SELECT number, fingerprint, {_FRESH} AS is_fresh FROM push_rows"
        " WHERE batch = ? AND fingerprint IS NOT NULL"
        " AND state NOT IN ('duplicate', 'invalid', 'follows', 'unchanged')))"
        " WHERE is_fresh AND earlier <> number",
        (batch,),
    ).fetchall()
    for number, earlier in repeated:
        told = RowProblem("same_row", f"row {earlier} of the file is the same")
        what = Move("repeated", "same_row", (told,))
        move(connection, (batch, number), what, stamp, same=(batch, earlier))
    last = -1
    while fresh := _fresh_after(connection, batch, last):
        for print_, other in done(connection, fresh, outside=batch).items():
            if (answered := _answered(other, terms)) is not None:
                move(connection, (batch, fresh[print_]), answered, stamp, same=other.key)
        last = max(fresh.values())


def _fresh_after(connection: sqlite3.Connection, batch: str, number: int) -> dict[str, int]:
    """The batch's next rows behind that number of which nothing was sent, by their fingerprints."""
    rows = connection.execute(
        "SELECT fingerprint, number FROM push_rows WHERE batch = ? AND number > ?"
        f" AND fingerprint IS NOT NULL AND {_FRESH} ORDER BY number LIMIT ?",
        (batch, number, VALUES_AT_ONCE),
    )
    return dict(rows.fetchall())


def _answered(other: Done, terms: Terms) -> Move | None:
    """How a row ends whose write another row has done or has open; None where it is to be sent."""
    if other.is_open:
        return Move("written_elsewhere", "taken_over")
    if terms.again and other.operation != "convert":
        return None
    if other.state == "not_applied":
        return Move("written_elsewhere", "already_pushed")
    return Move("up_to_date", "already_pushed", record_id=other.record_id)


def _note_before(
    connection: sqlite3.Connection, key: Key, step: str, record: Mapping[str, Any], stamp: Stamp
) -> None:
    connection.execute(
        "INSERT INTO push_before (batch, number, step, record, noted_at, change)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, step, json.dumps(dict(record)), stamp.text, stamp.change),
    )


def _state(connection: sqlite3.Connection, key: Key) -> tuple[State, bool]:
    found = connection.execute(
        "SELECT state, is_begun FROM push_rows WHERE batch = ? AND number = ?", key
    ).fetchone()
    assert found is not None, f"there is no row {key}"
    return found[0], bool(found[1])
