"""Commands: everything that a pull asks its driver to do, as plain values.

A pull is a generator. It decides what is needed and yields a command; its driver performs the
command and sends the answer back:

    page = yield from ListPage(1, "updated_at", "desc")     # a step
    command = steps.send(answer)                            # its driver

An error that ends the pull is thrown into the steps, which may commit before it ends.

So the same steps run over HTTP and DuckDB (`pulls/pull_executor.py`), and in the simulator over a
store, a clock and faults. The type of a command's answer is its type parameter.
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
"""Largest batch of one commit, which bounds what a crash costs of paid requests."""

UNREAD_MAX, UNREAD_AMONG = 5, 100
"""A resource is given up for the run when more than 5 of its last 100 details failed."""


class EngineCommand(Generic[T_co]):
    """Command that an executor performs and answers with a `T`."""

    __slots__ = ()

    def __iter__(self) -> Generator[EngineCommand[Any], Any, T_co]:
        answer: T_co = yield self
        return answer


class Query(EngineCommand[T_co]):
    """Query of the stream's landed rows."""

    __slots__ = ()


Steps = Generator[EngineCommand[Any], Any, T]
"""Generator that yields commands and ends with a `T`: steps of a pull."""

# -- The API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """The detail of a record, as of `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """Proof that a record is deleted: a 404 with the API's own error body."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class Unread:
    """The detail could not be read, which proves nothing.

    `reason` is an error's code, and `message` is a part of a sentence on it, without personal data.
    """

    reason: str
    message: str = ""


Outcome = Found | Gone | Unread


@dataclass(frozen=True, slots=True)
class ListPage(EngineCommand[Page[Resource]]):
    """Read one page of the list. An error of the whole resource ends the steps."""

    page: int
    sort: str | None
    order: Order


@dataclass(frozen=True, slots=True)
class ReadRecords(EngineCommand[dict[str, Outcome]]):
    """Read details concurrently, at least one; the driver may answer with fewer."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpendFor(EngineCommand[None]):
    """Count the requests from now on under a purpose."""

    purpose: Purpose


# -- The landed rows -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LandedRow:
    """State of a landed row; `read_at` is the server's time of its last detail."""

    updated_at: datetime | None
    read_at: datetime | None = None
    is_queued: bool = False
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class LandedRows(Query[dict[str, LandedRow]]):
    """Landed rows of these ids; `created`, where given, makes the search faster."""

    ids: tuple[str, ...]
    created: tuple[datetime | None, ...] = ()


@dataclass(frozen=True, slots=True)
class DifferingFields(Query[dict[str, tuple[str, ...]]]):
    """Names of the fields in which answers differ from landed details, by id."""

    answers: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class CreatedBetween(Query[frozenset[str]]):
    """Live ids whose `created_at` is strictly between times (None: no bound)."""

    after: datetime | None
    before: datetime | None


@dataclass(frozen=True, slots=True)
class UpdatedBetween(Query[frozenset[str]]):
    """Live ids, not queued, whose `updated_at` is strictly between two times."""

    after: datetime
    before: datetime


@dataclass(frozen=True, slots=True)
class UndatedIds(Query[tuple[str, ...]]):
    """Ids of live rows, read before, with no `updated_at` or one after a time."""

    after: datetime


@dataclass(frozen=True, slots=True)
class LeastRecentlyRead(Query[tuple[str, ...]]):
    """At most `count` live ids, not queued, whose details were read longest ago."""

    count: int


@dataclass(frozen=True, slots=True)
class NextQueued(Query[tuple[str, ...]]):
    """At most `count` ids that wait to be read, newest first, leaving out `skip`."""

    count: int
    skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CountLive(Query[int]):
    """Number of rows not known to be deleted, created before a time if given."""

    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class TiedPages(Query[frozenset[int]]):
    """Pages of live rows in order of creation that have one `created_at` throughout."""

    per_page: int


@dataclass(frozen=True, slots=True)
class CountQueued(Query[int]):
    """Number of ids that wait to be read."""


@dataclass(frozen=True, slots=True)
class Event:
    """Event for people to look up later; `detail` has no personal data."""

    kind: str
    detail: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Commit(EngineCommand[None]):
    """Commit everything here in one transaction, or nothing.

    `items` land as rows that were only listed, and are queued, unless a row is there already;
    `records` replace their rows and leave the queue; `gone` become tombstones and leave the queue;
    `enqueue` maps ids to reasons; `unread` are noted at their ids in the queue, if they are queued;
    `bookmark`, where given, replaces the stream's. With `ends_stream` the stream has no bookmark
    any more.
    """

    items: tuple[Resource, ...] = ()
    records: tuple[Found, ...] = ()
    gone: Mapping[str, Gone] = field(default_factory=dict)
    enqueue: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    bookmark: Bookmark | None = None
    events: tuple[Event, ...] = ()
    ends_stream: bool = False
