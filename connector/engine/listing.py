"""The pages of one list, read one after another, as a pass sees them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from connector.engine.ask import PageSeen
from connector.engine.bookmark import Bookmark, floor_of
from connector.resource import Resource

SECOND = timedelta(seconds=1)
"""What `Date` is cut to."""

CLOCK_SLACK_SECONDS = 5.0
"""By how much two clocks may drift apart between two lists without one of them having been set."""


class Listing:
    """One attempt's pages: the distinct items in listed order, each with its rank and the step at
    which it was last shown.
    """

    def __init__(self) -> None:
        self.pages: list[PageSeen] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.last_step = 0
        self.has_shifted = False

    def add(self, page: PageSeen, step: int) -> tuple[Resource, ...]:
        """Take a page in; returns the items that this listing had not shown before."""
        if self.pages:
            last = self.pages[-1]
            self.has_shifted |= page.total < last.total or page.per_page != last.per_page
        self.pages.append(page)
        self.last_step = step
        fresh = []
        for index, item in enumerate(page.items):
            if item.id not in self.rank:
                fresh.append(item)
                self.order.append(item)
            # The last showing counts: a record that slid onto a later page stands at its new rank.
            self.rank[item.id] = (page.page - 1) * page.per_page + index
            self.step[item.id] = step
        return tuple(fresh)

    def is_complete(self, offset: int) -> bool:
        """Whether the list has no further page; it has `offset` more rows than its total says."""
        return self.pages[-1].ends_list(offset)

    def length(self, offset: int) -> int:
        """How many rows the list has: those of its last page count, and not the total, where the
        list certainly ends on it.
        """
        last = self.pages[-1]
        return last.total + offset if last.is_full else last.count


def opening(page: PageSeen) -> datetime:
    """T0 by a pass's first list: the server's time before it, cut to the second and never later."""
    before = page.served_at - timedelta(seconds=page.round_trip_seconds) - SECOND
    return before.replace(microsecond=0)


def measured(page: PageSeen, bookmark: Bookmark) -> Bookmark:
    """The bookmark after a page that may show where the list ends, beside what its total says.

    That both agree is a measure. That they do not may as well be a total of another instant: then
    the offset is unknown, until every page was compared.
    """
    bookmark = clocked(page, bookmark)
    if page.offset is None or page.offset == bookmark.total_offset:
        return bookmark
    agrees = page.offset == 0 and bookmark.total_offset is None
    return replace(bookmark, total_offset=0 if agrees else None)


def clocked(page: PageSeen, bookmark: Bookmark) -> Bookmark:
    """The bookmark with a lower floor where the server's clock was set back, by our own clock.

    What was written since R was set may bear moments from before R, by as much as it was set back;
    so the next walk reaches down there.
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
