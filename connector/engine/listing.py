"""The pages of one list, read one after another, as a pass sees them."""

from __future__ import annotations

from datetime import datetime, timedelta

from connector.engine.ask import PageSeen
from connector.resource import Resource

SECOND = timedelta(seconds=1)
"""What `Date` is cut to."""


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

    @property
    def is_complete(self) -> bool:
        """Whether the list has no further page."""
        return self.pages[-1].is_last


def opening(page: PageSeen) -> datetime:
    """T0 by a pass's first list: the server's time before it, cut to the second and never later."""
    before = page.served_at - timedelta(seconds=page.round_trip_seconds) - SECOND
    return before.replace(microsecond=0)
