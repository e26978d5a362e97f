"""Search for deleted and missing records, by halving over `created_at`.

    surplus at a cut = rows loaded that were created before it - rows listed before it

The list, in order of creation, is cut at positions within a page where `created_at` strictly
increases, because the rank is only certain there. If two cuts have the same surplus, the range
between them is not searched. If not, the page in the middle is read, preferably a page that should
have a cut by the loaded rows. Of P pages at most 1 + log2 P are read to find one deletion. Pages
with a single `created_at` have no cut, so all of them are read.

All rows of a page belong to one point in time. A loaded id that belongs strictly inside the page
and is not listed is absent. An id that is listed and not loaded was missing. Absence is only a
suspicion: the API's 404 proves a deletion. A deleted and a missing record between the same two cuts
cancel each other out; only the list verification finds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from connector.catalog.resource import Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.listing import ids_of, is_ascending, read_landed_rows
from connector.warehouse.pull_commands import (
    Bookmark,
    Commit,
    CountLive,
    CreatedBetween,
    DifferingFields,
    ListPage,
    Steps,
    TiedPages,
    with_page_checks,
)

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ListPosition:
    """Position in the list: `rank` items come before it, all created before `moment`.

    `page` is its page number. The list begins with a position without a time on page 0, and ends
    with a position on the page after the last.
    """

    page: int
    rank: int
    moment: datetime | None


class DeletionSearch:
    """Search for deleted and missing records in a list of `total` records.

    Attributes:
        totals: Totals of the pages that were read.
        is_sorted: False after a page was not in order of creation, which ends the search.
        bookmark: Bookmark with the total's offset, if the search has read the last page.
    """

    def __init__(
        self, total: int, per_page: int, bookmark: Bookmark, guard: MassDeletionGuard
    ) -> None:
        self._total, self._per_page, self._guard = max(0, total), per_page, guard
        self.bookmark = bookmark
        self._listed: dict[int, frozenset[str]] = {}
        self._recognised = 0
        self.totals: list[int] = []
        self.is_sorted = True
        self._absent: dict[str, None] = {}
        self._tied: frozenset[int] = frozenset()

    def run(self) -> Steps[list[str]]:
        """Return loaded ids that may be deleted. Missing records are loaded and queued.

        Ends early and returns an empty list once the guard has refused, because too many are
        absent.
        """
        # Surpluses come from the pages and the rows, so a slightly wrong total only costs more
        # pages.
        begin = ListPosition(0, 0, None)
        end = ListPosition(ceil(self._total / self._per_page) + 1, self._total, None)
        # Depth first, earlier half first.
        waiting = [(begin, end)]
        self._tied = yield from TiedPages(self._per_page)
        while waiting and self._guard.refused is None and self.is_sorted:
            low, high = waiting.pop()
            if (yield from self._extra_rows_before(low)) == (
                yield from self._extra_rows_before(high)
            ):
                continue
            halves = yield from self._split_range(low, high)
            waiting.extend(reversed(halves))
        if self._guard.refused is not None or not self.is_sorted:
            return []
        return sorted(self._absent.keys() - frozenset().union(*self._listed.values()))

    def _extra_rows_before(self, cut: ListPosition) -> Steps[int]:
        """Return the number of rows loaded before the position that the list does not show there.

        The rows are counted each time because missing records are loaded during the search.
        """
        if cut.page == 0:
            return 0
        return (yield from CountLive(cut.moment)) - cut.rank

    def _split_range(
        self, low: ListPosition, high: ListPosition
    ) -> Steps[list[tuple[ListPosition, ListPosition]]]:
        """Read a page in the middle of the range, and return the ranges on both sides of its cut.

        If all pages of the range were read, compares them with the loaded rows and returns no
        ranges.
        """
        while self.is_sorted and (number := self._choose_page(low, high)) is not None:
            page = yield from self._read_page(number)
            cuts = list(_positions_in(page, self._per_page))
            if not page.is_full:
                # The list ends here, or before an empty page, whatever its total is.
                rank = (number - 1) * self._per_page + len(page.items)
                end = number + bool(page.items)
                high = ListPosition(end, rank if page.items else min(rank, high.rank), None)
            if cuts:
                return [(low, cuts[0]), (cuts[-1], high)]
        yield from self._compare_range(low, high)
        return []

    def _choose_page(self, low: ListPosition, high: ListPosition) -> int | None:
        """Return the unread page nearest to the middle, preferably one without ties.

        None if all pages in between were read.
        """
        nearest: int | None = None
        for number in _numbers_from_middle(low.page + 1, high.page - 1):
            if number in self._listed:
                continue
            if number not in self._tied:
                return number
            nearest = nearest or number
        return nearest

    def _read_page(self, number: int) -> Steps[Page[Resource]]:
        """Read one page: load and queue missing records, and queue records that differ."""
        page = yield from ListPage(number, "created_at", "asc")
        self.totals.append(page.total)
        self.bookmark = with_page_checks(page, self.bookmark)
        self.is_sorted &= is_ascending(page)
        self._listed[number] = frozenset(ids_of(page.items))
        differing = yield from DifferingFields(page.items)
        known = yield from read_landed_rows(page.items)
        self._recognised += self._guard.count_recognised(self._listed[number], known)
        queued = dict.fromkeys(differing, "differs")
        yield from Commit(items=page.items, enqueue=queued, bookmark=self.bookmark)
        if page.items:
            first, last = page.items[0].created_at, page.items[-1].created_at
            yield from self._mark_unlisted(self._listed[number], first, last)
        return page

    def _compare_range(self, low: ListPosition, high: ListPosition) -> Steps[None]:
        """Mark loaded ids as absent that belong into the range and are not listed there."""
        numbers = [n for n in range(low.page, high.page + 1) if n in self._listed]
        listed = frozenset().union(*(self._listed[n] for n in numbers))
        # Records with the time of a cut come after the cut.
        after = None if low.moment is None else low.moment - _TICK
        yield from self._mark_unlisted(listed, after, high.moment)

    def _mark_unlisted(
        self, listed: frozenset[str], after: datetime | None, before: datetime | None
    ) -> Steps[None]:
        """Mark ids as absent that were created strictly between two times and are not listed."""
        landed = yield from CreatedBetween(after, before)
        self._absent |= dict.fromkeys(landed - listed)
        self._guard.check_missing(len(self._absent), self._recognised)


def _numbers_from_middle(first: int, last: int) -> Iterator[int]:
    """Yield the numbers from `first` to `last`, from the middle outward, the lower of two first."""
    below = (first + last) // 2
    above = below + 1
    while below >= first or above <= last:
        is_below_nearer = below + above >= first + last
        if above > last or (below >= first and is_below_nearer):
            yield below
            below -= 1
        else:
            yield above
            above += 1


def _positions_in(page: Page[Resource], per_page: int) -> Iterator[ListPosition]:
    """Yield the positions within the page where `created_at` strictly increases."""
    base = (page.page - 1) * per_page
    for index in range(1, len(page.items)):
        earlier, later = page.items[index - 1].created_at, page.items[index].created_at
        if earlier < later:
            yield ListPosition(page.page, base + index, later)
