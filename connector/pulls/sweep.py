"""Sweep: read every page of a list, for lists that a scan cannot verify.

A first load reads all pages twice, since records move between pages while they are read. An
unexplained total is answered by a comparison of all pages, and so is a list that is not sorted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from connector.catalog.resource import Page, Resource
from connector.pulls.reading import Pull, drain, list_page, read
from connector.pulls.scan import ATTEMPTS_MAX, UNSORTED
from connector.warehouse.stream import (
    BATCH_RECORDS_MAX,
    BATCH_SECONDS_MAX,
    Commit,
    Event,
    LandedRow,
)

SWEEP_ROUNDS_MAX = 3
"""Maximum number of comparisons of all pages in one pull."""

UNSORTED_FOR = timedelta(days=1)
"""Time until an unsorted list is scanned again, and until its details are read again."""

DETAILS_PER_PAGE = 20
"""Number of details that a re-verification reads for each page of the list."""

TOO_FEW = "the API counts more records than its list shows"
NOT_SORTED_BY_CREATION = "the list is not sorted by created_at"


class Sweep:
    """One read of every page in order of creation.

    Attributes:
        seen: Listed ids.
        new: Listed ids that may have become visible since the first page.
        is_steady: True if all pages had the same total.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.new: set[str] = set()
        self.items: dict[str, Resource] = {}
        self.queue: dict[str, str] = {}
        self.totals: list[int] = []
        self.first: Page[Resource] | None = None
        self.last: Page[Resource] | None = None
        self.is_sorted = True

    @property
    def is_steady(self) -> bool:
        """Return True if all pages had the same total."""
        return len(set(self.totals)) == 1

    def count(self) -> int:
        """Return the number of records, by the rows of the last page."""
        assert self.last is not None
        return self.last.record_count()

    def error(self) -> int:
        """Return the number of records less the reported total."""
        assert self.last is not None
        return self.count() - self.last.total

    async def run(self, pull: Pull, *, lands: bool = False, rereads: str = "") -> None:
        """Read all pages. Unknown records and differences are kept until `land`.

        Args:
            pull: The pull.
            lands: Load the items of each batch immediately, and note the page for a resumed load.
            rereads: Queue all listed records ("all"), or those read too early ("early").
        """
        sort = "created_at" if pull.resource.sortable else None
        number = (pull.mark.load_page or 1) if lands else 1
        while True:
            page = await list_page(pull, number, sort, "asc")
            has_shrunk = bool(self.totals) and page.total < self.totals[-1]
            await self.add(pull, page, rereads)
            if lands:
                pull.mark = replace(pull.mark, load_page=number)
                if self.is_batch_full(page):
                    await self.land(pull)
            if has_shrunk and number > 1:
                number -= 1  # A deletion moved a record to the page before.
            elif page.is_last:
                break
            else:
                number += 1
        if lands:
            await self.land(pull)

    def is_batch_full(self, page: Page[Resource]) -> bool:
        """Return True if a commit is due, by the number of records or by the time."""
        assert self.first is not None
        if self.first.received_at is None or page.received_at is None:
            return len(self.items) >= BATCH_RECORDS_MAX
        seconds = (page.received_at - self.first.received_at).total_seconds()
        return len(self.items) >= BATCH_RECORDS_MAX or seconds >= BATCH_SECONDS_MAX

    async def add(self, pull: Pull, page: Page[Resource], rereads: str) -> None:
        """Note what a page shows, and what has to be loaded or read because of it."""
        self.first, self.last = self.first or page, page
        self.totals.append(page.total)
        dates = [item.created_at for item in page.items if item.created_at is not None]
        self.is_sorted &= all(earlier <= later for earlier, later in pairwise(dates))
        rows = await pull.copy.rows_of(page.items)
        since = self.first.timestamp - pull.lateness
        for item in page.items:
            row = rows.get(item.id)
            if row is None or row.is_deleted:
                self.items[item.id] = item
            if row is None and (item.created_at is None or item.created_at > since):
                self.new.add(item.id)
            if rereads == "all":
                self.queue[item.id] = "full"
            elif (
                rereads == "early" and row is not None and is_read_too_early(pull, page, item, row)
            ):
                self.queue[item.id] = "stale"
        self.seen |= {item.id for item in page.items}
        differing = await pull.copy.differing(page.items)
        if pull.resource.sortable and pull.mark.proven_at is not None:
            # A detail that agrees with its list item confirms the history, too.
            self.items |= {item.id: item for item in page.items if item.id in differing}
        self.queue |= dict.fromkeys(differing, "differs")

    async def land(self, pull: Pull) -> None:
        """Load the unknown records, queue the others, and commit the bookmark."""
        items, queue = tuple(self.items.values()), self.queue
        await pull.copy.commit(Commit(items=items, enqueue=queue, bookmark=pull.mark))
        self.items, self.queue, self.first = {}, {}, self.last


