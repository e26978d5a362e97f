"""Commands of a row's push, and the answers to them. Plain values.

A row is a generator, as a pull is: it yields one command after another and is sent the answer. Its
driver performs them, over HTTP, the ledger and the warehouse (`connector/pushes`), or against a
store and a clock of its own (the simulator).

Nothing can be sent that was not recorded first: `Send` has no contents, and sends what the last
`RecordAttempt` has written to the disk.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from connector.catalog.resource import Resource
from connector.errors import ConnectorError, Misused, WarehouseError
from connector.errors_api import (
    Denied,
    InDoubt,
    NotFound,
    RateLimited,
    Refused,
    Stopped,
    Unreachable,
    ValidationFailed,
)
from connector.ledger.journal_records import Transition
from connector.ledger.push_states import Operation

# -- Commands --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordAttempt:
    """Write the attempt to the disk: its number, its exact body, and the record `before` it.

    Answered with an `Attempt`, or with `InvalidBody` if no request can be made of it. `before` is
    None if it is not known.
    """

    operation: Operation
    fields: Mapping[str, Any] | None
    record_id: str | None
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send what was intended last. Answered with an `Answer`."""


@dataclass(frozen=True, slots=True)
class ListNewest:
    """A page of the list, last created first: `Page` or `Unread`."""

    page: int


@dataclass(frozen=True, slots=True)
class NewestBefore:
    """Read the first page of the list, last created first, as it was before the run's
    first create: one request for all rows of a run. Answered with `Page` or `Unread`.
    """


@dataclass(frozen=True, slots=True)
class ReadOne:
    """Read a detail. Answered with `Found`, `Gone` or `Unread`."""

    id: str


@dataclass(frozen=True, slots=True)
class ClaimedRecords:
    """Which of these records are certainly not this row's. Answered with ids."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenCreates:
    """What other creates of the same kind are open, whose records may have come or may
    yet come. Answered with the fields that each of them has sent.
    """


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Go on no earlier than a time of our own clock. Answered with None."""

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
"""A generator of commands that ends with a `T`."""


# -- Answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InvalidBody:
    """The values cannot be put into a request."""

    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """2xx with a readable record, which may show fewer fields than a detail (API 4.7)."""

    record: Resource


@dataclass(frozen=True, slots=True)
class Declined:
    """Refused in the API's own words: nothing was applied, no repeat helps.

    `is_validation` says that it was a 422, `is_missing` a 404. `errors` are its messages by field.
    """

    code: str
    message: str
    errors: Mapping[str, tuple[str, ...]]
    is_validation: bool = False
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Unsent:
    """Nothing was applied for certain. `is_limited`: by a 429."""

    reason: str
    is_limited: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """Sent, and its fate unknown. `answer` is the answer without the API's words, if one came."""

    reason: str
    answer: str | None = None


Answer = Accepted | Declined | Unsent | Lost


_UNSENT = (Denied, Unreachable, RateLimited, Stopped, Misused, WarehouseError)
"""Errors of a write that prove that nothing was applied and say nothing against the row: the key,
the network, a limit, or our own files are in the way.
"""


def answer_of(error: ConnectorError) -> Answer:
    """Convert the error of a write to an answer about its effect.

    Only what is known to prove something proves it: any other error leaves the fate unknown.
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
