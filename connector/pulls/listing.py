"""Listings: the pages of a list as a pass reads them, and the search for the first clean record.

Pages read one after another do not belong to one point in time: records are created, changed and
deleted between two requests, and the records after them shift. A listing therefore only stores the
order, the page and the request in which its items were shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from connector.catalog.resource import Order, Page, Resource
from connector.errors import ConnectorError
from connector.errors_api import UnreadableAnswer
from connector.pulls.deletion_guard import GONE_MIN, deviation_limit
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    BATCH_SECONDS_MAX,
    Bookmark,
    CountLive,
    LandedRow,
    LandedRows,
    ListPage,
    Steps,
    T,
)


def ids_of(items: Iterable[Resource]) -> tuple[str, ...]:
    """Return the ids of records or list items."""
    return tuple(str(item.id) for item in items)


def read_landed_rows(items: Collection[Resource]) -> Steps[dict[str, LandedRow]]:
    """Return the loaded rows of these list items, by id."""
    return (yield from LandedRows(ids_of(items), tuple(item.created_at for item in items)))


def is_ascending(page: Page[Resource]) -> bool:
    """Return True if the items are in order of creation. Items without a date are ignored."""
    created = [item.created_at for item in page.items if item.created_at is not None]
    return all(earlier <= later for earlier, later in pairwise(created))


class PageBatch:
    """Pages that are committed together."""

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []

    @property
    def items(self) -> tuple[Resource, ...]:
        """Items of all pages, in listed order."""
        return tuple(item for page in self.pages for item in page.items)

    @property
    def is_full(self) -> bool:
        """Return True if a commit is due, by the number of records or by the time since the last
        one.
        """
        first, last = self.pages[0].received_at, self.pages[-1].received_at
        seconds = (last - first).total_seconds() if first and last else 0.0
        count = sum(len(page.items) for page in self.pages)
        return count >= BATCH_RECORDS_MAX or seconds >= BATCH_SECONDS_MAX


def list_page(
    number: int, sort: str | None, order: Order, commit: Callable[[], Steps[None]] | None
) -> Steps[Page[Resource]]:
    """Read one page. Before an error is raised, `commit` commits the earlier pages."""
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
    """Read all pages from `first` on, in ascending order, and return the last.

    Args:
        sort: Field to sort by; None for a list that cannot be sorted.
        take: Called with each page. Returns the number of rows by which the list is known to exceed
            its total. If the total fell, the page before is read again, since a deletion moved a
            record there.
        first: Number of the first page.
        commit: Called before an error is raised, to commit the pages taken since the last commit.
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
    """Pages of one read of a list: distinct items in listed order, each with its rank.

    Attributes:
        order: Distinct items in listed order.
        rank: Number of items before an item, by id.
        step: Number of the request that last showed an item, by id.
        boundary: Index in `order` of the first clean item, once it is known.
        has_shifted: True if the total or the page size changed between two pages.
    """

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.last_step = self.boundary = 0
        self.has_shifted = False

    def add(self, page: Page[Resource], step: int) -> tuple[Resource, ...]:
        """Add the page of request number `step`; return items that were not listed before."""
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
            # The last page that shows an item counts: a record that moved down has a new rank.
            self.rank[item.id] = (page.page - 1) * page.per_page + index
            self.step[item.id] = step
        return tuple(fresh)

    @property
    def last(self) -> Page[Resource]:
        """Page that was listed last."""
        return self.pages[-1]

    @property
    def first_clean_item(self) -> Resource | None:
        """First clean item; None if the list ends without one."""
        return self.order[self.boundary] if self.boundary < len(self.order) else None

    def length(self, offset: int) -> int:
        """Return the number of rows of the list, which exceeds its total by `offset`."""
        return self.last.record_count(offset)


# -- Exponential search --------------------------------------------------------------------------

RecordState = Literal["dirty", "clean", "odd", "end"]
"""Kind of a record at a rank: dated after the floor, at or before it, undated; or past the end."""


