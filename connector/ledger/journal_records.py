"""Records of the journal of pushes: batches, rows, attempts, and records before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from connector.catalog.resource import Resource
from connector.ledger.push_plan import Problem, PushPolicy
from connector.ledger.push_states import Mode, Operation, RowEvent, RowOutcome, State, Step, Task

BatchAction = Literal["sent", "undone"]
"""What a person did with a batch."""

RowKey = tuple[str, int]
"""A row: its batch, and its number in the file."""

UNFINISHED: tuple[State, ...] = ("planned", "intent", "unknown", "settling")
"""States of rows that a push can continue."""

REFUSED: tuple[State, ...] = ("rejected", "conflict", "invalid", "not_applied")
"""States of rows that were not applied and need a correction."""

Fate = Literal["accepted", "refused", "limited", "unsent", "lost"]
"""How an attempt ended. `limited` and `unsent` had no effect for certain; a 429 is no attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Attempt to send a row, as the steps of a push see it.

    Attributes:
        number: Number of the attempt in its row, from 1.
        step: First request of the row, or the update after its create.
        intended_at: Time of our own clock before the first byte was sent.
        sent_after: Estimated time of the server's clock before the first byte was sent.
        fate: How the attempt ended; None if that was never recorded.
        reason: Why the fate is unknown.
        answer: Answer to an attempt whose fate is unknown, without the API's own words.
    """

    number: int
    step: Step
    intended_at: datetime
    sent_after: datetime
    fate: Fate | None = None
    reason: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """Change of a row's state, for the journal. A row's steps yield it as a command without an
    answer.

    Attributes:
        event: Event that changes the state.
        code: Code that details the new state; may be empty.
        record_id: Id that the API returned; `updated_at` likewise.
        before: Record before the update that follows a create.
        shown: Record in the answer, to load into the warehouse. Complete if `is_detail`.
        fate: End of the open attempt, with its `reason` and `answer`; None if no attempt is open.
    """

    event: RowEvent
    code: str = ""
    problems: tuple[Problem, ...] = ()
    record_id: str | None = None
    updated_at: str | None = None
    before: Mapping[str, Any] | None = None
    shown: Resource | None = None
    is_detail: bool = False
    fate: Fate | None = None
    reason: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class RowStatus:
    """Status of an unfinished row.

    Attributes:
        is_begun: Whether its record is created, and the update after it is still to be sent.
        is_in_doubt: Whether the fate of one of the `attempts` of this step is unknown.
        is_altered: Whether the API returned other values than were sent.
        before: Record before the first attempt of this step.
    """

    state: State
    is_begun: bool = False
    is_in_doubt: bool = False
    is_altered: bool = False
    record_id: str | None = None
    before: Mapping[str, Any] | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Stored batch: one file that was pushed with one policy.

    Attributes:
        digest: SHA-256 of the file, in hexadecimal.
        outcome: Outcome of the last run that sent its rows, with `error_code` and `message`; None
            until a run has ended.
        requests: Requests of all runs; `seconds` likewise.
        change: Number of the transaction that changed the batch last.
        sent_by: User of the import page; `undone_by` likewise.
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
    sent_by: str | None = None
    undone_by: str | None = None


@dataclass(frozen=True, slots=True)
class RowRecord:
    """Stored row with its outcome.

    Attributes:
        code: Code that details the outcome; may be empty.
        record_id: Record that the row created or changed, or that already has its values.
        same_batch: Batch of the row that this row repeats or follows, with its `same_number`.
        moved_at: Time of the last change of `state`.
        change: Number of the transaction that changed the row last.
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
    def same_row(self) -> RowKey | None:
        """Key of the row that this row repeats or follows; None if there is none."""
        batch, number = self.same_batch, self.same_number
        return None if batch is None or number is None else (batch, number)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """Stored attempt to send a row. `body` is the exact text; None for a conversion."""

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
    """Stored record of a row before a step: before its update, or as its create made it."""

    batch: str
    number: int
    step: str
    record: Mapping[str, Any]
    noted_at: datetime
    change: int


@dataclass(frozen=True, slots=True)
class PendingRow:
    """Row with its task and its status, from which a push continues."""

    key: RowKey
    task: Task
    status: RowStatus
    subject: str | None
    code: str


@dataclass(frozen=True, slots=True)
class PendingCount:
    """Number of unfinished rows, and `open`: keys of those whose write may have been applied."""

    rows: int
    open: frozenset[RowKey]


@dataclass(frozen=True, slots=True)
class JournalChanges:
    """Part of what changed in the journal. `last` is the change number to continue from later."""

    last: int
    batches: tuple[BatchRecord, ...] = ()
    rows: tuple[RowRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    before_images: tuple[BeforeImage, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierWrite:
    """Row that applied a write, or may have applied it (`is_open`)."""

    fingerprint: str
    key: RowKey
    operation: Operation
    state: State
    record_id: str | None
    is_open: bool
    change: int


@dataclass(frozen=True, slots=True)
class PushRun:
    """Last run of a batch. `refused` is the number of its rows that need a correction."""

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
    """Number of unconfirmed rows, and since when the first of them is."""

    rows: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PushHealth:
    """Recent pushes of an account, and its unconfirmed rows.

    Attributes:
        runs: Latest runs of each resource, newest first.
        held: Unconfirmed rows on which the user has to decide.
        open: Rows that were sent and whose answer is unknown. A running push always has some.
    """

    runs: tuple[PushRun, ...] = ()
    held: UnknownRows | None = None
    open: UnknownRows | None = None