def is_read_too_early(pull: Pull, page: Page[Resource], item: Resource, row: LandedRow) -> bool:
    """Return True if a listed record must be read although no listed value differs.

    If the list shows `updated_at`, the detail must have been read later than that time plus the
    lateness. If not, a detail of an earlier pull proves nothing; in a list that should be sorted it
    is kept for a day.
    """
    if row.read_at is None:
        return False
    daily = page.timestamp - UNSORTED_FOR
    limit = daily if pull.resource.sortable else page.timestamp
    if pull.resource.lists_updated_at and item.updated_at is not None:
        limit = max(daily, item.updated_at + pull.lateness)
    return row.read_at < limit


async def compare_all(pull: Pull, *, reads_all: bool = False) -> str | None:
    """Compare every page until all listed records are loaded and all others proven deleted.

    Returns why the copy is not proven, or None.
    """
    pull.api.purpose = "sweep" if pull.mark.proven_at is not None else "pull"
    for _ in range(SWEEP_ROUNDS_MAX):
        before, swept = await pull.copy.live(None, None), Sweep()
        await swept.run(pull, rereads="all" if reads_all else "")
        absent = before - swept.seen
        if not pull.check(len(absent), "are missing in the list", absent):
            return pull.refused
        await swept.land(pull)
        if not swept.is_sorted:
            return NOT_SORTED_BY_CREATION
        reads_all = False
        await read(pull, sorted(absent))
        await drain(pull)
        for _ in range(ATTEMPTS_MAX):
            if pull.refused is not None or await pull.copy.count() >= swept.count():
                break  # Else ties hide records from some pages: list again.
            await swept.run(pull)
            await swept.land(pull)
            await drain(pull)
        if pull.refused is not None:
            return pull.refused
        live = await pull.copy.live(None, None) - (pull.unread.keys() - swept.seen)
        # A tie may hide a record while another is deleted, so that the count agrees. But then fewer
        # records were seen than existed at the first page.
        existed = len(swept.seen | live) - len(swept.new)
        if len(live) >= swept.count() and existed >= swept.totals[0] + min(0, swept.error()):
            await check_total(pull, swept, len(live))
            return None
    return TOO_FEW


async def check_total(pull: Pull, swept: Sweep, live: int) -> None:
    """Check the list's total, now that all pages agree with the copy.

    A full last page does not show that the list ends there, so the newest records are listed, and
    loaded if no page showed them. An event reports a total that is wrong: every following pull
    compares all pages.
    """
    assert swept.last is not None
    if swept.last.is_full:
        newest = await list_page(pull, 1, "created_at", "desc")
        unseen = tuple(item for item in newest.items if item.id not in swept.seen)
        pull.mark = replace(pull.mark, is_total_exact=not unseen and newest.total == live)
        await pull.copy.commit(Commit(items=unseen, bookmark=pull.mark))
        await drain(pull)
    events = tuple[Event, ...]()
    if swept.is_steady and not pull.mark.is_total_exact:
        detail = f"the list contains {live} records, but its total is {swept.last.total}"
        events = (Event("total_off", detail),)
    await pull.copy.commit(Commit(bookmark=pull.mark, events=events))


