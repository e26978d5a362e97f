"""Journal of pushes, read: batches, rows, attempts, and records before them.

Functions over an open connection; nothing here writes. A row's outcome is computed from what is
written down and from nothing else, so that a report can be made again at any time. A file may have
a million rows, so that long answers are read in portions, which go by a batch's row numbers: what
is written between two portions moves no row from one to the other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from connector.ledger.journal_records import Attempt, RowStatus
from connector.ledger.ledger import Ledger
from connector.ledger.ledger_schema import OPEN
from connector.ledger.push_plan import Problem, PushPolicy, from_json
from connector.ledger.push_states import (
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
from connector.ledger.sqlite_file import columns_of, read_records, reader_of

BatchAction = Literal["prepared", "sent", "undone"]
"""What a person did with a batch."""

RowKey = tuple[str, int]
"""A row: its batch, and its number in the file."""

UNFINISHED: tuple[State, ...] = ("planned", "intent", "unknown", "settling")
"""States of rows at which a push can work."""

REFUSED: tuple[State, ...] = ("rejected", "conflict", "invalid", "not_applied")
"""States of rows that were not applied, and wait to be corrected."""

ROWS_AT_ONCE = 1_000
"""Rows of a portion."""

BATCHES_READ = 20
"""Batches of each resource of which the health of pushes tells."""

PROBLEM_COLUMNS = tuple(f'"{each.name}"' for each in fields(Problem))


def sql_list(values: Iterable[str]) -> str:
    """Names of our own as a list in SQL."""
    return ", ".join(f"'{value}'" for value in sorted(values))


UNFINISHED_ROWS = f"(task IS NOT NULL AND state IN ({sql_list(UNFINISHED)}))"
"""The condition for rows that a push can bring further."""

WITHIN = "mine.batch = ? AND mine.number > ? AND mine.number <= ?"
"""The condition for the rows of a portion."""

_FOLLOWED = """
    batch <> ? AND (batch, number) IN
        (SELECT same_batch, same_number FROM push_rows WHERE batch = ? AND state = 'follows')
"""
_SINCE = "change > ?"
_BATCHES = "(SELECT *{}, rowid AS rowid FROM push_batches AS begun)".format(
    "".join(
        f", (SELECT person FROM push_people WHERE batch = begun.batch AND deed = '{deed}')"
        f" AS {deed}_by"
        for deed in get_args(BatchAction)
    )
)
_ROWS_SINCE = """
    (mine.change > ? OR (mine.state = 'follows' AND EXISTS (
        SELECT 1 FROM push_rows AS followed WHERE followed.batch = mine.same_batch
        AND followed.number = mine.same_number AND followed.change > ?)))
"""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One file that was pushed. `outcome`, `error_code` and `message` are those of the
    last run that worked at it, None while none has ended; `requests` and `seconds` are of all
    of them. `prepared_by`, `sent_by` and `undone_by` are people of the import page.
    """

    batch: str
    resource: str
    mode: Mode
    file: str
    digest: str
    terms: PushPolicy
    run_id: str
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error_code: str | None
    message: str | None
    requests: int
    seconds: float
    change: int
    prepared_by: str | None = None
    sent_by: str | None = None
    undone_by: str | None = None


