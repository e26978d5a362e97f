"""Journal of pushes, for writing. One method is one transaction.

A commit is on the disk when it returns. Only the run with the lease of pushes writes, and every
transaction checks the lease first. The table of transitions (`push_states.py`) defines how a row's
state changes. Every changed row gets the number of the transaction, with which it is copied for
analysts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import Any

from connector.client.messages import Request
from connector.errors import LeaseLost
from connector.ledger.journal import Journal, policy_to_json, quoted_sql_list
from connector.ledger.journal_records import (
    UNFINISHED,
    Attempt,
    BatchAction,
    BatchRecord,
    EarlierWrite,
    RowKey,
    Transition,
)
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import (
    Problem,
    PushPlan,
    PushPolicy,
    RowResult,
    fingerprint,
    subject_hash,
    task_to_json,
)
from connector.ledger.push_states import RowEvent, State, Task, next_state

PUSH_LEASE = "push"
"""Name of the lease for what writes to the API: one run of each account at a time."""

VALUES_AT_ONCE = 500
"""Rows that are compared with earlier pushes together."""

_NOBODY: Mapping[BatchAction, str] = MappingProxyType({})
_UNSENT_EVENTS: Mapping[str, RowEvent] = {
    "invalid": "refused_here",
    "duplicate": "repeated",
    "unchanged": "up_to_date",
}
_DOUBTS: Mapping[RowEvent, bool] = {
    "lost": True,
    "refused_in_doubt": True,
    "unapplied": False,
    "begun": False,
}
_MAY_EXIST = frozenset(("push_rows", "push_before"))
_UNSENT = "(state = 'planned' AND is_begun = 0 AND is_in_doubt = 0)"
_PROBLEM_COLUMNS = tuple(f'"{each.name}"' for each in fields(Problem))


@dataclass(frozen=True, slots=True)
class JournalTransaction:
    """Open transaction of the journal. `number` is its change number, stored in the rows it
    changes.
    """

    connection: sqlite3.Connection
    number: int
    at: datetime

    @property
    def timestamp(self) -> str:
        """Time of the transaction in ISO 8601, as the tables store it."""
        return self.at.isoformat()


class JournalWriter(Journal):
    """Reads and writes the journal of pushes for one run.

    Every method raises a `WarehouseError`. It raises `LeaseLost`, and writes nothing, if the run no
    longer has the lease.

    Args:
        ledger: Ledger of the account.
        run_id: Run that has the lease; None for an erasure, which does not check the lease.
        now: Returns the current time.
    """

    def __init__(
        self,
        ledger: Ledger,
        run_id: str | None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(ledger)
        self._run_id, self._now = run_id, now
        self._open: JournalTransaction | None = None

    @contextmanager
    def writing(self) -> Iterator[JournalTransaction]:
        """Yield a new transaction, or the open one. Raises `LeaseLost`.

        It is committed to the disk when the context ends, or rolled back by an error.
        """
        with self._ledger.writing() as connection:
            if self._open is not None:
                yield self._open
                return
            if self._run_id is not None:
                self._check_lease(connection)
            ((number,),) = connection.execute(
                "UPDATE push_changes SET last = last + 1 RETURNING last"
            ).fetchall()
            self._open = JournalTransaction(connection, number, self._now())
            try:
                yield self._open
            finally:
                self._open = None

    def _check_lease(self, connection: sqlite3.Connection) -> None:
        """Raise `LeaseLost` if another run has the lease of pushes."""
        held = connection.execute(
            "SELECT 1 FROM leases WHERE name = ? AND run_id = ?", (PUSH_LEASE, self._run_id)
        ).fetchone()
        if held is None:
            raise LeaseLost(
                f"this push (run {self._run_id}) was stopped, because it was paused for too long "
                f"and another push may have started"
            )

    # -- Writing batches --------------------------------------------------------------------------

    def create_batch(
        self,
        plan: PushPlan,
        policy: PushPolicy,
        landed_before: Iterable[str] = (),
        people: Mapping[BatchAction, str] = _NOBODY,
    ) -> str:
        """Record a file with all of its rows, and return the name of its batch.

        If the same file was pushed with the same policy and not finished, its batch continues: rows
        that were tried stay, and the others are replaced by the rows of the plan. `landed_before`
        are ids of records that no row of this batch can have created.
        """
        assert self._run_id is not None, "only a run can create a batch"
        with self.writing() as change:
            batch = self._find_unfinished_batch(plan, policy)
            if batch is None:
                batch = self._run_id
                self._insert(
                    change,
                    "push_batches",
                    batch=batch,
                    resource=plan.resource,
                    mode=plan.mode,
                    file=plan.file,
                    digest=plan.digest,
                    terms=policy_to_json(policy),
                    landed_before=json.dumps(sorted(landed_before)),
                    run_id=batch,
                    begun_at=change.timestamp,
                    requests=0,
                    seconds=0,
                )
            else:
                self._delete_unsent_rows(change, batch)
            self._add_rows(change, batch, plan)
            self._attach_run(change, batch, policy)
            self.record_people(batch, people)
            return batch

    def resume_batch(self, batch: str) -> BatchRecord:
        """Record that this run continues a batch, and return the batch. Raises `UnknownName`."""
        with self.writing() as change:
            found = self.batch(batch)
            self._attach_run(change, batch, found.terms)
            return found

    def record_run_end(
        self,
        batch: str,
        outcome: str,
        *,
        requests: int,
        seconds: float,
        error_code: str | None = None,
        message: str | None = None,
    ) -> None:
        """Record how this run of the batch ended, and add its requests and seconds."""
        with self.writing() as change:
            change.connection.execute(
                "UPDATE push_batches SET ended_at = ?, outcome = ?, error_code = ?, message = ?,"
                " requests = requests + ?, seconds = seconds + ?, change = ? WHERE batch = ?",
                (
                    *(change.timestamp, outcome, error_code, message, requests, seconds),
                    *(change.number, batch),
                ),
            )

    def record_people(self, batch: str, people: Mapping[BatchAction, str]) -> None:
        """Record who sent or undid a batch. Replaces the earlier user of an action."""
        with self.writing() as change:
            change.connection.executemany(
                "INSERT OR REPLACE INTO push_people VALUES (?, ?, ?, ?)",
                [(batch, action, person, change.timestamp) for action, person in people.items()],
            )
            change.connection.execute(
                "UPDATE push_batches SET change = ? WHERE batch = ?", (change.number, batch)
            )

    def _find_unfinished_batch(self, plan: PushPlan, policy: PushPolicy) -> str | None:
        """Return the latest unfinished batch of the same file, policy and rows; None if there is
        none.

        A batch is unfinished if rows are left, or if its run was interrupted.
        """
        unfinished = quoted_sql_list(UNFINISHED)
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT batch FROM push_batches AS begun WHERE digest = ? AND resource = ?"
                " AND mode = ? AND terms = ? AND (ended_at IS NULL OR EXISTS (SELECT 1 FROM"
                f" push_rows WHERE batch = begun.batch AND state IN ({unfinished})))"
                " ORDER BY begun_at DESC, rowid DESC",
                (plan.digest, plan.resource, plan.mode, policy_to_json(policy)),
            ).fetchall()
            return next(
                (batch for (batch,) in rows if _has_same_rows(connection, batch, plan)), None
            )

    def _attach_run(self, change: JournalTransaction, batch: str, policy: PushPolicy) -> None:
        """Record that this run continues the batch, and end rows that other rows have written."""
        change.connection.execute(
            "UPDATE push_batches SET run_id = ?, ended_at = NULL, outcome = NULL,"
            " error_code = NULL, message = NULL, change = ? WHERE batch = ?",
            (self._run_id, change.number, batch),
        )
        self._end_duplicate_rows(change, batch, policy)

    def _add_rows(self, change: JournalTransaction, batch: str, plan: PushPlan) -> None:
        """Add the rows of the plan that the batch does not have yet."""

        def columns(task: Task) -> tuple[Any, ...]:
            assert task.resource == plan.resource, task.resource
            return (
                *(batch, task.number, task.operation, fingerprint(task), subject_hash(task)),
                *(
                    next_state("read", "undertaken"),
                    task.record_id,
                    change.timestamp,
                    change.number,
                ),
                task_to_json(task),
            )

        change.connection.executemany(
            "INSERT INTO push_rows (batch, number, operation, fingerprint, subject, state,"
            " code, is_begun, is_in_doubt, is_altered, record_id, moved_at, change, task)"
            " VALUES (?, ?, ?, ?, ?, ?, '', 0, 0, 0, ?, ?, ?, ?)"
            " ON CONFLICT (batch, number) DO NOTHING",
            map(columns, plan.tasks),
        )
        for result in plan.unsent:
            self._add_unsent_row(change, batch, result)
        ((rows,),) = change.connection.execute(
            "SELECT count(*) FROM push_rows WHERE batch = ?", (batch,)
        )
        assert rows == plan.row_count, "a row has two plans"

    def _add_unsent_row(self, change: JournalTransaction, batch: str, result: RowResult) -> None:
        """Add a row that is not sent, with its outcome and problems, unless the batch has it."""
        state = next_state("read", _UNSENT_EVENTS[result.outcome])
        assert state == result.outcome, result
        is_added = self._insert(
            change,
            "push_rows",
            batch=batch,
            number=result.number,
            state=state,
            code=result.code or "",
            is_begun=False,
            is_in_doubt=False,
            is_altered=False,
            record_id=result.record_id,
            moved_at=change.timestamp,
        )
        if is_added:
            self._replace_problems(change, (batch, result.number), result.problems)

    def _delete_unsent_rows(self, change: JournalTransaction, batch: str) -> None:
        """Delete the batch's planned rows for which no attempt was recorded."""
        untried = (
            "batch = ?1 AND state = 'planned' AND number NOT IN"
            " (SELECT number FROM push_attempts WHERE batch = ?1)"
        )
        change.connection.execute(
            f"DELETE FROM push_problems WHERE batch = ?1 AND number IN"
            f" (SELECT number FROM push_rows WHERE {untried})",
            (batch,),
        )
        change.connection.execute(f"DELETE FROM push_rows WHERE {untried}", (batch,))

    def _end_duplicate_rows(
        self, change: JournalTransaction, batch: str, policy: PushPolicy
    ) -> None:
        """End planned rows whose write another row has applied or may have applied."""
        repeated = change.connection.execute(
            "SELECT number, earlier FROM (SELECT number, is_unsent, first_value(number)"
            " OVER (PARTITION BY fingerprint ORDER BY is_unsent, number) AS earlier"
            f" FROM (SELECT number, fingerprint, {_UNSENT} AS is_unsent FROM push_rows"
            " WHERE batch = ? AND fingerprint IS NOT NULL"
            " AND state NOT IN ('duplicate', 'invalid', 'follows', 'unchanged')))"
            " WHERE is_unsent AND earlier <> number",
            (batch,),
        ).fetchall()
        for number, earlier in repeated:
            problem = Problem("same_row", f"row {earlier} of the file has the same values")
            move = Transition("repeated", "same_row", (problem,))
            self.record_transition((batch, number), move, same_row=(batch, earlier))
        last = -1
        while unsent := self._next_unsent_rows(batch, last):
            for print_, other in self.find_earlier_writes(unsent, exclude_batch=batch).items():
                if (ended := _transition_for_duplicate(other, policy)) is not None:
                    self.record_transition((batch, unsent[print_]), ended, same_row=other.key)
            last = max(unsent.values())

    def _next_unsent_rows(self, batch: str, after: int) -> dict[str, int]:
        """Return the numbers of the next never-sent rows after a row number, by fingerprint.

        At most `VALUES_AT_ONCE` rows are returned.
        """
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT fingerprint, number FROM push_rows WHERE batch = ? AND number > ?"
                f" AND fingerprint IS NOT NULL AND {_UNSENT} ORDER BY number LIMIT ?",
                (batch, after, VALUES_AT_ONCE),
            )
            return dict(rows.fetchall())

    # -- Writing rows -----------------------------------------------------------------------------

    def record_attempt(
        self,
        key: RowKey,
        request: Request,
        *,
        before: Mapping[str, Any] | None,
        sent_after: datetime,
    ) -> Attempt:
        """Record an attempt, before its first byte is sent, and return it."""
        with self.writing() as change:
            state, is_begun = self._read_state(key)
            ((last,),) = change.connection.execute(
                "SELECT coalesce(max(attempt), 0) FROM push_attempts"
                " WHERE batch = ? AND number = ?",
                key,
            ).fetchall()
            attempt = Attempt(
                last + 1, "afterwards" if is_begun else "first", change.at, sent_after
            )
            self._insert(
                change,
                "push_attempts",
                batch=key[0],
                number=key[1],
                attempt=attempt.number,
                step=attempt.step,
                method=request.method,
                path=request.path,
                body=request.body,
                intended_at=change.timestamp,
                sent_after=sent_after.isoformat(),
            )
            if before is not None:
                self._add_before_image(change, key, attempt.step, before)
            state = next_state(state, "intended")
            self.update_row(key, state=state, code="in_doubt", moved_at=change.timestamp)
            return attempt

    def record_transition(
        self, key: RowKey, transition: Transition, *, same_row: RowKey | None = None
    ) -> State:
        """Record a row's transition with all of its details, and return the new state.

        `same_row` is the row that this row repeats or follows.
        """
        with self.writing() as change:
            state, is_begun = self._read_state(key)
            to = next_state(state, transition.event)
            known: dict[str, Any] = {
                "record_id": transition.record_id,
                "updated_at": transition.updated_at,
            }
            if transition.event == "altered" or any(
                p.code == "values_differ" for p in transition.problems
            ):
                known["is_altered"] = True
            self.update_row(
                key,
                state=to,
                code=transition.code,
                is_begun=is_begun or transition.event == "begun",
                same_batch=same_row and same_row[0],
                same_number=same_row and same_row[1],
                moved_at=change.timestamp,
                **{name: value for name, value in known.items() if value is not None},
                **(
                    {"is_in_doubt": _DOUBTS[transition.event]}
                    if transition.event in _DOUBTS
                    else {}
                ),
            )
            if transition.fate is not None:
                change.connection.execute(
                    "UPDATE push_attempts"
                    " SET ended_at = ?, fate = ?, reason = ?, answer = ?, change = ?"
                    " WHERE batch = ? AND number = ? AND ended_at IS NULL",
                    (
                        change.timestamp,
                        transition.fate,
                        transition.reason,
                        transition.answer,
                        change.number,
                        *key,
                    ),
                )
            if transition.before is not None:
                self._add_before_image(change, key, "afterwards", transition.before)
            replaces = to == "applied" or transition.event in ("begun", "resent", "looked_again")
            if transition.problems or replaces:
                self._replace_problems(change, key, transition.problems)
            return to

    def mark_interrupted_rows(self) -> int:
        """Mark rows as unconfirmed that an ended push was sending, and return their number."""
        with self.writing() as change:
            keys: list[RowKey] = change.connection.execute(
                "SELECT batch, number FROM push_rows WHERE state = 'intent'"
            ).fetchall()
            reason = "the push ended before an answer was recorded"
            for key in keys:
                self.record_transition(
                    key, Transition("lost", "in_doubt", fate="lost", reason=reason)
                )
            return len(keys)

    def mark_blocked(self, key: RowKey, transition: Transition, blocked_by: RowKey) -> None:
        """Record that an open row for the same record blocks a planned row. Its state stays."""
        with self.writing() as change:
            self.update_row(
                key, code=transition.code, same_batch=blocked_by[0], same_number=blocked_by[1]
            )
            self._replace_problems(change, key, transition.problems)

    def mark_undone(self, updated_at_by_row: Mapping[RowKey, str | None]) -> None:
        """Mark rows as undone, so that the same rows may be pushed again.

        The value of a row is its record's `updated_at` after the undo; None if another user changed
        the record between the row and its undo.
        """
        with self.writing() as change:
            for key, left_at in updated_at_by_row.items():
                known = {} if left_at is None else {"updated_at": left_at}
                self.update_row(key, undone_at=change.timestamp, **known)

    def update_row(self, key: RowKey, **values: Any) -> None:
        """Set columns of a row in `push_rows`, and its change number."""
        sets = "".join(f"{name} = ?, " for name in values)
        with self.writing() as change:
            change.connection.execute(
                f"UPDATE push_rows SET {sets}change = ? WHERE batch = ? AND number = ?",
                (*values.values(), change.number, *key),
            )

    def _replace_problems(
        self, change: JournalTransaction, key: RowKey, problems: Iterable[Problem]
    ) -> None:
        """Replace all problems of a row."""
        marks = ", ".join("?" for _ in _PROBLEM_COLUMNS)
        change.connection.execute("DELETE FROM push_problems WHERE batch = ? AND number = ?", key)
        change.connection.executemany(
            "INSERT INTO push_problems (batch, number, place,"
            f" {', '.join(_PROBLEM_COLUMNS)}, change) VALUES (?, ?, ?, {marks}, ?)",
            [(*key, place, *astuple(each), change.number) for place, each in enumerate(problems)],
        )

    def _add_before_image(
        self, change: JournalTransaction, key: RowKey, step: str, record: Mapping[str, Any]
    ) -> None:
        """Store the record before a step of a row, unless the step has one."""
        text = json.dumps(dict(record))
        self._insert(
            change,
            "push_before",
            batch=key[0],
            number=key[1],
            step=step,
            record=text,
            noted_at=change.timestamp,
        )

    def _insert(self, change: JournalTransaction, table: str, **values: Any) -> bool:
        """Add a row to a table, and return True if it was added, False if it existed."""
        marks = ", ".join("?" for _ in values)
        conflict = " ON CONFLICT DO NOTHING" if table in _MAY_EXIST else ""
        cursor = change.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}, change) VALUES ({marks}, ?){conflict}",
            (*values.values(), change.number),
        )
        return cursor.rowcount > 0

    def _read_state(self, key: RowKey) -> tuple[State, bool]:
        """Return the state of a row, and whether its record is created and its update still to be
        sent.
        """
        with self._ledger.reading() as connection:
            found = connection.execute(
                "SELECT state, is_begun FROM push_rows WHERE batch = ? AND number = ?", key
            ).fetchone()
        assert found is not None, f"there is no row {key}"
        return found[0], bool(found[1])


