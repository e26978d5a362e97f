"""What a pull may ask of the world, and what it is answered. Plain values, and nothing that acts.

A pull is a generator: it yields one ask after another and is sent the answer to each. Whoever
drives it performs the asks, over HTTP and DuckDB (the driver) or against a store and a clock of
its own (the simulator). The typed functions at the end are the only way in which the engines ask.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, TypeVar

from connector.catalog.resource import Resource
from connector.engine.bookmark import Bookmark

PER_PAGE = 100
"""List items asked for at once: the API's maximum (API 8.1)."""

LATENESS_UNTIMED_SECONDS = 3600.0
"""L while the server's clock is unknown, because its answers carry no `Date`."""

Order = Literal["asc", "desc"]
Purpose = Literal["pull", "sweep", "scrub"]


@dataclass(frozen=True, slots=True)
class ListPage:
    """Read one page of the list. Answered with `PageSeen`; errors of the whole resource are
    thrown.
    """

    page: int
    sort: str | None
    order: Order


@dataclass(frozen=True, slots=True)
class PageSeen:
    """One page as listed: one instant for its rows; its `total` may come from another (API 4.1).

    `served_at` is the server's clock, or ours where `is_server_clock` is false. `per_page` is
    what the server says that it applied. `heard_at` is our own clock when the answer came.
    """

    items: tuple[Resource, ...]
    page: int
    per_page: int
    total: int
    served_at: datetime
    round_trip_seconds: float
    is_server_clock: bool = True
    heard_at: datetime | None = None

    @property
    def ahead_seconds(self) -> float | None:
        """How far the server's clock is ahead of ours; None where the answer does not say."""
        if self.heard_at is None or not self.is_server_clock:
            return None
        return (self.served_at - self.heard_at).total_seconds()

    @property
    def is_last(self) -> bool:
        """Whether no page follows, by the rows and by the total of this very answer."""
        return self.ends_list(0)

    def ends_list(self, offset: int) -> bool:
        """Whether no page follows, where the list has so many more rows than its total says."""
        return not self.is_full or self.page * self.per_page >= self.total + offset

    @property
    def count(self) -> int:
        """How many records the list has: by its rows, which are of one instant, where it ends on
        this page; else by the total, which may be of another.
        """
        if not self.is_full:
            return (self.page - 1) * self.per_page + len(self.items)
        return self.total

    @property
    def is_full(self) -> bool:
        """Whether there is no room left on the page, so that it cannot show where the list ends."""
        return len(self.items) >= self.per_page

    @property
    def offset(self) -> int | None:
        """By how many the list's rows exceed its total, where the list ends on this page; None
        where the page is full, or empty, so that it does not show how many come before it.
        """
        if self.is_full or (not self.items and self.page > 1):
            return None
        return self.count - self.total

    @property
    def is_ascending(self) -> bool:
        """Whether the items are in order of creation, as far as they say when they were created."""
        created = [item.created_at for item in self.items if item.created_at is not None]
        return all(earlier <= later for earlier, later in pairwise(created))


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Read details, concurrently. Answered with an outcome for every id: found, gone or unread."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The detail of a record, as of `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """The API itself said, with its own error body, that there is no such record: evidence."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class Unread:
    """The detail could not be read; `reason` is an error's code. It proves nothing."""

    reason: str


Outcome = Found | Gone | Unread


@dataclass(frozen=True, slots=True)
class Recall:
    """What is landed under these ids. Answered with a mapping that lacks the unknown ones."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A landed row: `read_at` is the server's time of its last detail, None while only listed."""

    updated_at: datetime | None
    read_at: datetime | None
    is_queued: bool
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Differing:
    """Which of these answers, list items or details, show other values than the rows whose details
    are landed. Answered with their ids.
    """

    items: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """In which fields these details differ from the rows whose details are landed. Answered with a
    mapping of ids to names, that lacks what is landed as it is and what is not landed.
    """

    records: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """Live landed ids whose `created_at` lies strictly between two moments (None: no bound)."""

    after: datetime | None
    before: datetime | None


@dataclass(frozen=True, slots=True)
class BetweenUpdated:
    """Live landed ids, not queued, whose `updated_at` lies strictly between two moments."""

    after: datetime
    before: datetime


@dataclass(frozen=True, slots=True)
class CountBefore:
    """How many live rows were created before each moment (None: before the end of time). Answered
    with as many integers.
    """

    moments: tuple[datetime | None, ...]


@dataclass(frozen=True, slots=True)
class LeastRecent:
    """Live landed ids, not queued, whose details were read longest ago. Answered with at most
    `count`, the oldest first.
    """

    count: int