async def first_load(pull: Pull) -> str | None:
    """Load every list item, read every detail, and compare every page again; R is the start.

    Returns why the stream is not loaded completely, or None.
    """
    pull.is_open = True
    is_one_page = False
    if pull.mark.verify_page is None:
        is_resumed = pull.mark.load_page is not None
        swept = Sweep()
        for attempt in range(ATTEMPTS_MAX):
            await swept.run(pull, lands=attempt == 0)
            await swept.land(pull)
            if await pull.copy.count() >= swept.count():
                break
        else:
            return TOO_FEW
        assert swept.last is not None
        is_one_page = len(swept.totals) == 1 and not is_resumed and not swept.last.is_full
        pull.mark = replace(pull.mark, load_page=None, verify_page=0)
        if not swept.is_sorted:
            pull.mark = replace(pull.mark, unsorted_at=swept.last.timestamp)
        await pull.copy.commit(Commit(bookmark=pull.mark))
    await drain(pull)
    needs_second_read = pull.mark.unsorted_at is None and not is_one_page
    if needs_second_read and (reason := await compare_all(pull)) is not None:
        return reason
    pull.mark = replace(pull.mark, verify_page=None, proven_at=pull.mark.opened_at, opened_at=None)
    await pull.copy.commit(Commit(bookmark=pull.mark))
    pull.is_open = False
    return None


async def pull_whole(pull: Pull, *, reads_all: bool = False) -> str | None:
    """Read a list that cannot be sorted, or that the API does not sort. Return why not proven.

    A record that moves to an earlier page during the read is seen by a second read of the list.
    """
    pull.is_open = True
    before, swept = await pull.copy.live(None, None), Sweep()
    await swept.run(pull, rereads="all" if reads_all else "early")
    is_whole = swept.is_steady and len(swept.seen) == swept.count()
    if is_whole and len(swept.totals) > 1 and not pull.resource.sortable:
        again = Sweep()
        await again.run(pull)
        is_whole = swept.seen <= again.seen
    absent = before - swept.seen if is_whole else set()
    missing = len(before) + len(swept.items) - swept.count()
    if pull.check(max(len(absent), missing), "are missing in the list", absent):
        await swept.land(pull)
        await read(pull, sorted(absent))
        await drain(pull)
    opened_at = pull.mark.opened_at
    assert opened_at is not None
    pull.mark = replace(pull.mark, opened_at=None, load_page=None)
    pull.is_open = False
    if is_whole and pull.refused is None and not pull.resource.sortable:
        pull.mark = replace(pull.mark, proven_at=max(pull.mark.proven_at or opened_at, opened_at))
    await pull.copy.commit(Commit(bookmark=pull.mark))
    if pull.refused is not None or not is_whole:
        return pull.refused or "the list changed while it was read"
    return UNSORTED if pull.resource.sortable else None


async def reverify(pull: Pull, requests: int) -> None:
    """Compare verified records again: some pages, then the details that were read longest ago."""
    pull.api.purpose = "scrub"
    step = pull.step
    pages = max(1, requests // (DETAILS_PER_PAGE + 1))
    while pages > 0 and pull.refused is None:
        start = pull.mark.scrubbed_to
        number = 1 if start is None else await pull.copy.count(start) // 100 + 1
        page = await list_page(pull, number, "created_at", "asc")
        if page.per_page != 100 and start is not None and number > 1:
            pages -= 1
            number = await pull.copy.count(start) // page.per_page + 1
            page = await list_page(pull, number, "created_at", "asc")
        pages -= 1
        dates = [item.created_at for item in page.items if item.created_at is not None]
        after = start if number > 1 else None
        before = None if page.is_last or not dates else max(dates)
        listed = {item.id for item in page.items}
        landed = await pull.copy.live(after, before)
        absent = sorted(landed - listed) if after is None or (dates and min(dates) <= after) else []
        queue = dict.fromkeys(await pull.copy.differing(page.items), "differs")
        is_stuck = before is not None and start is not None and before <= start
        pull.mark = replace(pull.mark, scrubbed_to=None if is_stuck else before)
        await pull.copy.commit(Commit(items=page.items, enqueue=queue, bookmark=pull.mark))
        if pull.check(len(absent), "are missing in the list", absent):
            await read(pull, absent[: max(0, requests - (pull.step - step))])
        if before is None:
            break
    left = requests - (pull.step - step)
    if left > 0 and pull.refused is None:
        await read(pull, await pull.copy.oldest(left))
    await drain(pull)
