"""Page of a list: its items and its position in the list (API 4.1).

All rows of a page belong to one point in time; `total` may belong to another. On a page that is not
full, the rows show where the list ends, so `total` is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

PER_PAGE_MAX = 100
"""Maximum number of list items that one request can return (API 8.1)."""

LATENESS_SECONDS = 120.0
"""Delay with which a list may show a change, until a stream shows a longer one."""

LATENESS_SECONDS_MAX = 3600.0
"""Longest lateness that is learned; a verification pass finds later changes."""

LATENESS_UNTIMED_SECONDS = 3600.0
"""Lateness used while the server clock is unknown, because responses have no `Date`."""

Order = Literal["asc", "desc"]

I_co = TypeVar("I_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[I_co]):
    """One page of a list (API 4.1).

    Attributes:
        items: List items. A field that lists do not show raises `AttributeError`.
        per_page: Page size that the server applied.
        served_at: Server clock; None if the response has no `Date`.
        received_at: Local clock when the response arrived; None if it was not recorded.
    """

    items: tuple[I_co, ...]
    page: int
    per_page: int
    total: int
    total_pages: int
    served_at: datetime | None
    round_trip_seconds: float
    received_at: datetime | None = None

    @property
    def dated_at(self) -> datetime:
        """Time of the page by the server clock, or by the local clock if that is unknown."""
        moment = self.served_at or self.received_at
        assert moment is not None, "nobody noted when the page came"
        return moment

    @property
    def ahead_seconds(self) -> float | None:
        """Seconds by which the server clock is ahead; None if one of the clocks is unknown."""
        if self.received_at is None or self.served_at is None:
            return None
        return (self.served_at - self.received_at).total_seconds()

    @property
    def is_full(self) -> bool:
        """Return True if the page is full, so that it does not show where the list ends."""
        return len(self.items) >= self.per_page

    @property
    def is_last(self) -> bool:
        """Return True if no page follows, by the rows and the total of this response."""
        return self.ends_list(0)

    def ends_list(self, offset: int) -> bool:
        """Return True if no page follows in a list that has `offset` more rows than its total."""
        return not self.is_full or self.page * self.per_page >= self.length(offset)

    def length(self, offset: int) -> int:
        """Return the number of records in the list: by its rows if it ends here, else by its total
        plus `offset`.

        An offset that results in fewer records than the pages show is outdated and ignored.
        """
        if not self.is_full:
            return self.count
        length = self.total + offset
        return length if length >= self.page * self.per_page else self.total

    @property
    def count(self) -> int:
        """Return the number of records: by the rows if the list ends here, else by the total."""
        if self.is_full:
            return self.total
        return (self.page - 1) * self.per_page + len(self.items)

    @property
    def offset(self) -> int | None:
        """Rows of the list beyond its total; None if the page does not show them.

        A full page does not show the end of the list. An empty page does not show how many rows
        precede it.
        """
        if self.is_full or (not self.items and self.page > 1):
            return None
        return self.count - self.total