def predict_boundary(rows: Sequence[LandedRow | None], floor: datetime, future: datetime) -> int:
    """Return the smallest index from which all rows are loaded and in the order of the list.

    Rows are in listed order; None is a record that is not loaded. A row without `updated_at`, or
    with one after `future`, is skipped.
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


def find_first_clean(
    start: int, verdict: Callable[[int], Steps[RecordState]], end: Callable[[], int]
) -> Steps[int]:
    """Return the index of the first clean record, or `end()` if there is none.

    `verdict` returns the state at an index. The search goes from `start` in steps of 1, 2, 4, ...,
    then halves. An undated record proves nothing about the records above it, so it is skipped.
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


# -- Totals ---------------------------------------------------------------------------------------
# Totals of lists: a pull does not use a total that the rows contradict.
#
# A total decides where a list ends, whether records are missing, and which deletions are
# suspicious. A total that contradicts the rows and pages is requested again, and is only used if a
# second response agrees. A list whose pages all show the same records is unreadable.


ANSWERS_MAX = 3
"""Maximum number of responses to one page request, until two of them agree."""

GROWTH_FACTOR, GROWTH_MIN = 2, 1_000
"""Growth factor of a list between two pulls that needs no second response."""

FIRST_MAX = 1_000_000
"""Largest total of a list that was never loaded that needs no second response."""

SAME_PAGES_MAX = 2
"""Maximum number of consecutive page numbers that may show the same records."""


def with_checked_totals(steps: Steps[T], bookmark: Bookmark) -> Steps[T]:
    """Run `steps`, but request a page again if its total contradicts the rows."""
    live = yield from CountLive()
    known = _KnownTotal(
        expected=max(live, bookmark.listed or 0),
        offset=bookmark.total_offset or 0,
        is_loaded=bookmark.proven_at is not None,
    )
    answer: object = None
    error: ConnectorError | None = None
    while True:
        try:
            command = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result
        error = None
        try:
            if isinstance(command, ListPage):
                answer = yield from _read_page(command, known)
            else:
                answer = yield command
        except ConnectorError as raised:
            error = raised


@dataclass(slots=True)
class _KnownTotal:
    """Expected number of records of a list, from the loaded rows and earlier pages.

    Attributes:
        offset: Number of records by which the list exceeds its total.
        is_loaded: True if the first load is complete.
        shown: Sort, order and ids of the last full page.
        same: Numbers of the consecutive pages that were equal to it.
    """

    expected: int
    offset: int
    is_loaded: bool
    shown: tuple[str | None, str, tuple[str, ...]] = (None, "", ())
    same: frozenset[int] = frozenset()

    def contradicts(self, page: Page[Resource]) -> bool:
        """Return True if the rows and pages contradict the page's total."""
        total = page.total + self.offset
        before = (page.page - 1) * page.per_page
        if page.total_error is not None:
            return abs(page.total_error - self.offset) > deviation_limit(page.record_count())
        if not page.items:
            return total - before > deviation_limit(before)
        if total < before + len(page.items):
            return True
        expected = max(self.expected, before + len(page.items))
        maximum = expected * GROWTH_FACTOR + (GROWTH_MIN if self.is_loaded else FIRST_MAX)
        return total > maximum

    def remember(self, command: ListPage, page: Page[Resource]) -> None:
        """Store a page. Raises `UnreadableAnswer` if other page numbers showed the same records."""
        ids = ids_of(page.items)
        shown = (command.sort, command.order, ids)
        is_same = page.is_full and len(ids) > 1 and shown == self.shown
        self.same = (self.same if is_same else frozenset()) | {page.page}
        self.shown = shown
        if len(self.same) > SAME_PAGES_MAX:
            numbers = ", ".join(map(str, sorted(self.same)))
            raise UnreadableAnswer("the list", f"answered with the same records on pages {numbers}")


def _read_page(command: ListPage, known: _KnownTotal) -> Steps[Page[Resource]]:
    """Read a page until its total fits the rows or two responses agree.

    Raises `UnreadableAnswer` after `ANSWERS_MAX` responses.
    """
    totals: list[int] = []
    for _ in range(ANSWERS_MAX):
        page = yield from command
        known.remember(command, page)
        if not known.contradicts(page):
            return page
        if any(abs(page.total - total) <= GONE_MIN for total in totals):
            known.expected = max(known.expected, page.total + known.offset)
            return page
        totals.append(page.total)
    totals_text = ", ".join(f"{each:,}" for each in totals)
    raise UnreadableAnswer(
        f"page {command.page} of the list",
        f"answered with totals that do not match its records: {totals_text}",
    )
