"""Changes of the journal of pushes within one transaction, which the caller holds.

Every change of a state is looked up in the table of transitions, and every row that changes is
marked with the number of the transaction, by which it is copied for analysts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from datetime import datetime
from typing import Any

from connector.client.request import Request
from connector.ledger.journal_reads import (
    PROBLEM_COLUMNS,
    BatchAction,
    EarlierWrite,
    RowKey,
    earlier_writes,
    policy_text,
)
from connector.ledger.journal_records import Attempt, Transition
from connector.ledger.push_plan import (
    Problem,
    PushPlan,
    PushPolicy,
    RowVerdict,
    fingerprint,
    subject_hash,
    to_json,
)
from connector.ledger.push_states import RowEvent, State, Task, next_state

VALUES_AT_ONCE = 500
"""Rows that are held against earlier pushes together."""

_VERDICTS: Mapping[str, RowEvent] = {
    "invalid": "refused_here",
    "duplicate": "repeated",
    "unchanged": "up_to_date",
}
_MAY_BE_THERE = frozenset(("push_rows", "push_before"))
_FRESH = "(state = 'planned' AND is_begun = 0 AND is_in_doubt = 0)"
_DOUBTS: Mapping[RowEvent, bool] = {
    "lost": True,
    "refused_in_doubt": True,
    "unapplied": False,
    "begun": False,
}


class JournalChange:
    """One transaction's changes, made `at` a time and marked with a new `number`."""

    def __init__(self, connection: sqlite3.Connection, at: datetime) -> None:
        ((self.number,),) = connection.execute(
            "UPDATE push_changes SET last = last + 1 RETURNING last"
        ).fetchall()
        self.connection, self.at, self.moment = connection, at, at.isoformat()

    # -- Batches ----------------------------------------------------------------------------------

    def begin(
        self, batch: str, plan: PushPlan, terms: PushPolicy, landed_before: Iterable[str]
    ) -> None:
        """Write down a new batch."""
        self._insert(
            "push_batches",
            batch=batch,
            resource=plan.resource,
            mode=plan.mode,
            file=plan.file,
            digest=plan.digest,
            terms=policy_text(terms),
            landed_before=json.dumps(sorted(landed_before)),
            run_id=batch,
            begun_at=self.moment,
            requests=0,
            seconds=0,
        )

    def note_people(self, batch: str, people: Mapping[BatchAction, str]) -> None:
        """Write down who did what with the batch, in place of who did so before."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO push_people VALUES (?, ?, ?, ?)",
            [(batch, deed, person, self.moment) for deed, person in people.items()],
        )
        self.connection.execute(
            "UPDATE push_batches SET change = ? WHERE batch = ?", (self.number, batch)
        )

    def add_rows(self, batch: str, plan: PushPlan) -> None:
        """Write down the rows of the plan that the batch does not have."""

        def columns(task: Task) -> tuple[Any, ...]:
            assert task.resource == plan.resource, task.resource
            return (
                *(batch, task.number, task.operation, fingerprint(task), subject_hash(task)),
                *(next_state("read", "undertaken"), task.record_id, self.moment, self.number),
                to_json(task),
            )

        self.connection.executemany(
            "INSERT INTO push_rows (batch, number, operation, fingerprint, subject, state, code,"
            " is_begun, is_in_doubt, is_altered, record_id, moved_at, change, task)"
            " VALUES (?, ?, ?, ?, ?, ?, '', 0, 0, 0, ?, ?, ?, ?)"
            " ON CONFLICT (batch, number) DO NOTHING",
            map(columns, plan.tasks),
        )
        for verdict in plan.verdicts:
            self._add_verdict(batch, verdict)
        ((rows,),) = self.connection.execute(
            "SELECT count(*) FROM push_rows WHERE batch = ?", (batch,)
        )
        assert rows == plan.rows, "a row has two plans"

    def _add_verdict(self, batch: str, verdict: RowVerdict) -> None:
        """Write down a row that is not to be written, and why."""
        state = next_state("read", _VERDICTS[verdict.outcome])
        assert state == verdict.outcome, verdict
        is_added = self._insert(
            "push_rows",
            batch=batch,
            number=verdict.number,
            state=state,
            code=verdict.code,
            is_begun=False,
            is_in_doubt=False,
            is_altered=False,
            record_id=verdict.record_id,
            moved_at=self.moment,
        )
        if is_added:
            self.set_problems((batch, verdict.number), verdict.problems)

    def remove_unsent(self, batch: str) -> None:
        """Take out the batch's rows of which nothing was ever intended."""
        untried = (
            "batch = ?1 AND state = 'planned' AND number NOT IN"
            " (SELECT number FROM push_attempts WHERE batch = ?1)"
        )
        self.connection.execute(
            f"DELETE FROM push_problems WHERE batch = ?1 AND number IN"
            f" (SELECT number FROM push_rows WHERE {untried})",
            (batch,),
        )
        self.connection.execute(f"DELETE FROM push_rows WHERE {untried}", (batch,))

    def end_answered_rows(self, batch: str, terms: PushPolicy) -> None:
        """End planned rows whose write was done, or is open, elsewhere."""
        repeated = self.connection.execute(
            "SELECT number, earlier FROM (SELECT number, is_fresh, first_value(number)"
            " OVER (PARTITION BY fingerprint ORDER BY is_fresh, number) AS earlier"
            f" FROM (SELECT number, fingerprint, {_FRESH} AS is_fresh FROM push_rows"
            " WHERE batch = ? AND fingerprint IS NOT NULL"
            " AND state NOT IN ('duplicate', 'invalid', 'follows', 'unchanged')))"
            " WHERE is_fresh AND earlier <> number",
            (batch,),
        ).fetchall()
        for number, earlier in repeated:
            told = Problem("same_row", f"row {earlier} of the file has the same values")
            what = Transition("repeated", "same_row", (told,))
            self.record_transition((batch, number), what, same=(batch, earlier))
        last = -1
        while fresh := self._fresh_after(batch, last):
            for print_, other in earlier_writes(self.connection, fresh, outside=batch).items():
                if (answered := event_for_duplicate(other, terms)) is not None:
                    self.record_transition((batch, fresh[print_]), answered, same=other.key)
            last = max(fresh.values())

    def _fresh_after(self, batch: str, number: int) -> dict[str, int]:
        """The next rows behind a number that were never sent, by fingerprint."""
        rows = self.connection.execute(
            "SELECT fingerprint, number FROM push_rows WHERE batch = ? AND number > ?"
            f" AND fingerprint IS NOT NULL AND {_FRESH} ORDER BY number LIMIT ?",
            (batch, number, VALUES_AT_ONCE),
        )
        return dict(rows.fetchall())

    # -- Rows -------------------------------------------------------------------------------------

    def record_attempt(
        self, key: RowKey, request: Request, before: Mapping[str, Any] | None, sent_after: datetime
    ) -> Attempt:
        """Write an attempt down, before a byte of it leaves."""
        state, is_begun = self._state(key)
        ((last,),) = self.connection.execute(
            "SELECT coalesce(max(attempt), 0) FROM push_attempts WHERE batch = ? AND number = ?",
            key,
        ).fetchall()
        attempt = Attempt(last + 1, "afterwards" if is_begun else "first", self.at, sent_after)
        self._insert(
            "push_attempts",
            batch=key[0],
            number=key[1],
            attempt=attempt.number,
            step=attempt.step,
            method=request.method,
            path=request.path,
            body=request.body,
            intended_at=self.moment,
            sent_after=sent_after.isoformat(),
        )
        if before is not None:
            self._note_before(key, attempt.step, before)
        self.update_row(
            key, state=next_state(state, "intended"), code="in_doubt", moved_at=self.moment
        )
        return attempt

    def record_transition(
        self, key: RowKey, what: Transition, *, same: RowKey | None = None
    ) -> State:
        """Write a transition down; `same` is the row that this one repeats or follows."""
        state, is_begun = self._state(key)
        to = next_state(state, what.event)
        known: dict[str, Any] = {"record_id": what.record_id, "updated_at": what.updated_at}
        if what.event == "altered" or any(p.code == "values_differ" for p in what.problems):
            known["is_altered"] = True
        self.update_row(
            key,
            state=to,
            code=what.code,
            is_begun=is_begun or what.event == "begun",
            same_batch=same and same[0],
            same_number=same and same[1],
            moved_at=self.moment,
            **{name: value for name, value in known.items() if value is not None},
            **({"is_in_doubt": _DOUBTS[what.event]} if what.event in _DOUBTS else {}),
        )
        if what.fate is not None:
            self.connection.execute(
                "UPDATE push_attempts"
                " SET ended_at = ?, fate = ?, reason = ?, answer = ?, change = ?"
                " WHERE batch = ? AND number = ? AND ended_at IS NULL",
                (self.moment, what.fate, what.reason, what.answer, self.number, *key),
            )
        if what.before is not None:
            self._note_before(key, "afterwards", what.before)
        if what.problems or to == "applied" or what.event in ("begun", "resent", "looked_again"):
            self.set_problems(key, what.problems)
        return to

    def mark_interrupted_rows(self) -> int:
        """Put rows in doubt that were under way when a push ended; returns how many."""
        rows = self.connection.execute("SELECT batch, number FROM push_rows WHERE state = 'intent'")
        keys: list[RowKey] = rows.fetchall()
        reason = "the push ended before an answer was recorded"
        for key in keys:
            self.record_transition(key, Transition("lost", "in_doubt", fate="lost", reason=reason))
        return len(keys)

    def set_problems(self, key: RowKey, problems: Iterable[Problem]) -> None:
        """Put these in the place of the row's problems."""
        self.connection.execute("DELETE FROM push_problems WHERE batch = ? AND number = ?", key)
        marks = ", ".join("?" for _ in PROBLEM_COLUMNS)
        self.connection.executemany(
            f"INSERT INTO push_problems (batch, number, place, {', '.join(PROBLEM_COLUMNS)},"
            f" change) VALUES (?, ?, ?, {marks}, ?)",
            [(*key, place, *astuple(each), self.number) for place, each in enumerate(problems)],
        )

    def update_row(self, key: RowKey, **values: Any) -> None:
        """Set columns of a row."""
        sets = "".join(f"{name} = ?, " for name in values)
        self.connection.execute(
            f"UPDATE push_rows SET {sets}change = ? WHERE batch = ? AND number = ?",
            (*values.values(), self.number, *key),
        )

    def _note_before(self, key: RowKey, step: str, record: Mapping[str, Any]) -> None:
        text = json.dumps(dict(record))
        values = {"batch": key[0], "number": key[1], "step": step, "record": text}
        self._insert("push_before", **values, noted_at=self.moment)

    def _insert(self, table: str, **values: Any) -> bool:
        """Add a row to a table; says whether it was added."""
        marks = ", ".join("?" for _ in values)
        conflict = " ON CONFLICT DO NOTHING" if table in _MAY_BE_THERE else ""
        cursor = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}, change) VALUES ({marks}, ?){conflict}",
            (*values.values(), self.number),
        )
        return cursor.rowcount > 0

    def _state(self, key: RowKey) -> tuple[State, bool]:
        found = self.connection.execute(
            "SELECT state, is_begun FROM push_rows WHERE batch = ? AND number = ?", key
        ).fetchone()
        assert found is not None, f"there is no row {key}"
        return found[0], bool(found[1])


def event_for_duplicate(other: EarlierWrite, terms: PushPolicy) -> Transition | None:
    """The end of a row that another one answers for; None where it is sent."""
    if other.is_open:
        return Transition("written_elsewhere", "taken_over")
    if terms.again and other.operation != "convert":
        return None
    if other.state == "not_applied":
        return Transition("written_elsewhere", "already_pushed")
    return Transition("up_to_date", "already_pushed", record_id=other.record_id)
