"""Bookmark: up to when a stream is proven, and how the server's clock behaves.

    R   proven_at          server's time up to which everything is landed, or queued to be read
    L   lateness_seconds   a write that becomes visible at t is dated after t - L
    W   floor_of, R - L    everything dated at or before it is landed as it is, or queued
    T0  opened_at          server's time before the first list of a pass under way; the next R

R is the server's time before a list, and never a value taken from data: a wrong clock may have
dated a record, and two records may share a date. A bookmark is committed only together with the
rows that it covers.
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
"""Drift of two clocks between two lists; by more, one of them has been set."""

SECOND = timedelta(seconds=1)
"""Precision of `Date`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Stream of one bookmark: a resource, or one content type's items (`parent`)."""

    resource: Declaration
    parent: str | None = None

    @property
    def name(self) -> str:
        """The resource's name, with the parent's id where there is one."""
        return f"{self.resource.name}/{self.parent}" if self.parent else self.resource.name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Bookmark of one stream.

    A first load under way: `load_page` counts the pages that its sweep has landed; `verify_page`
    is not None while the second look is due.
    The list: `is_sorted` is false once the server was seen not to sort; `alarms` counts the scans
    in a row that found it out of order; `listed` is its total when the guard last accepted it;
    `total_offset` is by how many rows it exceeds that total (None: not measured, so that the total
    proves nothing). `scrubbed_to` is the `created_at` up to which the current round of list
    verification has come, None at its beginning.
    The last proven scan: `closed_by` is the clean record that ended it, and `closed_floor` the
    floor of that scan, or of an earlier one that ended less than L before. A floor without a record
    means that the scan is not trusted any more: the next one reaches down to that floor.

    `clock_ahead_seconds` is how far the server's clock was ahead of ours when R was set, or when it
    was last set back; `late_seconds_seen` is the greatest lateness that a write ever had.
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
    """W: everything dated at or before it is landed, or queued."""
    assert bookmark.proven_at is not None
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    if bookmark.closed_by is None and bookmark.closed_floor is not None:
        return min(floor, bookmark.closed_floor)
    return floor


def future_of(now: datetime, bookmark: Bookmark) -> datetime:
    """Time after which a date counts as in the future; clocks may be a little ahead."""
    return now + timedelta(seconds=bookmark.lateness_seconds + LATENESS_UNTIMED_SECONDS)


# -- Updates by answers --------------------------------------------------------------------------


def pass_start(page: Page[Resource]) -> datetime:
    """T0 of a pass by its first list: the server's time before it, cut to the second."""
    before = page.dated_at - timedelta(seconds=page.round_trip_seconds) - SECOND
    return before.replace(microsecond=0)


def with_pass_start(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Bookmark after a page of a pass: with T0, and with a larger L if it has no date."""
    if page.served_at is None:
        lateness = max(bookmark.lateness_seconds, LATENESS_UNTIMED_SECONDS)
        bookmark = replace(bookmark, lateness_seconds=lateness)
    return bookmark if bookmark.opened_at else replace(bookmark, opened_at=pass_start(page))


def with_lateness(bookmark: Bookmark, seconds: float) -> Bookmark:
    """Bookmark with a lateness that covers a write `seconds` late, within the bound.

    The floor moves down with it: a lower floor claims less, and so it is never wrong.
    """
    lateness = max(bookmark.lateness_seconds, min(LATENESS_SECONDS_MAX, 2 * seconds))
    seen = max(bookmark.late_seconds_seen, seconds)
    return replace(bookmark, lateness_seconds=lateness, late_seconds_seen=seen)


def with_clock_change(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Bookmark with a lower floor if the server's clock was set back, by our clock.

    Records written since then may have dates before R, by as much as it was set back. So the next
    scan reaches down that far.
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


def with_measured_total(page: Page[Resource], bookmark: Bookmark) -> Bookmark:
    """Bookmark after a page that may show both the list's end and its total.

    If they agree, the offset is 0. If not, the total may be of another instant: the offset is
    unknown until every page was compared.
    """
    bookmark = with_clock_change(page, bookmark)
    if page.offset is None or page.offset == bookmark.total_offset:
        return bookmark
    agrees = page.offset == 0 and bookmark.total_offset is None
    return replace(bookmark, total_offset=0 if agrees else None)
