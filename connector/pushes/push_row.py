"""Commands of the push of a row, with their results, and the row's problems and state.

Creates, updates and conversions (`row_steps.py`) use them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from connector.catalog.resource import Declaration, Resource
from connector.errors import (
    ConnectorError,
    Forbidden,
    InDoubt,
    Misused,
    NotFound,
    RateLimited,
    Refused,
    Stopped,
    Unauthorized,
    Unreachable,
    ValidationFailed,
    WarehouseError,
)
from connector.ledger.journal_records import Attempt, Fate, RowStatus, Transition
from connector.ledger.push_plan import Problem, PushPolicy, shorten
from connector.ledger.push_states import IN_DOUBT, Operation, Task, next_state
from connector.warehouse.stream import FoundDetail

# -- Push commands ---------------------------------------------------------------------------------
# The push of a row is a generator: it yields one command after another and receives the answers.
# `RowExecutor` carries the commands out over HTTP, the ledger and the warehouse; the simulator does
# so with a simulated server and clock.
#
# Nothing can be sent that was not recorded first: `Send` has no contents, and sends the request
# that the last `RecordAttempt` has written to the disk.


@dataclass(frozen=True, slots=True)
class RecordAttempt:
    """Command: record an attempt in the journal, with its exact body and the record `before` it.

    The answer is an `Attempt`, or `InvalidBody` if the values cannot be sent.
    """

    operation: Operation
    fields: Mapping[str, Any] | None
    record_id: str | None
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Command: send the attempt that was recorded last. The answer is an `Answer`."""


@dataclass(frozen=True, slots=True)
class ListNewest:
    """Command: read a page of the list, newest first.

    The answer is a `Page` or an `UnreadableDetail`.
    """

    page: int


@dataclass(frozen=True, slots=True)
class NewestBefore:
    """Command: return the first page of the list as it was before the run's first create.

    It is read once for all rows of a run. The answer is a `Page` or `UnreadableDetail`.
    """


@dataclass(frozen=True, slots=True)
class ReadOne:
    """Command: read a complete record.

    The answer is a `FoundDetail`, a `DeletionProof` or an `UnreadableDetail`.
    """

    id: str


@dataclass(frozen=True, slots=True)
class ClaimedRecords:
    """Command: find which of these ids are certainly not this row's record. The answer is a set of
    ids.
    """

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenCreates:
    """Command: find other open creates of the same resource and parent, and answer with their
    bodies.
    """


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Command: continue the row no earlier than a time of our own clock. The answer is None."""

    moment: datetime


PushCommand = (
    RecordAttempt
    | Send
    | Transition
    | ListNewest
    | NewestBefore
    | ReadOne
    | ClaimedRecords
    | OpenCreates
    | WaitUntil
)

T = TypeVar("T")
PushSteps = Generator[PushCommand, Any, T]
"""Generator of commands that returns a `T`."""


# -- Answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InvalidBody:
    """The values of a row cannot be sent in a request, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """Answer with status 2xx and a record, which may have fewer fields than a complete one (API
    4.7).
    """

    record: Resource


