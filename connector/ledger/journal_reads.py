"""What the journal of pushes remembers, read back: batches, rows, attempts, problems, and records
as they were before.

Functions over an open connection. A row's outcome is worked out here from what is written down and
from nothing else, so that a report can be made again at any time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from connector.engine.push_commands import Attempt
from connector.engine.push_plan import RowProblem, Terms, unpacked
from connector.engine.push_row import Standing
from connector.engine.push_states import (
    FOR_A_PERSON,
    IN_DOUBT,
    Mode,
    Operation,
    RowOutcome,
    State,
    Task,
    outcome_of,
    outcome_of_follower,
)
from connector.ledger.ledger import Ledger

Key = tuple[str, int]
"""A row: its batch, and its number in the file."""

PROBLEM_COLUMNS = ("code", "message", "field", '"column"', "received", "found", "allowed", "fix")

_MOMENTS = frozenset(("begun_at", "ended_at", "intended_at", "sent_after", "noted_at"))


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One file that was pushed. `outcome`, `error_code` and `message` are those of the last run
    that worked at it, None while none has ended; `requests` and `seconds` are of all of them.
    """

    batch: str
    resource: str
    mode: Mode
    file: str
    digest: str
    terms: Terms
    run_id: str
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error_code: str | None
    message: str | None
    requests: int
    seconds: float
    change: int


