"""Rows to undo, from the journal, and the outcome of each row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from connector.errors import ConnectorError, Stopped
from connector.ledger.journal import Journal
from connector.ledger.journal_records import AttemptRecord, RowKey, RowRecord
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import IN_DOUBT, Task
from connector.pushes.undo_plan import UndoStep, WrittenRow

UndoOutcome = Literal[
    "delete",
    "restore",
    "deleted",
    "restored",
    "undone",
    "nothing",
    "partly",
    "conflict",
    "irreversible",
    "refused",
    "held",
    "unread",
    "not_reached",
]
"""Outcome of a row, or in a preview the expected one.

`delete` and `restore` are for previews. `undone`: it was undone before, or nothing is left of it.
`nothing`: the row had changed nothing. `partly`: some fields are restored, and others cannot be.
`conflict`: another user has changed the values. `irreversible`: a conversion. `refused`: the API
refused the undo. `held`: the row is unconfirmed. `unread`: the record could not be read, or the
write was not answered. `not_reached`: the undo ended before its turn.
"""

GOOD: frozenset[UndoOutcome] = frozenset(
    ("delete", "restore", "deleted", "restored", "undone", "nothing")
)
"""Outcomes that need no attention."""

_SENT_FATES = ("accepted", "lost", None)
_OUTCOMES_WITHOUT_READ: Mapping[str, tuple[UndoOutcome, str, str]] = {
    "not_settled": (
        "held",
        "the row is unconfirmed",
        ("Resolve it with 'connector resolve' or push the file again, then undo the batch again."),
    ),
    "never_known": (
        "held",
        "the undo of the row was sent, but its result is unknown",
        "Check the record on the platform.",
    ),
    "written_elsewhere": (
        "nothing",
        "a row of another batch wrote the same values before",
        "To undo the values, undo that batch.",
    ),
    "irreversible": (
        "irreversible",
        "a conversion cannot be undone",
        "Change the record on the platform.",
    ),
    "declared": (
        "conflict",
        "'connector resolve --record' assigned the record to the row, so the undo does not delete "
        "it",
        "Delete the record on the platform if necessary.",
    ),
}
"""Outcome, message and advice for rows whose records are not read, by code."""


@dataclass(frozen=True, slots=True)
class UndoneRow:
    """Outcome of one row. `changes` has the present and the restored value of each field."""

    number: int
    operation: str | None
    outcome: UndoOutcome
    record_id: str | None = None
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        return {
            "row": self.number,
            "operation": self.operation,
            "outcome": self.outcome,
            "id": self.record_id,
            "changes": {name: {"now": a, "then": b} for name, (a, b) in self.changes.items()},
            "problems": [
                {
                    "code": each.code,
                    "field": each.field,
                    "message": each.message,
                    "written": each.received,
                    "found": each.found,
                    "fix": each.fix,
                }
                for each in self.problems
            ],
        }


@dataclass(frozen=True, slots=True)
class UndoReport:
    """Result of an undo or of its preview, with every row of the batch.

    Attributes:
        answers_not_loaded: Number of answers that could not be loaded; the next pull loads their
            records.
        error: Error that ended the undo early.
        unpublished: Error that prevented the publication of the result.
    """

    batch: str
    is_applied: bool
    rows: tuple[UndoneRow, ...]
    requests: int
    seconds: float
    answers_not_loaded: int = 0
    error: ConnectorError | None = None
    unpublished: ConnectorError | None = None

    @property
    def counts(self) -> Mapping[UndoOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return Counter(each.outcome for each in self.rows)

    @property
    def outcome(self) -> Literal["previewed", "done", "partial", "stopped", "failed"]:
        """How the undo ended; "partial" if some rows need attention."""
        if self.error is not None:
            return "stopped" if isinstance(self.error, Stopped) else "failed"
        if not self.is_applied:
            return "previewed"
        return "done" if self._is_all_good else "partial"

    @property
    def exit_status(self) -> int:
        """0 if all rows are undone, or would be; 3 if some are not; else that of the error."""
        if self.error is not None:
            return self.error.exit_status
        if self.unpublished is not None:
            return 1
        return 0 if self._is_all_good else 3

    @property
    def _is_all_good(self) -> bool:
        """Return True if no row has an outcome that needs attention."""
        return all(each.outcome in GOOD for each in self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, with all rows."""
        return {
            "outcome": self.outcome,
            "batch": self.batch,
            "applied": self.is_applied,
            "rows": [each.as_json() for each in self.rows],
            "counts": {str(name): count for name, count in self.counts.items()},
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "error": None if self.error is None else self.error.as_json(),
            "unpublished": None if self.unpublished is None else self.unpublished.as_json(),
        }


