"""Commands of a pull, as plain values.

A pull is a generator. It decides what it needs and yields a command; the executor performs the
command and sends the result back:

    page = yield from ListPage(1, "updated_at", "desc")     # a step
    command = steps.send(result)                            # the executor

An error that ends the pull is thrown into the steps, which may commit before they end. The same
steps run over HTTP and DuckDB (`pulls/pull_executor.py`), and in a simulator. The type of a
command's result is its type parameter.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from connector.catalog.page import Order, Page
from connector.catalog.resource import Resource
from connector.warehouse.bookmark import Bookmark

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Purpose = Literal["pull", "sweep", "scrub"]

BATCH_RECORDS_MAX = 1_000
BATCH_SECONDS_MAX = 3.0
"""Maximum size of one commit, which limits the requests that a crash repeats."""

UNREAD_MAX, UNREAD_AMONG = 5, 100
"""A resource fails for the run if more than 5 of its last 100 details failed."""


class EngineCommand(Generic[T_co]):
    """Command that an executor performs, with a result of type `T`."""

    __slots__ = ()

    def __iter__(self) -> Generator[EngineCommand[Any], Any, T_co]:
        answer: T_co = yield self
        return answer


class Query(EngineCommand[T_co]):
    """Query of the stream's loaded rows."""

    __slots__ = ()


Steps = Generator[EngineCommand[Any], Any, T]
"""Steps of a pull: a generator that yields commands and returns a `T`."""

# -- The API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundDetail:
    """Detail of a record, as of `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class DeletionProof:
    """Proof that a record is deleted: a 404 with the API's own error body."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class UnreadableDetail:
    """Detail that could not be read, which proves nothing.

    `reason` is an error code, and `message` a part of a sentence without personal data.
    """

    reason: str
    message: str = ""


Outcome = FoundDetail | DeletionProof | UnreadableDetail


@dataclass(frozen=True, slots=True)
class ListPage(EngineCommand[Page[Resource]]):
    """Read one page of the list. An error of the whole resource ends the steps."""

    page: int
    sort: str | None
    order: Order


@dataclass(frozen=True, slots=True)
class ReadRecords(EngineCommand[dict[str, Outcome]]):
    """Read details concurrently, at least one; the executor may return fewer."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpendFor(EngineCommand[None]):
    """Count requests from now on under a purpose."""

    purpose: Purpose


# -- Loaded rows -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LandedRow:
    """State of a loaded row; `read_at` is the server time of its last detail."""

    updated_at: datetime | None
    read_at: datetime | None = None
    is_queued: bool = False
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class LandedRows(Query[dict[str, LandedRow]]):
    """Loaded rows with these ids; the optional `created` makes the search faster."""

    ids: tuple[str, ...]
    created: tuple[datetime | None, ...] = ()


@dataclass(frozen=True, slots=True)
class DifferingFields(Query[dict[str, tuple[str, ...]]]):
    """Names of the fields in which responses differ from loaded details, by id."""

    answers: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class CreatedBetween(Query[frozenset[str]]):
    """Live ids whose `created_at` is strictly between two times (None: no bound)."""

    after: datetime | None
    before: datetime | None


@dataclass(frozen=True, slots=True)
class UpdatedBetween(Query[frozenset[str]]):
    """Live ids, not queued, whose `updated_at` is strictly between two times."""

    after: datetime
    before: datetime


@dataclass(frozen=True, slots=True)
class UndatedIds(Query[tuple[str, ...]]):
    """Ids of live rows whose detail has no `updated_at`, or one after `after`."""

    after: datetime


@dataclass(frozen=True, slots=True)
class LeastRecentlyRead(Query[tuple[str, ...]]):
    """At most `count` live ids, not queued, whose details were read longest ago."""

    count: int


@dataclass(frozen=True, slots=True)
class NextQueued(Query[tuple[str, ...]]):
    """At most `count` queued ids, newest first, except `skip`."""

    count: int
    skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CountLive(Query[int]):
    """Number of live rows, optionally created before a time."""

    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class TiedPages(Query[frozenset[int]]):
    """Pages of live rows in order of creation on which all rows have one `created_at`."""

    per_page: int


@dataclass(frozen=True, slots=True)
class CountQueued(Query[int]):
    """Number of queued ids."""


@dataclass(frozen=True, slots=True)
class Event:
    """Event to be shown later; `detail` contains no personal data."""

    kind: str
    detail: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Commit(EngineCommand[None]):
    """Commit all of this in one transaction.

    Attributes:
        items: List items. They are inserted and queued unless there is a row already.
        records: Records that replace their rows and leave the queue.
        gone: Records that become tombstones and leave the queue.
        enqueue: Ids to queue, each with the reason.
        unread: Errors of queued ids.
        bookmark: New bookmark of the stream, if any.
        ends_stream: True to remove the bookmark of the stream.
    """

    items: tuple[Resource, ...] = ()
    records: tuple[FoundDetail, ...] = ()
    gone: Mapping[str, DeletionProof] = field(default_factory=dict)
    enqueue: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, UnreadableDetail] = field(default_factory=dict)
    bookmark: Bookmark | None = None
    events: tuple[Event, ...] = ()
    ends_stream: bool = False
