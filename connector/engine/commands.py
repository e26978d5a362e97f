"""Commands: all that a pull asks of the world, as plain values.

A pull is a generator. It decides what is needed and yields a command; its driver performs the
command, and sends back what came of it:

    page = yield from ListPage(1, "updated_at", "desc")     # the engine
    command = steps.send(answer)                            # its driver

An error that ends the pull is thrown into the engine, which may commit first.

So one engine runs over HTTP and DuckDB (`pulls/driver.py`), and over a store, a clock and faults
of its own (the simulator). What a command is answered with is the type that it is declared with.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from connector.catalog.page import Order, Page
from connector.catalog.resource import Resource
from connector.engine.bookmark import Bookmark

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Purpose = Literal["pull", "sweep", "scrub"]

BATCH_RECORDS_MAX = 1_000
BATCH_SECONDS_MAX = 3.0
"""Largest batch of one commit, which bounds what a crash costs of paid requests."""

UNREAD_MAX, UNREAD_AMONG = 5, 100
"""Details that may fail among so many before a resource is given up for the run."""


class EngineCommand(Generic[T_co]):
    """Something to be performed by whoever drives an engine, and answered with a `T`."""

    __slots__ = ()

    def __iter__(self) -> Generator[EngineCommand[Any], Any, T_co]:
        answer: T_co = yield self
        return answer


class Query(EngineCommand[T_co]):
    """A question that the landed rows of the stream answer."""

    __slots__ = ()


Steps = Generator[EngineCommand[Any], Any, T]
"""An engine at work: it yields commands, and ends with a `T`."""

# -- The API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """The detail of a record, as of `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """Evidence that a record is gone: the API's own error body says so."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class Unread:
    """The detail could not be read; `reason` is an error's code. It proves nothing."""

    reason: str


Outcome = Found | Gone | Unread


@dataclass(frozen=True, slots=True)
class ListPage(EngineCommand[Page[Resource]]):
    """Read one page of the list. An error of the whole resource ends the engine."""

    page: int
    sort: str | None
    order: Order


@dataclass(frozen=True, slots=True)
class ReadRecords(EngineCommand[dict[str, Outcome]]):
    """Read details, concurrently: as many as there is time for, and one at least."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpendFor(EngineCommand[None]):
    """Count the requests from here on towards a purpose."""

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
class Recall(Query[dict[str, LandedRow]]):
    """What is landed under these ids; found sooner with when they were `created`."""

    ids: tuple[str, ...]
    created: tuple[datetime | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Differing(Query[dict[str, tuple[str, ...]]]):
    """Names of fields in which answers differ from landed details, by id."""

    answers: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Between(Query[frozenset[str]]):
    """Live ids whose `created_at` is strictly between moments (None: no bound)."""

    after: datetime | None
    before: datetime | None


@dataclass(frozen=True, slots=True)
class BetweenUpdated(Query[frozenset[str]]):
    """Live ids, not queued, whose `updated_at` is strictly between two moments."""

    after: datetime
    before: datetime


@dataclass(frozen=True, slots=True)
class Undated(Query[tuple[str, ...]]):
    """Ids of live, read rows without an `updated_at`, or with one after a moment."""

    after: datetime


@dataclass(frozen=True, slots=True)
class LeastRecent(Query[tuple[str, ...]]):
    """At most `count` live ids, not queued, whose details were read longest ago."""

    count: int


@dataclass(frozen=True, slots=True)
class NextQueued(Query[tuple[str, ...]]):
    """At most `count` ids that wait to be read, newest first, leaving out `skip`."""

    count: int
    skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CountLive(Query[int]):
    """Number of rows not known to be deleted, created before a moment if given."""

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
    """Event to be looked up later; `detail` holds no personal data."""

    kind: str
    detail: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Commit(EngineCommand[None]):
    """Everything here in one transaction, or nothing.

    `items` land as rows that were only listed, unless the row is there; `records` replace the
    rows and leave the queue; `gone` become tombstones and leave the queue; `enqueue` maps ids to
    reasons; `bookmark`, where given, replaces the stream's.
    """

    items: tuple[Resource, ...] = ()
    records: tuple[Found, ...] = ()
    gone: Mapping[str, Gone] = field(default_factory=dict)
    enqueue: Mapping[str, str] = field(default_factory=dict)
    bookmark: Bookmark | None = None
    events: tuple[Event, ...] = ()
