"""Records of the journal of pushes: batches, rows, attempts, and records before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from connector.catalog.resource import Resource
from connector.ledger.push_plan import Problem, PushPolicy
from connector.ledger.push_states import Mode, Operation, RowEvent, RowOutcome, State, Step, Task

BatchAction = Literal["prepared", "sent", "undone"]
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
    """One attempt to send a row, for the steps of a push.

    Attributes:
        intended_at: Time of our own clock before the first byte was sent.
        sent_after: Time of the server's clock, as far as it was known then.
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
    """Change of a row's state, to be recorded. As a command it is answered with None.

    Attributes:
        code: Details of the new state, by code.
        record_id: Id that the API returned; `updated_at` likewise.
        before: Record before the next step.
        shown: Record to load into the warehouse; complete if `is_detail`.
        fate: End of the open attempt, with its `reason` and `answer`.
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
    """One file that was pushed.

    Attributes:
        outcome: Outcome of the last run that sent its rows, with `error_code` and `message`; None
            until a run has ended.
        requests: Requests of all runs; `seconds` likewise.
        prepared_by: User of the import page; `sent_by` and `undone_by` likewise.
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
    """One row with its outcome.

    Attributes:
        code: Details of the outcome, by code; may be empty.
        record_id: Record that the row created, changed or equals.
        same_batch: Batch of the row that this one repeats or follows, with its `same_number`.
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
        """The row that this one repeats or follows."""
        batch, number = self.same_batch, self.same_number
        return None if batch is None or number is None else (batch, number)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One stored attempt, with the exact text of its body; None for a conversion."""

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
    """Record before an update, or as it was created."""

    batch: str
    number: int
    step: str
    record: Mapping[str, Any]
    noted_at: datetime
    change: int


@dataclass(frozen=True, slots=True)
class PendingRow:
    """Row with its task and its status."""

    key: RowKey
    task: Task
    status: RowStatus
    subject: str | None
    code: str


@dataclass(frozen=True, slots=True)
class PendingCount:
    """Number of unfinished rows, and the keys of those whose write is open."""

    rows: int
    open: frozenset[RowKey]


@dataclass(frozen=True, slots=True)
class JournalChanges:
    """Part of the changes since a number; `last` is the number for the next call."""

    last: int
    batches: tuple[BatchRecord, ...] = ()
    rows: tuple[RowRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    before_images: tuple[BeforeImage, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierWrite:
    """Row that has applied a write, or has it open (`is_open`)."""

    fingerprint: str
    key: RowKey
    operation: Operation
    state: State
    record_id: str | None
    is_open: bool
    change: int


@dataclass(frozen=True, slots=True)
class PushRun:
    """Last run of a file; `refused` is the number of rows that need a correction."""

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
    """Number of unconfirmed rows, and the time of the first of them."""

    rows: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PushHealth:
    """State of the pushes of an account.

    Attributes:
        runs: Latest runs, newest first; the last one of every resource is among them.
        held: Rows that wait for a person's decision.
        open: Rows that were sent and whose answer is unknown. A running push always has some.
    """

    runs: tuple[PushRun, ...] = ()
    held: UnknownRows | None = None
    open: UnknownRows | None = None