@dataclass(frozen=True, slots=True)
class Declined:
    """Answer by which the API refused the write: nothing was applied, and a retry does not help.

    Attributes:
        errors: Messages of the API by field.
        is_validation: Whether the status was 422.
        is_missing: Whether the status was 404.
    """

    code: str
    message: str
    errors: Mapping[str, tuple[str, ...]]
    is_validation: bool = False
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Unsent:
    """The write had no effect for certain. `is_limited` is True for a 429."""

    reason: str
    is_limited: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The write may have been applied or not. `answer` describes the answer, without the API's
    words.
    """

    reason: str
    answer: str | None = None


Answer = Accepted | Declined | Unsent | Lost


_UNSENT = (Unauthorized, Forbidden, Unreachable, RateLimited, Stopped, Misused, WarehouseError)
"""Errors of a write that prove that nothing was applied, and that are not caused by the row: the
key, the network, a limit, or our own files.
"""


def answer_from_error(error: ConnectorError) -> Answer:
    """Return what the error of a write says about its effect.

    Unless the error proves that nothing was applied, the result is `Lost`.
    """
    if isinstance(error, _UNSENT):
        return Unsent(str(error), is_limited=isinstance(error, RateLimited))
    if isinstance(error, Refused):
        errors = error.errors if isinstance(error, ValidationFailed) else {}
        return Declined(
            error.code,
            error.api_message or f"the API answered {error.status}",
            errors,
            is_validation=isinstance(error, ValidationFailed),
            is_missing=isinstance(error, NotFound),
        )
    return Lost(str(error), error.answer if isinstance(error, InDoubt) else None)


# -- Problems --------------------------------------------------------------------------------------


_RESOLVE = "Search for the record on the platform. Then resolve the row with 'connector resolve'."

UNANSWERED = "not answered"
"""Text for a request without an answer."""

DOUBTS: Mapping[str, str] = {
    "not_found": "the row was sent and {answered}, but its record is not found",
    "not_converted": "the conversion was sent and {answered}, but the lead is unchanged",
    "attempts_spent": "the row was sent several times, the last time {answered}",
    "look_incomplete": "the row was sent and {answered}, and the list in which its record would be "
    "could not be read completely",
    "several_matches": "the row was sent and {answered}, and several records match it",
    "look_alike": "the row was sent and {answered}, and a record with similar but different values "
    "exists",
}
"""Message for an unconfirmed row, by code. `answered` is the answer, or `UNANSWERED`."""


def declined_problems(
    resource: Declaration, declined: Declined, sent: Mapping[str, Any]
) -> tuple[Problem, ...]:
    """Return the API's messages as problems of the fields or, without such messages, of the row."""
    problems = []
    for name, messages in declined.errors.items():
        is_field = name in resource.fields
        said = "; ".join(messages)
        problems.append(
            Problem(
                declined.code,
                said if is_field or not name else f"{name}: {said}",
                field=name if is_field else None,
                received=shorten(sent[name]) if name in sent else None,
                fix="Correct the value and push the row again.",
            )
        )
    if not problems:
        fix = "Correct the row and push it again."
        problems.append(Problem(declined.code, declined.message, fix=fix))
    return tuple(problems)


def conflict_problems(
    names: tuple[str, ...],
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    now: Mapping[str, Any],
) -> tuple[Problem, ...]:
    """Return a problem for each of the fields that another user has changed since `base`."""
    return tuple(
        Problem(
            "changed_elsewhere",
            f"{name} was changed by someone else; the last pull read {shorten(base[name])!r}",
            field=name,
            received=shorten(wanted[name]),
            found=shorten(now.get(name)),
            fix="Check which value is right. To send the value of the file, add --overwrite.",
        )
        for name in names
    )


# -- Push row --------------------------------------------------------------------------------------


ATTEMPTS_MAX = 3
"""Maximum number of unconfirmed attempts of one step. After them a person has to decide."""

UNSENT_MAX = 3
"""Maximum number of attempts of one run that could not be sent. A later push continues."""