def _has_same_rows(connection: sqlite3.Connection, batch: str, plan: PushPlan) -> bool:
    """Return True if the batch has exactly the row numbers of the plan."""
    ((rows,),) = connection.execute("SELECT count(*) FROM push_rows WHERE batch = ?", (batch,))
    if rows != plan.row_count:
        return False
    numbers = iter(plan.row_numbers)
    while some := list(islice(numbers, VALUES_AT_ONCE)):
        ((found,),) = connection.execute(
            "SELECT count(*) FROM push_rows WHERE batch = ?"
            " AND number IN (SELECT value FROM json_each(?))",
            (batch, json.dumps(some)),
        )
        if found != len(some):
            return False
    return True


def _transition_for_duplicate(earlier: EarlierWrite, policy: PushPolicy) -> Transition | None:
    """Return the transition that ends a row unsent because an earlier row made the same write.

    None if the row is to be sent: the earlier row was not an open one, and `policy.resend` allows a
    second write, but never a second conversion.
    """
    if earlier.is_open:
        return Transition("written_elsewhere", "taken_over")
    if policy.resend and earlier.operation != "convert":
        return None
    if earlier.state == "not_applied":
        return Transition("written_elsewhere", "already_pushed")
    return Transition("up_to_date", "already_pushed", record_id=earlier.record_id)