@dataclass(frozen=True, slots=True)
class RowRecord:
    """How one row stands, and what it is called. `code` says more than the outcome does, and is
    empty where there is no more to say. `record_id` is the record it made or changed, or is the
    same as. `same` is the row that this one repeats or follows.
    """

    batch: str
    number: int
    operation: Operation | None
    state: State
    outcome: RowOutcome
    code: str
    record_id: str | None
    updated_at: str | None
    same: Key | None
    undone_at: datetime | None
    moved_at: datetime
    change: int
    problems: tuple[RowProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt at a write, with the very bytes of its body (None: it has none)."""

    batch: str
    number: int
    attempt: int
    step: str
    method: str
    path: str
    body: bytes | None
    intended_at: datetime
    sent_after: datetime
    ended_at: datetime | None
    fate: str | None
    reason: str | None
    change: int


@dataclass(frozen=True, slots=True)
class BeforeImage:
    """A record as it was before a row's step: before an update, or as it was created."""

    batch: str
    number: int
    step: str
    record: Mapping[str, Any]
    noted_at: datetime
    change: int


@dataclass(frozen=True, slots=True)
class Work:
    """A row that can be brought further: what it undertakes, and how it stands."""

    key: Key
    task: Task
    standing: Standing
    subject: str | None
    code: str


@dataclass(frozen=True, slots=True)
class Left:
    """What is left to be done of a batch: so many rows, and those of them of which a write is open
    already.
    """

    rows: int
    open: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Changes:
    """A part of what changed since a number, each thing whole; `last` is the number to ask from
    next, once all parts are read.
    """

    last: int
    batches: tuple[BatchRecord, ...] = ()
    rows: tuple[RowRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    before_images: tuple[BeforeImage, ...] = ()


def batch_records(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> tuple[BatchRecord, ...]:
    """The batches that a condition selects, the latest first."""
    found = _selected(connection, BatchRecord, "push_batches", where, parameters)
    records = [
        BatchRecord(**{**each, "terms": Terms(**json.loads(each["terms"]))}) for each in found
    ]
    return tuple(sorted(records, key=lambda each: (each.begun_at, each.batch), reverse=True))


def row_records(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> tuple[RowRecord, ...]:
    """The rows that a condition selects, by batch and number, with their problems."""
    given = tuple(parameters)
    rows = connection.execute(
        "SELECT mine.batch, mine.number, mine.operation, mine.state, mine.code, mine.is_begun,"
        " mine.is_in_doubt, mine.record_id, mine.updated_at, mine.same_batch, mine.same_number,"
        " mine.undone_at, mine.moved_at, mine.change, other.operation, other.state,"
        " other.is_begun, other.is_in_doubt, other.record_id"
        " FROM push_rows AS mine LEFT JOIN push_rows AS other"
        " ON mine.state = 'follows' AND other.batch = mine.same_batch"
        " AND other.number = mine.same_number"
        f" WHERE {where} ORDER BY mine.batch, mine.number",
        given,
    ).fetchall()
    problems = _problems(connection, where, given)
    return tuple(_row_record(each, problems) for each in rows)


def _row_record(row: tuple[Any, ...], problems: Mapping[Key, list[RowProblem]]) -> RowRecord:
    batch, number, operation, state, code, is_begun, is_in_doubt, record_id, updated_at = row[:9]
    same_batch, same_number, undone_at, moved_at, change = row[9:14]
    if state == "follows":
        other_operation, other_state, other_begun, other_doubt, other_id = row[14:]
        followed = outcome_of(
            other_state, other_operation, is_begun=other_begun, is_in_doubt=other_doubt
        )
        outcome, record_id = outcome_of_follower(followed), other_id
    else:
        outcome = outcome_of(state, operation, is_begun=is_begun, is_in_doubt=is_in_doubt)
    return RowRecord(
        batch=batch,
        number=number,
        operation=operation,
        state=state,
        outcome=outcome,
        code=code,
        record_id=record_id,
        updated_at=updated_at,
        same=None if same_batch is None else (same_batch, same_number),
        undone_at=moment(undone_at),
        moved_at=_moment(moved_at),
        change=change,
        problems=tuple(problems.get((batch, number), ())),
    )


def _problems(
    connection: sqlite3.Connection, where: str, parameters: tuple[Any, ...]
) -> dict[Key, list[RowProblem]]:
    """The problems of the rows that a condition selects; a row that follows has the other's."""
    shown = ", ".join(f"told.{name}" for name in PROBLEM_COLUMNS)
    rows = connection.execute(
        f"SELECT mine.batch, mine.number, {shown} FROM push_rows AS mine JOIN push_problems AS told"
        " ON told.batch = CASE mine.state WHEN 'follows' THEN mine.same_batch ELSE mine.batch END"
        " AND told.number = CASE mine.state WHEN 'follows' THEN mine.same_number"
        f" ELSE mine.number END WHERE {where} ORDER BY told.batch, told.number, told.place",
        parameters,
    )
    found: dict[Key, list[RowProblem]] = {}
    for batch, number, *told in rows:
        found.setdefault((batch, number), []).append(RowProblem(*told))
    return found


def attempt_records(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> tuple[AttemptRecord, ...]:
    """The attempts that a condition selects, in order."""
    found = _selected(connection, AttemptRecord, "push_attempts", where, parameters)
    records = [AttemptRecord(**each) for each in found]
    return tuple(sorted(records, key=lambda each: (each.batch, each.number, each.attempt)))


def before_images(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> tuple[BeforeImage, ...]:
    """The records as they were before, of the rows that a condition selects."""
    found = _selected(connection, BeforeImage, "push_before", where, parameters)
    images = [BeforeImage(**{**each, "record": json.loads(each["record"])}) for each in found]
    return tuple(sorted(images, key=lambda each: (each.batch, each.number, each.step)))


def _selected(
    connection: sqlite3.Connection,
    kind: type[BatchRecord | AttemptRecord | BeforeImage],
    table: str,
    where: str,
    parameters: Iterable[Any],
) -> list[dict[str, Any]]:
    """The rows of a table that a condition selects, by the names of the kind's fields."""
    names = [each.name for each in fields(kind)]
    rows = connection.execute(
        f"SELECT {', '.join(names)} FROM {table} AS mine WHERE {where}", tuple(parameters)
    ).fetchall()
    return [
        {
            name: moment(value) if name in _MOMENTS else value
            for name, value in zip(names, row, strict=True)
        }
        for row in rows
    ]


def work(
    connection: sqlite3.Connection, where: str, parameters: Iterable[Any] = ()
) -> tuple[Work, ...]:
    """The rows that a condition selects and that have a task, by batch and number."""
    given = tuple(parameters)
    rows = connection.execute(
        "SELECT batch, number, task, state, is_begun, is_in_doubt, is_altered, record_id, subject,"
        f" code FROM push_rows AS mine WHERE task IS NOT NULL AND {where} ORDER BY batch, number",
        given,
    ).fetchall()
    attempts = _attempts(connection, where, given)
    before = _before(connection, where, given)
    found = []
    for batch, number, task, state, is_begun, is_in_doubt, is_altered, record_id, *told in rows:
        step = (batch, number, "afterwards" if is_begun else "first")
        standing = Standing(
            state=state,
            is_begun=bool(is_begun),
            is_in_doubt=bool(is_in_doubt),
            is_altered=bool(is_altered),
            record_id=record_id,
            before=before.get(step),
            attempts=tuple(attempts.get(step, ())),
        )
        found.append(Work((batch, number), unpacked(task), standing, *told))
    return tuple(found)


def _before(
    connection: sqlite3.Connection, where: str, parameters: tuple[Any, ...]
) -> dict[tuple[str, int, str], Mapping[str, Any]]:
    rows = connection.execute(
        "SELECT batch, number, step, record FROM push_rows AS mine JOIN push_before"
        f" USING (batch, number) WHERE {where}",
        parameters,
    )
    return {(batch, number, step): json.loads(record) for batch, number, step, record in rows}


def _attempts(
    connection: sqlite3.Connection, where: str, parameters: tuple[Any, ...]
) -> dict[tuple[str, int, str], list[Attempt]]:
    rows = connection.execute(
        "SELECT batch, number, attempt, step, intended_at, sent_after, fate FROM push_rows AS mine"
        f" JOIN push_attempts USING (batch, number) WHERE {where} ORDER BY attempt",
        parameters,
    )
    found: dict[tuple[str, int, str], list[Attempt]] = {}
    for batch, number, attempt, step, intended_at, sent_after, fate in rows:
        made = Attempt(attempt, step, _moment(intended_at), _moment(sent_after), fate)
        found.setdefault((batch, number, step), []).append(made)
    return found


def moment(text: str | None) -> datetime | None:
    """A moment as it is written down, where there is one."""
    return None if text is None else _moment(text)


def terms_text(terms: Terms) -> str:
    """Terms as they are written down."""
    return json.dumps(asdict(terms), sort_keys=True)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# -- Push health -----------------------------------------------------------------------------------
# How pushes have gone lately, from the journal: what whoever watches over the account looks at.
#
# Nothing is judged here, and nothing of a row's contents or of a file's name is read.


REFUSED = ("rejected", "conflict", "invalid", "not_applied")
"""States of rows that were not applied, and wait to be corrected."""

BATCHES_READ = 20


@dataclass(frozen=True, slots=True)
class PushRun:
    """The last run at one file: how it ended, None where it has not; `refused` rows wait to be
    corrected.
    """

    batch: str
    resource: str
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error_code: str | None
    message: str | None
    refused: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows whose fate is unknown, and since when the first of them is so."""

    rows: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PushHealth:
    """`runs` are the latest, newest first, with the last of every resource among them.

    `held` are rows that only a person's decision ends, `open` those that were sent and whose
    answer is not known; of a push that is under way they are no sign of anything.
    """

    runs: tuple[PushRun, ...] = ()
    held: Doubt | None = None
    open: Doubt | None = None


def read_push_health(ledger: Ledger) -> PushHealth:
    """The health of pushes as it is written down. Raises a `WarehouseError`."""
    with ledger.reading() as connection:
        return PushHealth(
            runs=_runs(connection),
            held=_doubt(connection, FOR_A_PERSON),
            open=_doubt(connection, IN_DOUBT - FOR_A_PERSON),
        )


def _runs(connection: sqlite3.Connection) -> tuple[PushRun, ...]:
    refused = ", ".join(f"'{state}'" for state in REFUSED)
    rows = connection.execute(
        "SELECT batch, resource, begun_at, ended_at, outcome, error_code, message,"
        " (SELECT count(*) FROM push_rows WHERE push_rows.batch = latest.batch"
        f" AND undone_at IS NULL AND state IN ({refused}))"
        " FROM (SELECT *, coalesce(ended_at, begun_at) AS last_at, row_number() OVER ("
        " PARTITION BY resource ORDER BY coalesce(ended_at, begun_at) DESC, rowid DESC) AS place"
        " FROM push_batches) AS latest WHERE place <= ? ORDER BY last_at DESC, batch DESC",
        (BATCHES_READ,),
    ).fetchall()
    return tuple(
        PushRun(
            batch=batch,
            resource=resource,
            begun_at=datetime.fromisoformat(begun_at),
            ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
            outcome=outcome,
            error_code=error_code,
            message=message,
            refused=count,
        )
        for batch, resource, begun_at, ended_at, outcome, error_code, message, count in rows
    )


def _doubt(connection: sqlite3.Connection, states: frozenset[str]) -> Doubt | None:
    named = ", ".join(f"'{state}'" for state in sorted(states))
    ((rows, since),) = connection.execute(
        f"SELECT count(*), min(moved_at) FROM push_rows WHERE state IN ({named})"
    ).fetchall()
    return Doubt(int(rows), datetime.fromisoformat(since)) if rows else None
