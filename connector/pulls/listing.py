"""Listings: a list's pages as a pass reads them, and the first clean record.

Pages that are read one after another are not of one instant: between two requests records are
created, changed and deleted, and all records after them move by a place. So a listing knows only in
which order, on which page and by which request its items were shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from connector.catalog.page import Order, Page
from connector.catalog.resource import Resource
from connector.errors import ConnectorError
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    BATCH_SECONDS_MAX,
    LandedRow,
    LandedRows,
    ListPage,
    Steps,
)


def ids_of(items: Iterable[Resource]) -> tuple[str, ...]:
    """The ids of records or list items."""
    return tuple(str(item.id) for item in items)


def read_landed_rows(items: Collection[Resource]) -> Steps[dict[str, LandedRow]]:
    """Landed rows of these list items, by id."""
    return (yield from LandedRows(ids_of(items), tuple(item.created_at for item in items)))


def is_ascending(page: Page[Resource]) -> bool:
    """Whether the items are in order of creation; those without a date do not count."""
    created = [item.created_at for item in page.items if item.created_at is not None]
    return all(earlier <= later for earlier, later in pairwise(created))


class PageBatch:
    """Pages that are committed together."""

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []

    @property
    def items(self) -> tuple[Resource, ...]:
        """The items of all pages, in listed order."""
        return tuple(item for page in self.pages for item in page.items)

    @property
    def is_full(self) -> bool:
        """Whether it has the most records for one commit, or took the longest time."""
        first, last = self.pages[0].heard_at, self.pages[-1].heard_at
        seconds = (last - first).total_seconds() if first and last else 0.0
        count = sum(len(page.items) for page in self.pages)
        return count >= BATCH_RECORDS_MAX or seconds >= BATCH_SECONDS_MAX


def list_page(
    number: int, sort: str | None, order: Order, commit: Callable[[], Steps[None]] | None
) -> Steps[Page[Resource]]:
    """Read one page; an error is raised after a `commit` of the pages before it."""
    try:
        return (yield from ListPage(number, sort, order))
    except ConnectorError:
        if commit is not None:
            yield from commit()
        raise


def list_all(
    sort: str | None,
    take: Callable[[Page[Resource]], Steps[int]],
    first: int = 1,
    commit: Callable[[], Steps[None]] | None = None,
) -> Steps[Page[Resource]]:
    """List all pages from `first` on, ascending, and return the last.

    `take` gets each page, and returns by how many rows the list is known to exceed its total. If
    the total fell, the page before is read again, since a deletion moved a record there. `commit`
    lands what was taken and has not landed yet, before an error is raised.
    """
    number, total = first, 0
    while True:
        page = yield from list_page(number, sort, "asc", commit)
        offset = yield from take(page)
        has_shrunk, total = page.total < total, page.total
        if has_shrunk and number > 1:
            number -= 1
        elif page.ends_list(offset):
            return page
        else:
            number += 1


class Listing:
    """Listing of one attempt: distinct items in listed order, each with its rank.

    The rank is the number of items before it. `step` has the number of the request that showed it
    last. `boundary` is the index in `order` of the first clean item, once it is found.
    """

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.last_step = self.boundary = 0
        self.has_shifted = False

    def add(self, page: Page[Resource], step: int) -> tuple[Resource, ...]:
        """Add a page; returns the items that this listing had not shown before."""
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
            # The last page that shows it counts: a record that moved down has a new rank.
            self.rank[item.id] = (page.page - 1) * page.per_page + index
            self.step[item.id] = step
        return tuple(fresh)

    @property
    def last(self) -> Page[Resource]:
        """The page that was listed last."""
        return self.pages[-1]

    @property
    def first_clean_item(self) -> Resource | None:
        """The first clean item; None where the list ends without one."""
        return self.order[self.boundary] if self.boundary < len(self.order) else None

    def length(self, offset: int) -> int:
        """Number of rows of the list, if they exceed its total by `offset`."""
        return self.last.length(offset)


# -- Exponential search --------------------------------------------------------------------------

Dirtiness = Literal["dirty", "clean", "odd", "end"]
"""The record at a rank: dated after the floor, at or before it, undated; or past the end."""


def predicted_boundary(rows: Sequence[LandedRow | None], floor: datetime, future: datetime) -> int:
    """Smallest index from which on all rows are landed and in the list's order.

    None is a record that is not landed. A row without `updated_at`, or with one after `future`, is
    skipped.
    """
    start, newer = len(rows), None
    while start > 0:
        row = rows[start - 1]
        if row is None or row.is_queued or row.is_deleted:
            break
        updated_at = row.updated_at
        if updated_at is not None and updated_at <= future:
            if updated_at > floor or (newer is not None and updated_at < newer):
                break
            newer = updated_at
        start -= 1
    return start


def first_clean(
    start: int, verdict: Callable[[int], Steps[Dirtiness]], end: Callable[[], int]
) -> Steps[int]:
    """Index of the first clean record, or `end()`: steps 1, 2, 4, ..., then halving.

    An odd record proves nothing about those above it, so the search steps over it.
    """
    low, probe, stride = start - 1, start, 1
    while (found := (yield from verdict(probe))) != "clean":
        if found == "end":
            probe = end()
            break
        if found == "odd":
            probe += 1
            continue
        low, probe, stride = probe, probe + stride, stride * 2
    high = probe
    while high - low > 1:
        middle = (low + high) // 2
        if (yield from verdict(middle)) in ("clean", "end"):
            high = middle
        else:
            low = middle
    return high
