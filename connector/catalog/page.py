"""Page of a list: its items, and what it says of the list's end (API 4.1).

All rows of a page are of one instant; its `total` may be of another. On a page that is not full,
the rows themselves show where the list ends, so that the total need not be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

PER_PAGE_MAX = 100
"""The most list items that one request may ask for (API 8.1)."""

LATENESS_SECONDS = 120.0
"""How late a list may show a change, until a stream has shown a later one."""

LATENESS_SECONDS_MAX = 3600.0
"""The longest lateness that is learned: a verification pass finds changes that are later."""

LATENESS_UNTIMED_SECONDS = 3600.0
"""The lateness while the server's clock is unknown, because its answers have no `Date`."""

Order = Literal["asc", "desc"]

I_co = TypeVar("I_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[I_co]):
    """One page of a list (API 4.1).

    `items` are list items: a field that lists do not show raises `AttributeError`. `per_page` is
    what the server applied. `served_at` is the server's clock, None if the answer has no `Date`;
    `heard_at` is our own clock when the answer came, None if it was not noted.
    """

    items: tuple[I_co, ...]
    page: int
    per_page: int
    total: int
    total_pages: int
    served_at: datetime | None
    round_trip_seconds: float
    heard_at: datetime | None = None

    @property
    def dated_at(self) -> datetime:
        """Moment of the page, by the server's clock, or else by ours."""
        moment = self.served_at or self.heard_at
        assert moment is not None, "nobody noted when the page came"
        return moment

    @property
    def ahead_seconds(self) -> float | None:
        """Seconds by which the server is ahead of our clock; None if one of them is not known."""
        if self.heard_at is None or self.served_at is None:
            return None
        return (self.served_at - self.heard_at).total_seconds()

    @property
    def is_full(self) -> bool:
        """Whether the page is full, so that it does not show the list's end."""
        return len(self.items) >= self.per_page

    @property
    def is_last(self) -> bool:
        """Whether no page follows, by the rows and the total of this answer."""
        return self.ends_list(0)

    def ends_list(self, offset: int) -> bool:
        """Whether no page follows, in a list that has `offset` more rows than its total."""
        return not self.is_full or self.page * self.per_page >= self.length(offset)

    def length(self, offset: int) -> int:
        """Records of the list, by its rows if it ends here, else by its total and `offset`.

        An offset that leaves fewer records than the pages show is out of date, and does not count.
        """
        if not self.is_full:
            return self.count
        length = self.total + offset
        return length if length >= self.page * self.per_page else self.total

    @property
    def count(self) -> int:
        """Records of the list: by its rows if it ends on this page, else by the total."""
        if self.is_full:
            return self.total
        return (self.page - 1) * self.per_page + len(self.items)

    @property
    def offset(self) -> int | None:
        """Rows of the list beyond its total; None if the page does not show them.

        A full page does not show the end, and an empty one not how many rows come before it.
        """
        if self.is_full or (not self.items and self.page > 1):
            return None
        return self.count - self.total
