"""Values that a pull, the work file and a push exchange about one stream.

A stream is a resource, or the items of one content type. Its bookmark says up to when the local
copy is verified, and a commit is everything that changes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from connector.catalog.resource import (
    LATENESS_SECONDS,
    LATENESS_SECONDS_MAX,
    LATENESS_UNTIMED_SECONDS,
    Declaration,
    Page,
    Resource,
)

# -- Bookmark -------------------------------------------------------------------------------------
# Bookmark of a stream: the time up to which it is verified, and the state of the server clock.
#
#     R   proven_at          server time up to which everything is loaded or queued to be read
#     L   lateness_seconds   a write that becomes visible at t is dated after t - L
#     W   floor_of, R - L    records dated at or before it are loaded unchanged, or queued
#     T0  opened_at          server time before the first list of a running pass; the next R
#
# R is the server time before a list and never a value from the data: a wrong clock may have dated a
# record, and two records may have the same date. A bookmark is only committed together with the
# rows that it covers.


CLOCK_SLACK_SECONDS = 5.0
"""Maximum drift of two clocks between two lists; a larger one means that a clock was set."""

SECOND = timedelta(seconds=1)
"""Precision of `Date`, in seconds."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Part of a pull with one bookmark: a resource, or the items of one content type (`parent`)."""

    resource: Declaration
    parent: str | None = None

    @property
    def name(self) -> str:
        """Name of the resource, with the id of the parent if there is one."""
        return f"{self.resource.name}/{self.parent}" if self.parent else self.resource.name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Progress of the pulls of one stream. The comment above defines R, L, W and T0.

    Attributes:
        proven_at: R, the server time up to which everything is loaded or queued.
        lateness_seconds: L, the assumed delay before a write becomes visible.
        opened_at: T0 of the pass that is running.
        load_page: Number of pages that the first load has read.
        verify_page: Page of its second reading; None if none is due.
        scrubbed_to: `created_at` up to which the current round of re-verification has compared;
            None at its beginning.
        closed_by: Id of the unchanged record that ended the last verified scan.
        closed_floor: W of that scan, or of an earlier one that ended less than L before. Without
            `closed_by` the scan is not trusted, and the next one reaches down to this time.
        clock_ahead_seconds: Seconds by which the server clock was ahead of the local clock when R
            was set, or when the server clock was last set back.
        alarms: Number of consecutive scans that found the list out of order.
        late_seconds_seen: Longest observed delay before a write became visible.
        unsorted_at: Server time at which the server did not sort the list; None if it sorts.
        deletions: Number of deletions since the stream was last verified.
        is_total_exact: True if the last page that showed the end of the list agreed with its total.
    """

    proven_at: datetime | None = None
    lateness_seconds: float = LATENESS_SECONDS
    opened_at: datetime | None = None
    load_page: int | None = None
    verify_page: int | None = None
    scrubbed_to: datetime | None = None
    closed_by: str | None = None
    closed_floor: datetime | None = None
    clock_ahead_seconds: float | None = None
    alarms: int = 0
    late_seconds_seen: float = 0.0
    unsorted_at: datetime | None = None
    deletions: int = 0
    is_total_exact: bool = False


def floor_of(bookmark: Bookmark) -> datetime:
    """Return W, the time up to which all records, by their date, are loaded or queued."""
    assert bookmark.proven_at is not None
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    if bookmark.closed_by is None and bookmark.closed_floor is not None:
        return min(floor, bookmark.closed_floor)
    return floor


def future_limit(now: datetime, bookmark: Bookmark) -> datetime:
    """Return the latest date that is not in the future; a later date in a record is wrong."""
    return now + timedelta(seconds=bookmark.lateness_seconds + LATENESS_UNTIMED_SECONDS)


# -- Updates by responses --------------------------------------------------------------------------


def with_pass_start(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Return the bookmark after a page of a pass, with T0 if it is the first page.

    T0 is the server time before the request, truncated to the second. Without a server time in the
    response, L is at least `LATENESS_UNTIMED_SECONDS`.
    """
    if page.served_at is None:
        lateness = max(bookmark.lateness_seconds, LATENESS_UNTIMED_SECONDS)
        bookmark = replace(bookmark, lateness_seconds=lateness)
    if bookmark.opened_at is not None:
        return bookmark
    before = page.timestamp - timedelta(seconds=page.round_trip_seconds) - SECOND
    return replace(bookmark, opened_at=before.replace(microsecond=0))