@dataclass(frozen=True, slots=True)
class RowRecord:
    """Outcome of one row. `code` says more than the outcome does, and is empty where
    there is no more to say. `record_id` is the record it made or changed, or is the same as.
    `same_batch` and `same_number` are of the row that this one repeats or follows.
    """

    batch: str
    number: int
    operation: Operation | None
    state: State
    outcome: RowOutcome
    code: str
    record_id: str | None
    updated_at: str | None
    same_batch: str | None
    same_number: int | None
    undone_at: datetime | None
    moved_at: datetime
    change: int
    problems: tuple[Problem, ...] = ()

    @property
    def same(self) -> RowKey | None:
        """The row that this one repeats or follows."""
        batch, number = self.same_batch, self.same_number
        return None if batch is None or number is None else (batch, number)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt at a write, with the very text of its body (None: it has none)."""

    batch: str
    number: int
    attempt: int
    step: str
    method: str
    path: str
    body: str | None
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
class PendingRow:
    """A row that can be brought further: its task, and its state."""

    key: RowKey
    task: Task
    status: RowStatus
    subject: str | None
    code: str


@dataclass(frozen=True, slots=True)
class PendingCount:
    """Number of rows that a push works at, and those with an open write."""

    rows: int
    open: frozenset[RowKey]


@dataclass(frozen=True, slots=True)
class Changes:
    """Part of the changes since a number; `last` is the number to ask from next."""

    last: int
    batches: tuple[BatchRecord, ...] = ()
    rows: tuple[RowRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    before_images: tuple[BeforeImage, ...] = ()


_whole = reader_of(int)
_OF_A_ROW = ", ".join(
    f"mine.{each.name}"
    for each in fields(RowRecord)
    if each.name not in ("outcome", "record_id", "problems")
)
_OF_A_PROBLEM = ", ".join(f"'{each.name}', \"{each.name}\"" for each in fields(Problem))

# -- Records ---------------------------------------------------------------------------------------
# Each function reads those rows of its table, called `mine`, that a condition selects.


def batch_records(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> tuple[BatchRecord, ...]:
    """The batches, the latest first."""
    return tuple(
        read_records(
            connection,
            BatchRecord,
            f"SELECT {columns_of(BatchRecord)} FROM {_BATCHES} WHERE {where}"
            " ORDER BY begun_at DESC, batch DESC",
            parameters,
            {"terms": lambda text: PushPolicy(**json.loads(text))},
        )
    )


def row_records(
    connection: sqlite3.Connection, where: str, parameters: Iterable[Any] = ()
) -> tuple[RowRecord, ...]:
    """The rows with their problems; a row that follows has the other's."""
    return tuple(
        read_records(
            connection,
            RowRecord,
            f"SELECT {_OF_A_ROW}, CASE mine.state WHEN 'follows' THEN other.record_id"
            " ELSE mine.record_id END AS record_id, CASE mine.state WHEN 'follows'"
            " THEN json_array(1, other.state, other.operation, other.is_begun, other.is_in_doubt)"
            " ELSE json_array(0, mine.state, mine.operation, mine.is_begun, mine.is_in_doubt)"
            " END AS outcome, (SELECT json_group_array(json_object("
            f"{_OF_A_PROBLEM}))"
            " FROM (SELECT * FROM push_problems AS told WHERE told.batch = CASE mine.state"
            " WHEN 'follows' THEN mine.same_batch ELSE mine.batch END AND told.number ="
            " CASE mine.state WHEN 'follows' THEN mine.same_number ELSE mine.number END"
            " ORDER BY told.place)) AS problems"
            " FROM push_rows AS mine LEFT JOIN push_rows AS other"
            " ON mine.state = 'follows' AND other.batch = mine.same_batch"
            " AND other.number = mine.same_number"
            f" WHERE {where} ORDER BY mine.batch, mine.number",
            parameters,
            {"outcome": _outcome, "problems": _problems},
        )
    )


def _outcome(text: str) -> RowOutcome:
    is_follower, state, operation, is_begun, is_in_doubt = json.loads(text)
    is_known = state in get_args(State) and state != "follows"
    if not is_known or (state == "applied" and operation not in get_args(Operation)):
        raise ValueError("a row is in no such state")
    outcome = outcome_of(state, operation, is_begun=is_begun, is_in_doubt=is_in_doubt)
    return outcome_of_follower(outcome) if is_follower else outcome


def _problems(text: str) -> tuple[Problem, ...]:
    return tuple(Problem(**each) for each in json.loads(text))


