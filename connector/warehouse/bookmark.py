"""Bookmark of a stream: the time up to which it is verified, and the state of the server clock.

    R   proven_at          server time up to which everything is loaded or queued to be read
    L   lateness_seconds   a write that becomes visible at t is dated after t - L
    W   floor_of, R - L    records dated at or before it are loaded unchanged, or queued
    T0  opened_at          server time before the first list of a running pass; the next R

R is the server time before a list and never a value from the data: a wrong clock may have dated a
record, and two records may have the same date. A bookmark is only committed together with the rows
that it covers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from connector.catalog.page import (
    LATENESS_SECONDS,
    LATENESS_SECONDS_MAX,
    LATENESS_UNTIMED_SECONDS,
    Page,
)
from connector.catalog.resource import Declaration, Resource

CLOCK_SLACK_SECONDS = 5.0
"""Maximum drift of two clocks between two lists; a larger one means that a clock was set."""

SECOND = timedelta(seconds=1)
"""Precision of `Date`, in seconds."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Stream with one bookmark: a resource, or the items of one content type (`parent`)."""

    resource: Declaration
    parent: str | None = None

    @property
    def name(self) -> str:
        """Name of the resource, with the id of the parent if there is one."""
        return f"{self.resource.name}/{self.parent}" if self.parent else self.resource.name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Bookmark of one stream.

    Attributes:
        load_page: Number of pages that the sweep of the first load has loaded.
        verify_page: Page of the second sweep; None if no second sweep is due.
        is_sorted: False once the server did not sort the list.
        alarms: Number of consecutive scans that found the list out of order.
        listed: Total of the list when the guard last accepted it.
        total_offset: Number of rows by which the list exceeds its total; None if it was not
            measured, so that the total proves nothing.
        scrubbed_to: `created_at` up to which the current round of list verification has compared;
            None at its beginning.
        closed_by: Id of the clean record that ended the last verified scan.
        closed_floor: Floor of that scan, or of an earlier one that ended less than L before. A
            floor without a record means that the scan is not trusted: the next one reaches down to
            it.
        clock_ahead_seconds: Seconds by which the server clock was ahead of the local clock when R
            was set, or when the server clock was last set back.
        late_seconds_seen: Greatest lateness of any write so far.
    """

    proven_at: datetime | None = None
    lateness_seconds: float = LATENESS_SECONDS
    opened_at: datetime | None = None
    load_page: int | None = None
    verify_page: int | None = None
    is_sorted: bool = True
    scrubbed_to: datetime | None = None
    total_offset: int | None = None
    closed_by: str | None = None
    closed_floor: datetime | None = None
    clock_ahead_seconds: float | None = None
    alarms: int = 0
    late_seconds_seen: float = 0.0
    listed: int | None = None


def floor_of(bookmark: Bookmark) -> datetime:
    """Return W: records dated at or before it are loaded or queued."""
    assert bookmark.proven_at is not None
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    if bookmark.closed_by is None and bookmark.closed_floor is not None:
        return min(floor, bookmark.closed_floor)
    return floor


def future_of(now: datetime, bookmark: Bookmark) -> datetime:
    """Return the time after which a date is in the future; clocks may be slightly ahead."""
    return now + timedelta(seconds=bookmark.lateness_seconds + LATENESS_UNTIMED_SECONDS)


# -- Updates by responses --------------------------------------------------------------------------


def pass_start(page: Page[Resource]) -> datetime:
    """Return T0 of a pass by its first list: the server time before it, truncated to the second."""
    before = page.dated_at - timedelta(seconds=page.round_trip_seconds) - SECOND
    return before.replace(microsecond=0)


def with_pass_start(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Return the bookmark after a page of a pass: with T0, and with a larger L without a date."""
    if page.served_at is None:
        lateness = max(bookmark.lateness_seconds, LATENESS_UNTIMED_SECONDS)
        bookmark = replace(bookmark, lateness_seconds=lateness)
    return bookmark if bookmark.opened_at else replace(bookmark, opened_at=pass_start(page))


def with_lateness(bookmark: Bookmark, seconds: float) -> Bookmark:
    """Return the bookmark with a lateness that covers a write `seconds` late, up to the limit.

    The floor moves down as well, which is always safe.
    """
    lateness = max(bookmark.lateness_seconds, min(LATENESS_SECONDS_MAX, 2 * seconds))
    late_seconds = max(bookmark.late_seconds_seen, seconds)
    return replace(bookmark, lateness_seconds=lateness, late_seconds_seen=late_seconds)


def with_clock_change(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Return the bookmark with a lower floor if the server clock was set back.

    Records written since then may be dated before R by the same amount, so the next scan reaches
    down that far.
    """
    before, ahead = bookmark.clock_ahead_seconds, page.ahead_seconds
    if ahead is None:
        return bookmark
    if before is None:
        return replace(bookmark, clock_ahead_seconds=ahead)
    if before - ahead <= CLOCK_SLACK_SECONDS:
        return bookmark
    distrusted = replace(bookmark, closed_by=None, clock_ahead_seconds=ahead)
    since = replace(distrusted, proven_at=bookmark.proven_at or bookmark.opened_at)
    floor = floor_of(since) - timedelta(seconds=before - ahead)
    return replace(distrusted, closed_floor=floor)


def with_total_offset(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Return the bookmark after a page that may show both the list's end and its total.

    If they agree, the offset is 0. If not, the total may belong to another time, so the offset is
    unknown until every page was compared.
    """
    bookmark = with_clock_change(page, bookmark)
    if page.offset is None or page.offset == bookmark.total_offset:
        return bookmark
    agrees = page.offset == 0 and bookmark.total_offset is None
    return replace(bookmark, total_offset=0 if agrees else None)