@dataclass(frozen=True, slots=True)
class Undated:
    """Live landed ids that were read and have no `updated_at`, or one after the moment: nothing
    dates their changes.
    """

    after: datetime


@dataclass(frozen=True, slots=True)
class NextQueued:
    """The next ids that must be read, newest first, leaving out `skip`. Answered with at most
    `count`.
    """

    count: int
    skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CountLive:
    """How many rows are landed and not known to be deleted. Answered with an integer."""


@dataclass(frozen=True, slots=True)
class CountQueued:
    """How many ids wait to be read. Answered with an integer."""


@dataclass(frozen=True, slots=True)
class TurnTo:
    """What the requests from here on are for, so that their cost is told. Answered with None."""

    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Event:
    """Something a person should be able to look up later; `detail` holds no personal data."""

    kind: str
    detail: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything here in one transaction, or nothing. Answered with None.

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


Look = (
    Recall
    | Differing
    | Differences
    | Between
    | BetweenUpdated
    | CountBefore
    | LeastRecent
    | Undated
    | NextQueued
    | CountLive
    | CountQueued
)
"""What the warehouse alone can answer."""

PullCommand = ListPage | ReadRecords | Look | Commit | TurnTo

T = TypeVar("T")
Steps = Generator[PullCommand, Any, T]
"""A generator that asks and ends with a `T`."""


def list_page(page: int, sort: str | None, order: Order) -> Steps[PageSeen]:
    """One page of the list."""
    seen = yield ListPage(page, sort, order)
    assert isinstance(seen, PageSeen)
    assert seen.page == page, f"asked for page {page}, answered {seen.page}"
    return seen


def read_records(ids: tuple[str, ...]) -> Steps[dict[str, Outcome]]:
    """The outcome of reading each id."""
    outcomes = yield ReadRecords(ids)
    assert outcomes.keys() == set(ids)
    return dict(outcomes)


def recall(items: tuple[Resource, ...]) -> Steps[dict[str, Known]]:
    """What is landed of these list items."""
    return (yield from recall_ids(tuple(str(item.id) for item in items)))


def recall_ids(ids: tuple[str, ...]) -> Steps[dict[str, Known]]:
    """What is landed under these ids."""
    known = yield Recall(ids)
    return dict(known)


def differing(items: tuple[Resource, ...]) -> Steps[frozenset[str]]:
    """The ids whose listed values differ from the landed ones."""
    ids = yield Differing(items)
    return frozenset(ids)


def differences(records: tuple[Resource, ...]) -> Steps[dict[str, tuple[str, ...]]]:
    """The names of the fields in which details differ from what is landed, by id."""
    names = yield Differences(records)
    return dict(names)


def between(after: datetime | None, before: datetime | None) -> Steps[frozenset[str]]:
    """Live landed ids created strictly between the two moments."""
    ids = yield Between(after, before)
    return frozenset(ids)


def updated_between(after: datetime, before: datetime) -> Steps[frozenset[str]]:
    """Live landed ids last written strictly between the two moments."""
    ids = yield BetweenUpdated(after, before)
    return frozenset(ids)


def count_before(moments: tuple[datetime | None, ...]) -> Steps[tuple[int, ...]]:
    """Live rows created before each of the moments."""
    counts = tuple((yield CountBefore(moments)))
    assert len(counts) == len(moments)
    return counts


def least_recent(count: int) -> Steps[tuple[str, ...]]:
    """The live ids whose details were read longest ago."""
    ids = yield LeastRecent(count)
    return tuple(ids)


def undated(after: datetime) -> Steps[tuple[str, ...]]:
    """The live ids without `updated_at`, or with one after the moment."""
    ids = yield Undated(after)
    return tuple(ids)


def next_queued(count: int, skip: frozenset[str]) -> Steps[tuple[str, ...]]:
    """The next ids to read, newest first."""
    ids = yield NextQueued(count, skip)
    return tuple(ids)


def count_live() -> Steps[int]:
    """Rows landed and not deleted."""
    count = yield CountLive()
    assert isinstance(count, int)
    return count


def count_queued() -> Steps[int]:
    """Ids that wait to be read."""
    count = yield CountQueued()
    assert isinstance(count, int)
    return count


def turn_to(purpose: Purpose) -> Steps[None]:
    """Say what the requests from here on are for."""
    yield TurnTo(purpose)


def commit(everything: Commit) -> Steps[None]:
    """Commit, in one transaction."""
    yield everything