def attempt_records(
    connection: sqlite3.Connection, where: str, parameters: Iterable[Any]
) -> tuple[AttemptRecord, ...]:
    """The attempts, in order."""
    query = (
        f"SELECT {columns_of(AttemptRecord)} FROM push_attempts AS mine WHERE {where}"
        " ORDER BY batch, number, attempt"
    )
    return tuple(read_records(connection, AttemptRecord, query, parameters, {"body": _body}))


def _body(body: bytes) -> str:
    json.loads(body)
    return body.decode("utf-8")


def before_images(
    connection: sqlite3.Connection, where: str, parameters: Iterable[Any]
) -> tuple[BeforeImage, ...]:
    """The records as they were before."""
    query = (
        f"SELECT {columns_of(BeforeImage)} FROM push_before AS mine WHERE {where}"
        " ORDER BY batch, number, step"
    )
    return tuple(read_records(connection, BeforeImage, query, parameters))


def pending_rows(
    connection: sqlite3.Connection, where: str, parameters: Iterable[Any]
) -> tuple[PendingRow, ...]:
    """Rows with a task, by batch and number, with their attempts and records."""
    step = "step = CASE mine.is_begun WHEN 0 THEN 'first' ELSE 'afterwards' END"
    of_row = f"batch = mine.batch AND number = mine.number AND {step}"
    return tuple(
        read_records(
            connection,
            PendingRow,
            "SELECT json_array(batch, number) AS key, task, subject, code, json_object("
            "'state', state, 'is_begun', is_begun, 'is_in_doubt', is_in_doubt,"
            " 'is_altered', is_altered, 'record_id', record_id,"
            f" 'before', json((SELECT record FROM push_before WHERE {of_row})),"
            " 'attempts', json((SELECT json_group_array(json_array("
            "attempt, step, intended_at, sent_after, fate, reason, answer)) FROM"
            f" (SELECT * FROM push_attempts WHERE {of_row} ORDER BY attempt)))) AS status"
            f" FROM push_rows AS mine WHERE task IS NOT NULL AND {where} ORDER BY batch, number",
            parameters,
            {"key": _key, "task": from_json, "status": _status},
        )
    )


def _key(text: str) -> RowKey:
    batch, number = json.loads(text)
    return reader_of(str)(batch), _whole(number)


def _status(text: str) -> RowStatus:
    said = json.loads(text)
    flags: dict[str, Any] = {
        name: bool(said.pop(name)) for name in ("is_begun", "is_in_doubt", "is_altered")
    }
    read = datetime.fromisoformat
    attempts = tuple(
        Attempt(_whole(number), step, read(intended_at), read(sent_after), *ended)
        for number, step, intended_at, sent_after, *ended in said.pop("attempts")
    )
    return RowStatus(**said, **flags, attempts=attempts)


def parse_moment(text: str | None) -> datetime | None:
    """A time as it is written down, where there is one."""
    return None if text is None else datetime.fromisoformat(text)


def policy_text(terms: PushPolicy) -> str:
    """A policy as it is written down."""
    return json.dumps(asdict(terms), sort_keys=True)


# -- Portions --------------------------------------------------------------------------------------


def portion_end(
    connection: sqlite3.Connection,
    behind: RowKey,
    where: str = "1",
    parameters: tuple[Any, ...] = (),
    *,
    table: str = "push_rows",
) -> int | None:
    """The last number of the next portion behind a number; None at the end."""
    ((last,),) = connection.execute(
        f"SELECT max(number) FROM (SELECT DISTINCT number FROM {table} AS mine WHERE batch = ?"
        f" AND number > ? AND {where} ORDER BY number LIMIT ?)",
        (*behind, *parameters, ROWS_AT_ONCE),
    ).fetchall()
    # A number that is no whole one would be the last of the next portion again, for ever.
    return None if last is None else _whole(last)


def followed_rows(connection: sqlite3.Connection, batch: str) -> tuple[PendingRow, ...]:
    """Unfinished rows of other batches that rows of this one follow: few, in doubt."""
    return pending_rows(connection, f"{UNFINISHED_ROWS} AND {_FOLLOWED}", (batch, batch))