def make_undone_row(
    row: WrittenRow,
    outcome: UndoOutcome,
    problems: tuple[Problem, ...] = (),
    step: UndoStep | None = None,
    *,
    reason: str | None = None,
) -> UndoneRow:
    """Return the outcome of a row for the report.

    `step` undoes the row and has its changes. `reason` is the code of an error that prevented the
    undo; it replaces the problems.
    """
    if reason is not None:
        message = f"the API answered with an error ({reason})"
        problems = (Problem(reason, message, fix="Run the same command again."),)
    changes = {}
    if step is not None:
        changes = {name: (step.present_values[name], then) for name, then in step.body.items()}
    return UndoneRow(row.key[1], row.operation, outcome, row.record_id, changes, problems)


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """Record to which rows of the batch wrote, with these rows, the last write first."""

    rows: tuple[WrittenRow, ...]
    subject: None = None

    @property
    def key(self) -> RowKey:
        """Key of the row that wrote last."""
        return self.rows[0].key


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo of a batch has to do.

    Attributes:
        records: Records that the batch wrote to, the last one first.
        ended: Rows that have nothing to undo, or cannot be undone.
    """

    records: tuple[WrittenRecord, ...]
    ended: tuple[UndoneRow, ...]


def read_undo_plan(journal: Journal, batch: str) -> UndoPlan:
    """Return what an undo of the batch has to do, from the journal. Raises `UnknownName`."""
    attempts: dict[int, list[AttemptRecord]] = {}
    for each in journal.attempts(batch):
        attempts.setdefault(each.number, []).append(each)
    before = {(each.number, each.step): each.record for each in journal.before_images(batch)}
    ended: list[UndoneRow] = []
    records: dict[str, list[tuple[datetime, WrittenRow]]] = {}
    for row in journal.rows(batch):
        made = [each for each in attempts.get(row.number, ()) if each.fate in _SENT_FATES]
        if (without := _outcome_without_read(row, made)) is not None:
            ended.append(without)
            continue
        pending = journal.row_with_task((batch, row.number))
        if pending is None or row.record_id is None:
            raise journal.damage_error(
                f"row {row.number} was written, and has no task or no record"
            )
        written = _written_row(row, pending.task, made, before.get((row.number, "first"), {}))
        written = replace(written, undone_updates=journal.undone_updates(written.record_id))
        records.setdefault(written.record_id, []).append((made[-1].intended_at, written))
    groups = []
    for rows in records.values():
        latest = sorted(rows, key=lambda each: (each[0], each[1].key), reverse=True)
        groups.append(WrittenRecord(tuple(each for _, each in latest)))
    # Later rows may refer to records that earlier ones have created.
    groups.sort(key=lambda each: each.key, reverse=True)
    return UndoPlan(tuple(groups), tuple(ended))


def _outcome_without_read(row: RowRecord, attempts: list[AttemptRecord]) -> UndoneRow | None:
    """Return the outcome of a row if its record need not be read; None if it has to be read."""
    is_done = row.state in ("applied", "not_applied")
    is_half_done = row.state == "planned" and row.outcome != "not_sent"
    code = ""
    outcome: UndoOutcome = "nothing"
    if row.undone_at is not None:
        outcome = "undone"
    elif row.state in IN_DOUBT or is_half_done:
        code = "not_settled"
    elif not is_done and any(each.fate != "accepted" for each in attempts):
        code = "never_known"
    elif row.state == "follows":
        code = "written_elsewhere"
    elif is_done and row.operation == "convert":
        code = "irreversible"
    elif is_done and row.operation == "create" and row.code == "declared":
        code = "declared"
    elif is_done and attempts:
        return None
    problems: tuple[Problem, ...] = ()
    if code:
        outcome, message, fix = _OUTCOMES_WITHOUT_READ[code]
        found = (
            None
            if row.same_row is None
            else f"row {row.same_row[1]} of the batch {row.same_row[0]}"
        )
        problems = (Problem(code, message, found=found, fix=fix),)
    return UndoneRow(row.number, row.operation, outcome, row.record_id, problems=problems)


def _written_row(
    row: RowRecord, task: Task, attempts: list[AttemptRecord], before: Mapping[str, Any]
) -> WrittenRow:
    """Return the values that the row wrote, from the bodies of its attempts."""
    assert task.operation != "convert", row.number
    # The task of an update has the id of its record. An answer proves nothing about it.
    record_id = task.record_id or row.record_id
    assert record_id is not None, row.number
    written: dict[str, Any] = {}
    for each in attempts:
        written |= json.loads(each.body or "{}")
    return WrittenRow(
        key=(row.batch, row.number),
        task=task,
        record_id=record_id,
        written=written,
        before=before,
        updated_at=row.updated_at,
        altered_values={
            each.field: each.found
            for each in row.problems
            if each.code == "values_differ" and each.field is not None and each.found is not None
        },
        sent_after=min(e.sent_after for e in attempts) if task.operation == "create" else None,
    )
