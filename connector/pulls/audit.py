"""Audit: compare the number of live rows with the total of the list, and find the difference.

Only a 404 proves a deletion, so the audit returns suspects, and their details are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from connector.catalog.resource import Page, Resource
from connector.pulls.reading import Pull, drain, list_page, read
from connector.pulls.scan import Listing
from connector.pulls.sweep import compare_all
from connector.warehouse.stream import Commit

GROWTH_MIN = 1_000
"""A list is searched up to twice the known records and so many more."""

TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Cut:
    """Position in the list by `created_at`: `rank` items precede it, all created before `at`."""

    page: int
    rank: int
    at: datetime | None


class Search:
    """Search for deleted and missing records, by halving the list over `created_at`.

    The surplus at a cut is the number of rows created before it, less the rows listed before it. A
    range whose cuts have equal surpluses is not searched. Of P pages at most 1 + log2 P are read to
    find one deletion.
    """

    def __init__(self, pull: Pull, total: int, per_page: int, most: int) -> None:
        self.pull = pull
        self.begin = Cut(0, 0, None)
        # A total that is much too high may not cost more pages than the list can have.
        self.end = Cut(ceil(min(total, most) / per_page) + 1, total, None)
        self.listed: dict[int, frozenset[str]] = {}
        self.absent: set[str] = set()
        self.last: Page[Resource] | None = None
        self.totals: set[int] = set()

    async def run(self) -> set[str]:
        """Return loaded ids that no page shows. Missing records are loaded and queued."""
        waiting = [(self.begin, self.end)]
        while waiting and self.pull.refused is None:
            low, high = waiting.pop()
            if await self.surplus(low) != await self.surplus(high):
                waiting += await self.split(low, high)
        return self.absent - frozenset().union(*self.listed.values())

    async def surplus(self, cut: Cut) -> int:
        """Return the number of rows before the cut that the list does not show there."""
        return 0 if cut.page == 0 else await self.pull.copy.count(cut.at) - cut.rank

    async def split(self, low: Cut, high: Cut) -> list[tuple[Cut, Cut]]:
        """Read the page in the middle of a range, and return the ranges on both sides of it.

        A page whose records were all created together has no cut, so the next one is read. If all
        pages were read, the range is compared as a whole.
        """
        while (number := self.middle(low.page + 1, high.page - 1)) is not None:
            page = await self.read_page(number)
            base = (page.page - 1) * page.per_page
            if not page.is_full:
                rank = base + len(page.items)
                is_end = not page.items
                high = Cut(page.page + (not is_end), min(rank, high.rank) if is_end else rank, None)
            cuts = [Cut(page.page, base + n, page.items[n].created_at)
                    for n in range(1, len(page.items))
                    if page.items[n - 1].created_at < page.items[n].created_at]  # fmt: skip
            if cuts:
                return [(cuts[-1], high), (low, cuts[0])]
        pages = (self.listed[n] for n in range(low.page, high.page + 1) if n in self.listed)
        after = None if low.at is None else low.at - TICK
        await self.note_absent(frozenset().union(*pages), after, high.at)
        return []

    def middle(self, first: int, last: int) -> int | None:
        """Return the unread page that is nearest to the middle of a range, or None."""
        center = (first + last) // 2
        for distance in range(last - first + 1):
            for number in (center - distance, center + distance):
                if first <= number <= last and number not in self.listed:
                    return number
        return None

    async def read_page(self, number: int) -> Page[Resource]:
        """Read one page: load and queue missing records, and queue records that differ."""
        pull = self.pull
        self.last = page = await list_page(pull, number, "created_at", "asc")
        self.totals.add(page.total)
        self.listed[number] = frozenset(item.id for item in page.items)
        queue = dict.fromkeys(await pull.copy.differing(page.items), "differs")
        await pull.copy.commit(Commit(items=page.items, enqueue=queue, bookmark=pull.mark))
        if page.items:
            first, last = page.items[0].created_at, page.items[-1].created_at
            await self.note_absent(self.listed[number], first, last)
        return page

    async def note_absent(
        self, listed: frozenset[str], after: datetime | None, before: datetime | None
    ) -> None:
        """Note loaded ids created strictly between two times that are not listed there."""
        self.absent |= await self.pull.copy.live(after, before) - listed
        self.pull.check(len(self.absent), "are missing in the list", self.absent)


async def audit(pull: Pull, listing: Listing, gone: int) -> str | None:
    """Compare the live rows with the list's total, and find the difference.

    `gone` listed records were found to be deleted since. Returns why a difference remains, or None.
    """
    if not pull.mark.is_total_exact:
        return await compare_all(pull)  # A wrong total could hide a deletion.
    total = max(0, listing.last.record_count() - gone)
    if await pull.copy.count() == total:
        return None
    pull.api.purpose = "sweep"
    search = Search(pull, total, listing.last.per_page, 2 * pull.known + GROWTH_MIN)
    absent = await search.run()
    if pull.refused is None:
        await read(pull, sorted(absent))
        await drain(pull)
    if pull.refused is not None:
        return pull.refused
    if search.last is None or await pull.copy.count() == search.last.record_count():
        return None
    if search.totals != {listing.last.total}:
        return None  # The list changes while it is read, so the next pull compares again.
    return await compare_all(pull)