def pending(connection: sqlite3.Connection, batch: str) -> PendingCount:
    """The rows at which a push of the batch works, those it follows included."""
    mine = f"{UNFINISHED_ROWS} AND (batch = ? OR {_FOLLOWED})"
    given = (batch, batch, batch)
    ((rows,),) = connection.execute(f"SELECT count(*) FROM push_rows WHERE {mine}", given)
    keys = connection.execute(
        f"SELECT batch, number FROM push_rows WHERE {mine} AND {OPEN}", given
    ).fetchall()
    return PendingCount(rows, frozenset(keys))


def changes(connection: sqlite3.Connection, since: int) -> Iterator[Changes]:
    """Everything that changed since a number, in parts, batches first.

    Everything there is, where the journal has not come as far as that number: it is another one
    then, that has taken the place of the one that was asked before.
    """
    ((last,),) = connection.execute("SELECT last FROM push_changes").fetchall()
    since = since if since <= _whole(last) else 0
    yield Changes(last, batches=batch_records(connection, _SINCE, (since,)))
    for span in _portions(connection, "push_rows", _ROWS_SINCE, (since, since)):
        where = f"{_ROWS_SINCE} AND {WITHIN}"
        yield Changes(last, rows=row_records(connection, where, (since, since, *span)))
    where = f"{_SINCE} AND {WITHIN}"
    for span in _portions(connection, "push_attempts", _SINCE, (since,)):
        yield Changes(last, attempts=attempt_records(connection, where, (since, *span)))
    for span in _portions(connection, "push_before", _SINCE, (since,)):
        yield Changes(last, before_images=before_images(connection, where, (since, *span)))


def _portions(
    connection: sqlite3.Connection, table: str, where: str, parameters: tuple[Any, ...]
) -> Iterator[tuple[str, int, int]]:
    """Portions of a table: batch, number behind which it begins, last number."""
    batches = connection.execute(
        f"SELECT DISTINCT batch FROM {table} AS mine WHERE {where} ORDER BY batch", parameters
    ).fetchall()
    for (batch,) in batches:
        number = -1
        while (
            last := portion_end(connection, (batch, number), where, parameters, table=table)
        ) is not None:
            yield batch, number, last
            number = last


# -- Claims ----------------------------------------------------------------------------------------
# What rows lay claim to: writes that are done or open, things written about, records.


@dataclass(frozen=True, slots=True)
class EarlierWrite:
    """A row that has applied a write, or has it open; `is_open` says which."""

    fingerprint: str
    key: RowKey
    operation: Operation
    state: State
    record_id: str | None
    is_open: bool
    change: int


def earlier_writes(
    connection: sqlite3.Connection, fingerprints: Iterable[str], *, outside: str | None = None
) -> dict[str, EarlierWrite]:
    """The rows that answer for these writes, by fingerprint: those open, else those
    applied last; `outside` is a batch whose own rows are none of them.

    What was put back answers for nothing, nor does an update that did not turn out as sent, or
    whose record another row has changed since: it is worth sending again.
    """
    found: dict[str, EarlierWrite] = {}
    rows = read_records(
        connection,
        EarlierWrite,
        "SELECT fingerprint, json_array(batch, number) AS key, operation, state, record_id,"
        f" {OPEN} AS is_open, change FROM push_rows"
        " WHERE fingerprint IN (SELECT value FROM json_each(?))"
        f" AND undone_at IS NULL AND batch IS NOT ?"
        f" AND (state IN ('applied', 'not_applied') OR {OPEN})"
        " ORDER BY state IN ('applied', 'not_applied'), change DESC",
        (json.dumps(list(fingerprints)), outside),
        {"key": _key},
    )
    for row in rows:
        is_update = row.operation == "update" and not row.is_open
        if is_update and (row.state != "applied" or _is_past(connection, row)):
            continue
        found.setdefault(row.fingerprint, row)
    return found