class PushRow:
    """Row that is being pushed, with its state in the journal.

    Attributes:
        fresh_record: Record that was just read, so that it is not read again.
    """

    def __init__(
        self, resource: Declaration, task: Task, policy: PushPolicy, status: RowStatus
    ) -> None:
        self.resource, self.task, self.policy = resource, task, policy
        self.state = status.state
        self.is_begun, self.is_in_doubt = status.is_begun, status.is_in_doubt
        self.is_altered, self.before = status.is_altered, status.before
        self.attempts = list(status.attempts)
        self.record_id = status.record_id or task.record_id
        self.fresh_record: FoundDetail | None = None
        self._unsent = 0

    @property
    def id(self) -> str:
        """Id of the record to change. Only for an update or a conversion."""
        assert self.record_id is not None, "an update or a conversion names no record"
        return self.record_id

    @property
    def unknown_attempts(self) -> int:
        """Number of attempts of the present step whose fate is unknown."""
        return sum(each.fate in (None, "lost") for each in self.attempts)

    @property
    def settled_at(self) -> datetime:
        """Time of our own clock after which no attempt of the row can take effect any more."""
        last = max(each.intended_at for each in self.attempts)
        return last + timedelta(seconds=self.policy.settle_seconds)

    @property
    def is_open(self) -> bool:
        """Return True if the write may have been applied, or was applied in part."""
        is_half_done = self.is_begun or self.is_in_doubt
        return self.state in IN_DOUBT or (self.state == "planned" and is_half_done)

    @property
    def can_retry(self) -> bool:
        """Return True if the row may be sent again in this run."""
        return self._unsent < UNSENT_MAX

    def unconfirmed_problems(self, code: str, ids: tuple[str, ...] = ()) -> tuple[Problem, ...]:
        """Return the problem of an unconfirmed row by its code in `DOUBTS`. `ids` may be its
        record.
        """
        answers = [each.answer for each in self.attempts if each.fate in (None, "lost")]
        answered = (answers[-1] if answers else None) or UNANSWERED
        message = DOUBTS[code].format(answered=answered)
        return (Problem(code, message, found=", ".join(ids) or None, fix=_RESOLVE),)

    def record_transition(
        self, transition: Transition, record: Resource | None = None
    ) -> PushSteps[None]:
        """Change the row's state, and record the transition with the record of the answer."""
        if record is not None:
            updated_at = record.raw.get("updated_at")
            transition = replace(
                transition,
                record_id=record.id,
                updated_at=updated_at if isinstance(updated_at, str) else None,
                shown=record,
            )
        self.state = next_state(self.state, transition.event)
        if transition.fate is not None:
            self.attempts[-1] = replace(
                self.attempts[-1],
                fate=transition.fate,
                reason=transition.reason,
                answer=transition.answer,
            )
        yield transition

    def record_applied(self, transition: Transition, record: Resource) -> PushSteps[None]:
        """Record that the row has ended: applied or, if the API changed values, not applied as
        sent.
        """
        self.is_altered |= any(each.code == "values_differ" for each in transition.problems)
        if self.is_altered:
            transition = replace(transition, event="altered", code="values_differ")
        yield from self.record_transition(transition, record)

    def send_attempt(
        self,
        operation: Operation,
        fields: Mapping[str, Any] | None,
        before: Mapping[str, Any] | None = None,
    ) -> PushSteps[Answer | None]:
        """Record an attempt, send it, and return the answer.

        The caller records an `Accepted` or `Declined` answer. A lost answer, and a request that was
        not sent, are recorded here. Returns None if the values make no valid request; then the row
        has ended.
        """
        record_id = None if operation == "create" else self.id
        attempt = yield RecordAttempt(operation, fields, record_id, before)
        if isinstance(attempt, InvalidBody):
            fix = "Correct the values of the row."
            problems = (Problem("unfit", attempt.reason, fix=fix),)
            if self.is_begun:
                yield from self.record_transition(
                    Transition("refused_afterwards", "unfit", problems)
                )
            else:
                yield from self.record_transition(Transition("refused_here", "unfit", problems))
            return None
        assert isinstance(attempt, Attempt)
        self.state = next_state(self.state, "intended")
        self.attempts.append(attempt)
        self.before = self.before if before is None else before
        answer: Answer = yield Send()
        if isinstance(answer, Unsent):
            self._unsent += 1
            fate: Fate = "limited" if answer.is_limited else "unsent"
            yield from self.record_transition(Transition("unsent", fate=fate, reason=answer.reason))
        elif isinstance(answer, Lost):
            yield from self.record_lost(answer)
        return answer

    def record_lost(self, lost: Lost) -> PushSteps[None]:
        """Record that the write of the last attempt may have been applied or not."""
        self.is_in_doubt = True
        yield from self.record_transition(
            Transition("lost", "in_doubt", fate="lost", reason=lost.reason, answer=lost.answer)
        )