def with_lateness(bookmark: Bookmark, seconds: float) -> Bookmark:
    """Return the bookmark after a write that became visible `seconds` late.

    L becomes at least twice `seconds`, up to its limit. W moves back as well, which is always safe.
    """
    lateness = max(bookmark.lateness_seconds, min(LATENESS_SECONDS_MAX, 2 * seconds))
    late_seconds = max(bookmark.late_seconds_seen, seconds)
    return replace(bookmark, lateness_seconds=lateness, late_seconds_seen=late_seconds)


def with_clock_change(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Return the bookmark with an earlier W if the server clock was set back since the last page.

    Records written since then may be dated before R by the same amount, so the next scan reaches
    back that far.
    """
    before, ahead = bookmark.clock_ahead_seconds, page.server_ahead_seconds
    if ahead is None:
        return bookmark
    if before is None or ahead - before > CLOCK_SLACK_SECONDS:
        # Remembered when it is set forward, so that setting it right again is seen as well.
        return replace(bookmark, clock_ahead_seconds=ahead)
    if before - ahead <= CLOCK_SLACK_SECONDS:
        return bookmark
    distrusted = replace(bookmark, closed_by=None, clock_ahead_seconds=ahead)
    since = replace(distrusted, proven_at=bookmark.proven_at or bookmark.opened_at)
    floor = floor_of(since) - timedelta(seconds=before - ahead)
    return replace(distrusted, closed_floor=floor)


# -- Responses -------------------------------------------------------------------------------------


Purpose = Literal["pull", "sweep", "scrub"]

BATCH_RECORDS_MAX = 1_000
BATCH_SECONDS_MAX = 3.0
"""Maximum size of one commit, which limits the requests that a crash repeats."""

UNREAD_MAX, UNREAD_AMONG = 5, 100
"""A resource fails for the run if more than 5 of its last 100 details failed."""


# -- The API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundDetail:
    """Detail of a record as it was at the server time `served_at`."""

    record: Resource
    served_at: datetime


@dataclass(frozen=True, slots=True)
class DeletionProof:
    """Proof that a record is deleted: a 404 with the API's own error body, at a server time."""

    served_at: datetime


@dataclass(frozen=True, slots=True)
class UnreadableDetail:
    """Detail that could not be read, so the record may exist or not.

    `reason` is an error code, and `message` a part of a sentence without personal data.
    """

    reason: str
    message: str = ""


Outcome = FoundDetail | DeletionProof | UnreadableDetail


# -- Loaded rows -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LandedRow:
    """State of a loaded row. `read_at` is the server time of its detail, if it was read."""

    updated_at: datetime | None
    read_at: datetime | None = None
    is_queued: bool = False
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Event to be stored and shown. `detail` contains no personal data."""

    kind: str
    detail: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes of one stream, to be written in one transaction.

    Attributes:
        items: List items. Items without a row are inserted and queued.
        records: Details that replace their rows and leave the queue.
        gone: Records to mark as deleted and to remove from the queue.
        enqueue: Ids to queue, each with the reason.
        unread: Errors of queued ids.
        bookmark: New bookmark of the stream; None to keep the old one.
        ends_stream: True to remove the bookmark because the stream no longer exists.
    """

    items: tuple[Resource, ...] = ()
    records: tuple[FoundDetail, ...] = ()
    gone: Mapping[str, DeletionProof] = field(default_factory=dict)
    enqueue: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, UnreadableDetail] = field(default_factory=dict)
    bookmark: Bookmark | None = None
    events: tuple[Event, ...] = ()
    ends_stream: bool = False