def _is_past(connection: sqlite3.Connection, row: EarlierWrite) -> bool:
    """Whether another row has changed the record after that."""
    later = connection.execute(
        "SELECT 1 FROM push_rows WHERE record_id = ? AND change > ? AND operation = 'update'"
        " AND state IN ('applied', 'not_applied') LIMIT 1",
        (row.record_id, row.change),
    ).fetchone()
    return later is not None


def claimed_ids(connection: sqlite3.Connection, ids: Iterable[str], key: RowKey) -> frozenset[str]:
    """Which of these records another row has made."""
    rows = connection.execute(
        "SELECT record_id FROM push_rows WHERE record_id IN (SELECT value FROM json_each(?))"
        " AND operation = 'create' AND NOT (batch = ? AND number = ?)"
        " AND (is_begun = 1 OR state IN ('applied', 'not_applied'))",
        (json.dumps(list(ids)), *key),
    )
    return frozenset(id for (id,) in rows)


def open_creates(connection: sqlite3.Connection, key: RowKey) -> tuple[Mapping[str, Any], ...]:
    """Return the bodies of other open creates of the row's resource and parent."""
    rows = connection.execute(
        "SELECT batch, number, task FROM push_rows WHERE operation = 'create'"
        f" AND (batch = ? AND number = ? OR {OPEN})",
        key,
    ).fetchall()
    tasks = {(batch, number): from_json(task) for batch, number, task in rows}
    mine = tasks.pop(key)
    return tuple(
        task.fields
        for task in tasks.values()
        if (task.resource, task.parent) == (mine.resource, mine.parent)
    )


# -- Push health -----------------------------------------------------------------------------------
# The last pushes for those who watch over the account. Nothing is judged here, and nothing of a
# row's contents or of a file's name is read.


@dataclass(frozen=True, slots=True)
class PushRun:
    """The last run at one file; `refused` rows wait to be corrected."""

    batch: str
    resource: str
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error_code: str | None
    message: str | None
    refused: int


@dataclass(frozen=True, slots=True)
class UnknownRows:
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
    held: UnknownRows | None = None
    open: UnknownRows | None = None


def read_push_health(ledger: Ledger) -> PushHealth:
    """The health of pushes as it is written down. Raises a `WarehouseError`."""
    with ledger.reading() as connection:
        return PushHealth(
            runs=_read_push_runs(connection),
            held=_read_unknown_rows(connection, FOR_A_PERSON),
            open=_read_unknown_rows(connection, IN_DOUBT - FOR_A_PERSON),
        )


def has_open_rows(folder: Path) -> bool:
    """Return True if the folder's ledger has rows that a run can still settle.

    Raises a `WarehouseError`.
    """
    with Ledger(folder) as ledger:
        return ledger.exists and read_push_health(ledger).open is not None


def _read_push_runs(connection: sqlite3.Connection) -> tuple[PushRun, ...]:
    return tuple(
        read_records(
            connection,
            PushRun,
            "SELECT batch, resource, begun_at, ended_at, outcome, error_code, message,"
            " (SELECT count(*) FROM push_rows WHERE push_rows.batch = latest.batch AND undone_at"
            f" IS NULL AND state IN ({sql_list(REFUSED)})) AS refused FROM (SELECT *,"
            " coalesce(ended_at, begun_at) AS last_at, row_number() OVER (PARTITION BY resource"
            " ORDER BY coalesce(ended_at, begun_at) DESC, rowid DESC) AS place FROM push_batches)"
            " AS latest WHERE place <= ? ORDER BY last_at DESC, batch DESC",
            (BATCHES_READ,),
        )
    )


def _read_unknown_rows(
    connection: sqlite3.Connection, states: frozenset[State]
) -> UnknownRows | None:
    ((rows, since),) = connection.execute(
        f"SELECT count(*), min(moved_at) FROM push_rows WHERE state IN ({sql_list(states)})"
    ).fetchall()
    return UnknownRows(int(rows), datetime.fromisoformat(since)) if rows else None
