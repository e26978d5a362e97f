"""Scan: read the list by `updated_at`, newest first, down to the first unchanged record.

A change while the list is read only moves a record up, so the scan becomes longer and never wrong.
Most lists do not show `updated_at`: the loaded rows predict where unchanged records begin, and a
detail that was read after the list decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from connector.catalog.resource import Page, Resource
from connector.pulls.reading import Pull, list_page, read
from connector.warehouse.stream import (
    SECOND,
    Bookmark,
    Commit,
    Event,
    LandedRow,
    floor_of,
    future_limit,
)

ATTEMPTS_MAX = 24
"""Maximum number of listings of one scan, and of sweeps that search missing records."""

ALARMS_MAX = 3
"""Scans in a row that find a list out of order until it counts as unsorted. A replica that lags
behind looks the same."""

WITNESSES_MAX = 5
"""Maximum number of records that are read because the list contradicts their rows."""

CHANGES_TOO_FAST = "the list changed faster than it could be read"
UNSORTED = "the API does not sort this list, so a pull may find changes a day late"


class Listing:
    """One read of the list by `updated_at`: distinct items in order, and where they were shown.

    Attributes:
        boundary: Index in `order` of the first record that is certainly unchanged.
        has_shifted: True if the total or the page size changed between two pages.
    """

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.rows: dict[str, LandedRow] = {}
        self.boundary = 0
        self.has_shifted = False

    @property
    def last(self) -> Page[Resource]:
        """Page that was listed last."""
        return self.pages[-1]

    @property
    def closing(self) -> Resource | None:
        """First unchanged item; None if the list ends without one."""
        return self.order[self.boundary] if self.boundary < len(self.order) else None

    @property
    def unknown(self) -> int:
        """Number of listed records without a live row."""
        live = sum(not row.is_deleted for row in self.rows.values())
        return len(self.order) - live

    async def add(self, pull: Pull) -> None:
        """List the next page."""
        page = await list_page(pull, len(self.pages) + 1, "updated_at", "desc")
        if self.pages:
            last = self.last
            self.has_shifted |= page.total < last.total or page.per_page != last.per_page
        self.pages.append(page)
        fresh = list({e.id: e for e in page.items if e.id not in self.rank}.values())
        self.order += fresh
        self.rank |= {e.id: (page.page - 1) * page.per_page + n for n, e in enumerate(page.items)}
        self.step |= dict.fromkeys((each.id for each in page.items), pull.step)
        self.rows |= await pull.copy.rows_of(fresh)


class Scan:
    """Reads every change since R.

    Attributes:
        floor: W: a record dated at or before it is unchanged.
        above: Ids listed above a boundary in any listing of this scan.
        future: A record dated after this time has a wrong date.
    """

    def __init__(self, pull: Pull) -> None:
        self.pull = pull
        self.before = pull.mark
        self.floor = floor_of(pull.mark)
        self.future = datetime.max.replace(tzinfo=UTC)
        self.above: dict[str, None] = {}
        self.lists_dates = pull.resource.lists_updated_at

    async def run(self) -> tuple[str | None, Listing]:
        """Return the reason why the scan proves nothing (None: it does), and the last listing."""
        pull, disorders, listing = self.pull, 0, Listing()
        reason: str | None = CHANGES_TOO_FAST
        for attempt in range(1, ATTEMPTS_MAX + 1):
            listing = Listing()
            await self.list_down(listing)
            if not await self.is_plausible(listing):
                return pull.refused, listing
            if attempt < ATTEMPTS_MAX and self.lacks_ids(listing):
                continue  # Only the lists are read again.
            await read(pull, [id for id in self.above if not self.is_attempted(id)])
            if floor_of(pull.mark) < self.floor:
                self.floor = floor_of(pull.mark)
                continue  # L was raised or the clock was set back: reach further down.
            if witnesses := await self.disorder(listing):
                disorders += 1
                if disorders == 2:  # The first one may be due to a late write.
                    reason = UNSORTED
                    break
                for id in witnesses:
                    pull.reads.pop(id, None)
                continue
            if await self.is_complete(listing):
                reason = None
                break
        return reason, listing

    def is_attempted(self, id: str) -> bool:
        """Return True if the scan has read the record, or tried to."""
        return id in self.pull.reads or id in self.pull.gone or id in self.pull.unread

    async def is_plausible(self, listing: Listing) -> bool:
        """Return True if the list does not lack suspiciously many loaded records."""
        missing = self.pull.known + listing.unknown - listing.last.record_count()
        if missing <= 0:
            return True
        last = listing.rows.get(listing.order[-1].id) if listing.last.is_full else None
        after = last.updated_at if last is not None else None
        newer = await self.pull.copy.updated(after or datetime.min.replace(tzinfo=UTC), self.future)
        absent = newer - listing.rank.keys()
        return self.pull.check(missing, "are missing in the list", absent)

    # -- The boundary --

    async def list_down(self, listing: Listing) -> None:
        """List pages down to the first unchanged record, and add those above it to `above`.

        From the index that the rows predict, the search goes in steps of 1, 2, 4, ... and then
        halves. A record without a valid date proves nothing about the others and is skipped.
        """
        await listing.add(self.pull)
        assert self.pull.mark.opened_at is not None
        self.floor = min(self.floor, floor_of(self.pull.mark))
        self.future = future_limit(self.pull.mark.opened_at, self.pull.mark)
        while (start := self.predict(listing)) >= len(listing.order) and self.continues(listing):
            await listing.add(self.pull)
        low, probe, stride = start - 1, start, 1
        while (state := await self.state(listing, probe)) in ("dirty", "odd"):
            if state == "odd":
                probe += 1
            else:
                low, probe, stride = probe, probe + stride, stride * 2
        high = min(probe, len(listing.order))
        while high - low > 1:
            middle = (low + high) // 2
            if await self.state(listing, middle) in ("clean", "end"):
                high = middle
            else:
                low = middle
        listing.boundary = high
        self.above |= dict.fromkeys(each.id for each in listing.order[:high])

    def continues(self, listing: Listing) -> bool:
        """Return True if a page follows. Only a total that was right before shows the end."""
        return listing.last.is_full and not (self.pull.mark.is_total_exact and listing.last.is_last)

    def predict(self, listing: Listing) -> int:
        """Return the first index from which all rows are unchanged and in the order of the list."""
        start, newer = len(listing.order), None
        for item in reversed(listing.order):
            row = LandedRow(item.updated_at) if self.lists_dates else listing.rows.get(item.id)
            if row is None or row.is_queued or row.is_deleted:
                break
            at = row.updated_at
            if at is not None and at <= self.future:
                if at > self.floor or (newer is not None and at < newer):
                    break
                newer = at
            start -= 1
        return start

    async def state(self, listing: Listing, index: int) -> str:
        """Return "dirty", "clean", "odd" (without a valid date) or "end" for an index.

        May list pages, and reads the detail unless it was read after the list. An unreadable record
        counts as dirty.
        """
        pull = self.pull
        while index >= len(listing.order) and self.continues(listing):
            await listing.add(pull)
        if index >= len(listing.order):
            return "end"
        item = listing.order[index]
        if not self.lists_dates and not self.is_changed(item.id):
            if pull.read_step(item.id) <= listing.step[item.id]:
                await read(pull, (item.id,))
            if item.id in pull.gone or item.id in pull.unread:
                return "dirty"
        at = item.updated_at if self.lists_dates else pull.updated_at(item.id)
        if at is None or at > self.future:
            return "odd"
        return "dirty" if at > self.floor else "clean"

    def is_changed(self, id: str) -> bool:
        """Return True if the record certainly changed after the floor, since dates only grow."""
        at = self.pull.updated_at(id)
        return id in self.pull.gone or (at is not None and self.floor < at <= self.future)

    def date_of(self, item: Resource, listing: Listing) -> datetime | None:
        """Return the date that the record had in the list: its own, or one read afterwards."""
        if self.lists_dates:
            return item.updated_at
        at, step = self.pull.reads.get(item.id, (None, -1))
        return at if step > listing.step[item.id] else None

    # -- Completeness --

    def needed(self, listing: Listing) -> int:
        """Return the number of records above the first unchanged one when it was listed."""
        clean = (
            listing.rank[item.id]
            for item in listing.order
            if (at := self.date_of(item, listing)) is not None and at <= self.floor
        )
        return min(clean, default=listing.last.record_count())

    def lacks_ids(self, listing: Listing) -> bool:
        """Return True if several pages show fewer records above the boundary than there are."""
        if len(listing.pages) == 1:
            return False
        seen = len(self.above.keys() - self.pull.gone.keys())
        return listing.has_shifted or seen < self.needed(listing)

    async def is_complete(self, listing: Listing) -> bool:
        """Return True if every record above the boundary was certainly read.

        One page is one point in time. Several pages may shift between two requests, so the records
        that were above the first unchanged rank at the last page are counted. They are a subset of
        all records above that rank: equal numbers mean that none is missing.
        """
        pull, last = self.pull, listing.last
        if len(listing.pages) == 1:
            return True
        last_step = max(listing.step.values(), default=0)
        hidden = [id for id in self.above if id not in listing.rank and id not in pull.gone
                  and pull.read_step(id) < last_step]  # fmt: skip
        await read(pull, hidden)
        need, until = self.needed(listing), last.timestamp - SECOND
        alive = {id for id in self.above.keys() - pull.gone.keys()
                 if self.was_above(id, listing, need, until)}  # fmt: skip
        unread = {id for id in alive & pull.unread.keys() if listing.step.get(id) != last_step}
        if len(alive) >= need and unread:
            shown = set[str]()
            ranks = (listing.rank[id] for id in unread & listing.rank.keys())
            for number in sorted({rank // last.per_page + 1 for rank in ranks}):
                page = await list_page(pull, number, "updated_at", "desc")
                shown |= {item.id for item in page.items}
            alive -= unread - shown
        return len(alive) >= need and not listing.has_shifted

    def was_above(self, id: str, listing: Listing, need: int, until: datetime) -> bool:
        """Return True if the record was above rank `need` when the last page was listed."""
        if id in listing.rank:
            return listing.rank[id] < need
        at = self.pull.updated_at(id)
        return at is not None and self.floor < at <= until

    # -- Contradictions --

    async def disorder(self, listing: Listing) -> set[str]:
        """Return ids that prove that the list is not sorted by `updated_at`; usually none.

        Two records of one page in the wrong order prove it, by dates read after the list. So does a
        loaded record that is newer than the boundary and not listed above it, and a pair of rows
        below the boundary in the wrong order, if reading them again confirms their dates.
        """
        pull = self.pull
        assert pull.mark.opened_at is not None
        limit = pull.mark.opened_at - self.pull.lateness

        def misplaced(items: Iterable[Resource]) -> set[str]:
            dates = {e.id: at for e in items if (at := self.date_of(e, listing)) and at <= limit}
            pairs = pairwise(dates.items())
            return {id for a, b in pairs if b[1] > a[1] for id in (a[0], b[0])}

        for page in listing.pages:
            if found := misplaced(page.items):
                return found
        if not self.lists_dates:
            for page in listing.pages:
                pair = self.misplaced_rows(listing, page)
                await read(pull, [id for id in pair if not self.is_attempted(id)])
                if pair and (found := misplaced(e for e in page.items if e.id in pair)):
                    return found
        closing = listing.closing
        last = None if closing is None else self.date_of(closing, listing)
        if last is None or last > limit:
            return set()
        witnesses = sorted(await self.unlisted(listing, last))[:WITNESSES_MAX]
        await read(pull, witnesses)
        return {id for id in witnesses if (at := pull.updated_at(id)) and last < at <= limit}

    def misplaced_rows(self, listing: Listing, page: Page[Resource]) -> tuple[str, ...]:
        """Return two listed ids below the boundary whose rows are in the wrong order, or none."""
        below = {item.id for item in listing.order[listing.boundary :]} - self.above.keys()
        dated = [(item.id, at) for item in page.items if item.id in below
                 and (row := listing.rows.get(item.id)) and not row.is_queued
                 and (at := row.updated_at) and at <= self.floor]  # fmt: skip
        for (first, earlier), (second, later) in pairwise(dated):
            if later > earlier:
                return first, second
        return ()

    async def unlisted(self, listing: Listing, since: datetime) -> set[str]:
        """Return loaded ids newer than `since` that no list of this scan shows."""
        newer = await self.pull.copy.updated(since, self.future)
        return set(newer) - listing.rank.keys() - self.above.keys() - self.pull.gone.keys()

    async def suspects(self, listing: Listing) -> dict[str, str]:
        """Return loaded records to read because the list contradicts their rows, with reasons."""
        copy, rows = self.pull.copy, listing.rows
        below = [e for e in listing.order[listing.boundary :] if e.id not in self.above]
        found = dict.fromkeys(sorted(await copy.differing(below)), "differs")
        dates = list[datetime]()
        for item in below:
            row = rows.get(item.id)
            if row is None or row.is_deleted:
                found[item.id] = "listed"
            elif row.updated_at is not None and row.updated_at <= self.future:
                dates.append(row.updated_at)
        if not listing.order:
            dates = [datetime.min.replace(tzinfo=UTC)]
        if dates and dates == sorted(dates, reverse=True):
            found |= dict.fromkeys(sorted(await self.unlisted(listing, dates[-1])), "absent")
        found |= dict.fromkeys(await copy.undated(self.future), "undated")
        return {id: why for id, why in found.items() if not self.is_attempted(id)}

    def verified(self, listing: Listing) -> Bookmark:
        """Return the bookmark after a complete scan: R is the time before its first list.

        `closed_by` and `closed_floor` remember where the scan ended. If that record later turns out
        to have been older than the list, the next scan reaches down to this floor again.
        """
        mark, before = self.pull.mark, self.before
        assert mark.opened_at is not None
        assert before.proven_at is not None
        was_set_back = mark.opened_at < before.proven_at or (
            mark.closed_by is None and mark.closed_floor != before.closed_floor
        )
        floor = min(before.proven_at, mark.opened_at) - self.pull.lateness
        if was_set_back:
            floor = min(floor, mark.closed_floor or floor)
        is_soon = mark.opened_at - self.pull.lateness < before.proven_at
        if is_soon and mark.closed_by is not None and mark.closed_floor is not None:
            floor = min(floor, mark.closed_floor)
        closing = None if was_set_back or listing.closing is None else listing.closing.id
        return replace(
            mark,
            proven_at=max(before.proven_at, mark.opened_at),
            closed_by=closing,
            closed_floor=floor if closing is not None or was_set_back else None,
        )


async def scan(pull: Pull) -> tuple[str | None, Listing]:
    """Read every change since R, and move R. Return why it is not proven (None: it is)."""
    pull.reads.clear()
    pull.is_open = True
    if pull.mark.opened_at is not None:
        # A killed pass is continued, so its reads since its start count.
        live = await pull.copy.live(None, None)
        rows = await pull.copy.rows_by_id(tuple(live))
        pull.reads |= {
            id: (row.updated_at, 0)
            for id, row in rows.items()
            if row.read_at and row.read_at - SECOND >= pull.mark.opened_at and not row.is_queued
        }
    run = Scan(pull)
    reason, listing = await run.run()
    pull.is_open = False
    if pull.refused is not None:
        # Nothing of this list is believed, and the next pull starts again.
        pull.mark = replace(pull.mark, opened_at=None)
        await pull.copy.commit(Commit(bookmark=pull.mark))
        return pull.refused, listing
    suspects = await run.suspects(listing) if reason is None else {}
    if reason is None:
        pull.mark = replace(run.verified(listing), alarms=0, unsorted_at=None)
    elif reason == UNSORTED:
        alarms = pull.mark.alarms + 1
        at = listing.last.timestamp if alarms >= ALARMS_MAX else None
        pull.mark = replace(pull.mark, alarms=alarms, unsorted_at=at)
    pull.mark = replace(pull.mark, opened_at=None)
    events = {
        None: (),
        UNSORTED: (Event("unsorted", UNSORTED),),
        CHANGES_TOO_FAST: (Event("unproven", CHANGES_TOO_FAST),),
    }
    await pull.copy.commit(Commit(bookmark=pull.mark, enqueue=suspects, events=events[reason]))
    await read(pull, suspects)
    return reason, listing
