"""Exact pull of one stream, as plain async functions. The API and the local copy are injected.

    R, proven_at          server time up to which every change is loaded or queued
    L, lateness_seconds   a write that becomes visible at t is dated after t - L
    W, floor_of: R - L    every record dated up to W is loaded or queued

    scan      list by `updated_at`, newest first, down to the first record that is certainly
              unchanged; read every record above it; R becomes the server time before the first list
    audit     compare the live rows with the total of the list; if they differ, halve the list by
              `created_at` until the deleted and the missing records are found
    sweep     every page by `created_at`: first load, unexplained totals, lists that are not sorted

A change while a list is read only moves a record up, so the scan becomes longer and never wrong.
Only a 404 of the API proves a deletion, and many deletions need the user's consent (`Pull.check`).
Every step is committed together with the bookmark that it justifies, so a pull may be killed at any
`await`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from math import ceil, inf
from typing import Protocol

from connector.catalog.resource import Declaration, Order, Page, Resource
from connector.errors_api import NotFound, UnreadableAnswer
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    BATCH_SECONDS_MAX,
    SECOND,
    Bookmark,
    Commit,
    DeletionProof,
    Event,
    FoundDetail,
    LandedRow,
    Outcome,
    UnreadableDetail,
    floor_of,
    future_limit,
    with_clock_change,
    with_lateness,
    with_pass_start,
)

ATTEMPTS_MAX = 24
"""Maximum number of listings of one scan, and of sweeps that search missing records."""

SWEEP_ROUNDS_MAX = 3
"""Maximum number of comparisons of all pages in one pull."""

SAME_PAGES_MAX = 2
"""Maximum number of consecutive page numbers that may show the same records."""

ALARMS_MAX = 3
"""Scans in a row that find a list out of order until it counts as unsorted. A replica that lags
behind looks the same."""

UNSORTED_FOR = timedelta(days=1)
"""Time until an unsorted list is scanned again, and until its details are read again."""

DELETIONS_MIN, DELETIONS_SHARE = 20, 0.05
"""Number, and share of the live records, of deletions that need no consent."""

WITNESSES_MAX = 5
"""Maximum number of records that are read because the list contradicts their rows."""

DETAILS_PER_PAGE = 20
"""Number of details that a re-verification reads for each page of the list."""

CHANGES_TOO_FAST = "the list changed faster than it could be read"
TOO_FEW = "the API counts more records than its list shows"
UNSORTED = "the API does not sort this list, so a pull may find changes a day late"
NOT_SORTED_BY_CREATION = "the list is not sorted by created_at"
NOT_READ = "the API's answer could not be read for"
ONLY_THESE = "only the requested records were read"
HELD = "deletions_held"
"""Code of a result whose deletions wait for `--accept-deletes`."""

TICK = timedelta(microseconds=1)


class Api(Protocol):
    """Reads of one stream from the API. `purpose` is what the requests are counted as."""

    purpose: str

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Return one page of the list."""

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Return the details of at least one of these records; the others are asked for again."""


class Copy(Protocol):
    """Rows and queue of one stream in the local copy. Live rows are those that are not deleted."""

    async def commit(self, commit: Commit) -> None:
        """Write everything in one transaction."""

    async def rows_of(self, items: Collection[Resource]) -> dict[str, LandedRow]:
        """Return the rows of these list items, by id."""

    async def rows_by_id(self, ids: Sequence[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""

    async def differing(self, records: Collection[Resource]) -> dict[str, tuple[str, ...]]:
        """Return the fields in which responses differ from the loaded details, by id."""

    async def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times (None: no bound)."""

    async def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""

    async def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""

    async def oldest(self, count: int) -> tuple[str, ...]:
        """Return the live ids whose details were read longest ago."""

    async def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""

    async def queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a pull beyond the minimum number of requests.

    Attributes:
        is_full: Read every record again.
        sweeps: Compare every page of the list, and read records that differ or are absent.
        accepts_deletes: Accept all deletions, because the user has confirmed them.
        verification_requests: Number of requests that compare verified records again.
    """

    is_full: bool = False
    sweeps: bool = False
    accepts_deletes: bool = False
    verification_requests: int = 0


@dataclass(frozen=True, slots=True)
class PullResult:
    """Result of a stream's pull.

    Attributes:
        is_proven: True if the local copy is verified up to the bookmark's time.
        reason: Reason why it is not verified.
        total: Number of records according to the last list.
        code: Error code that describes the next step, if deletions are held.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None


@dataclass
class Pull:
    """One pull of one stream: both sides, the bookmark, and what was read so far.

    Attributes:
        known: Number of live rows before the pull.
        refused: Reason why deletions are held; nothing is loaded afterwards.
        gone: Proofs of deletions that are not committed yet.
        unread: Ids whose details could not be read.
        reads: `updated_at` of each detail read in this scan, and the number of the request.
        step: Number of requests so far.
        served_at: Server time of the last list.
        is_open: True while pages may set the start of a pass, the next R.
    """

    api: Api
    copy: Copy
    resource: Declaration
    mark: Bookmark
    options: PullOptions
    known: int = 0
    total: int = 0
    refused: str | None = None
    gone: dict[str, DeletionProof] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    reads: dict[str, tuple[datetime | None, int]] = field(default_factory=dict)
    step: int = 0
    is_open: bool = False
    shown: tuple[str, ...] = ()
    same_pages: int = 0
    served_at: datetime = datetime.min.replace(tzinfo=UTC)

    @property
    def lateness(self) -> timedelta:
        """L as a time span."""
        return timedelta(seconds=self.mark.lateness_seconds)

    def check(self, deleted: int, why: str) -> bool:
        """Return True if so many deletions are plausible; else hold all deletions of this pull.

        They are counted since the last accepted state. The whole of a resource is never few.
        """
        if self.options.accepts_deletes or self.refused is not None:
            return self.refused is None
        deleted += self.mark.deletions
        known = self.known + self.mark.deletions
        if deleted > max(DELETIONS_MIN, DELETIONS_SHARE * known) or 0 < known <= deleted:
            self.refused = f"{deleted} of {known} loaded records {why}"
        return self.refused is None

    def updated_at(self, id: str) -> datetime | None:
        """Return `updated_at` of the detail read in this scan; None without one."""
        return self.reads.get(id, (None, 0))[0]

    def read_step(self, id: str) -> int:
        """Return the number of the request that read the detail; -1 if it was not read."""
        return self.reads.get(id, (None, -1))[1]


# -- Reading --------------------------------------------------------------------------------------


async def list_page(pull: Pull, number: int, sort: str | None, order: Order) -> Page[Resource]:
    """Read one page, and note the server's clock.

    Raises `UnreadableAnswer` if several page numbers show the same records.
    """
    page = await pull.api.page(number, sort, order)
    pull.step += 1
    pull.mark = with_clock_change(page, pull.mark)
    if pull.is_open:
        pull.mark = with_pass_start(page, pull.mark)
    shown = (str(sort), order, str(number == 1), *(item.id for item in page.items))
    is_same = number > 1 and page.is_full and shown == pull.shown
    pull.same_pages = pull.same_pages + 1 if is_same else 0
    pull.shown, pull.total, pull.served_at = shown, page.total, page.timestamp
    if pull.same_pages >= SAME_PAGES_MAX:
        raise UnreadableAnswer("the list", "answered with the same records on several pages")
    return page


async def read(pull: Pull, ids: Iterable[str], *, measures: bool = True) -> None:
    """Read details and commit them with the bookmark.

    Deletions wait in `pull.gone` until `settle`. Records that could not be read are queued.
    `measures` raises the lateness if a record shows a change that an earlier read had missed.
    """
    todo = dict.fromkeys(ids)
    while todo:
        batch = tuple(islice(todo, BATCH_RECORDS_MAX))
        rows = await pull.copy.rows_by_id(batch) if measures else {}
        outcomes = await pull.api.details(batch)
        pull.step += 1
        found, unread = list[FoundDetail](), dict[str, UnreadableDetail]()
        for id, outcome in outcomes.items():
            del todo[id]
            pull.unread.discard(id)
            pull.gone.pop(id, None)
            if isinstance(outcome, FoundDetail):
                found.append(outcome)
                pull.reads[id] = outcome.record.updated_at, pull.step
            elif isinstance(outcome, DeletionProof):
                pull.gone[id] = outcome
                pull.reads.pop(id, None)
            else:
                unread[id] = outcome
        pull.unread |= unread.keys()
        events = tuple(event for each in found if (event := learn_lateness(pull, each, rows)))
        queue = {id: each.reason for id, each in unread.items()}
        await pull.copy.commit(
            Commit(
                records=tuple(found), enqueue=queue, unread=unread, bookmark=pull.mark,
                events=events,
            )
        )  # fmt: skip


def learn_lateness(pull: Pull, found: FoundDetail, rows: dict[str, LandedRow]) -> Event | None:
    """Raise L if a version is dated before an earlier read that did not show it.

    If that read ended the last scan, the scan may have ended too high, and the next one reaches
    down to its floor (`Bookmark.closed_by`).
    """
    id, at, row = found.record.id, found.record.updated_at, rows.get(found.record.id)
    if at is None or pull.mark.proven_at is None:
        return None
    if row is None or row.read_at is None:
        late = pull.mark.lateness_seconds if row is None and at <= floor_of(pull.mark) else 0.0
    elif at == row.updated_at:
        return None
    else:
        if id == pull.mark.closed_by and at < row.read_at + SECOND:
            pull.mark = replace(pull.mark, closed_by=None)
        late = (row.read_at - at).total_seconds()
    before, pull.mark = pull.mark, with_lateness(pull.mark, late) if late > 0 else pull.mark
    if pull.mark.lateness_seconds == before.lateness_seconds:
        return None
    return Event("late", f"a change became visible {late:.0f} s or more late", id)


async def settle(pull: Pull) -> None:
    """Commit the waiting deletions if they are few; else queue the records and hold them."""
    gone, pull.gone = pull.gone, {}
    rows = await pull.copy.rows_by_id(tuple(gone)) if gone else {}
    live = sum(not row.is_deleted for row in rows.values())
    if pull.check(live, "were answered with 404"):
        pull.mark = replace(pull.mark, deletions=pull.mark.deletions + live)
        await pull.copy.commit(Commit(gone=gone, bookmark=pull.mark if gone else None))
    else:
        await pull.copy.commit(Commit(enqueue=dict.fromkeys(gone, "gone")))


async def drain(pull: Pull) -> None:
    """Read the queue, newest first, and settle the deletions that it proves."""
    while ids := await pull.copy.queued(
        BATCH_RECORDS_MAX, frozenset(pull.unread | pull.gone.keys())
    ):
        await read(pull, ids)
    await settle(pull)


# -- Scan -----------------------------------------------------------------------------------------


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
            if not self.is_plausible(listing):
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

    def is_plausible(self, listing: Listing) -> bool:
        """Return True if the list does not lack suspiciously many loaded records."""
        missing = self.pull.known + listing.unknown - listing.last.record_count()
        return self.pull.check(missing, "are missing in the list")

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
        while (start := self.predict(listing)) >= len(listing.order) and not listing.last.is_last:
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
        while index >= len(listing.order) and not listing.last.is_last:
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
        unread = {id for id in alive & pull.unread if listing.step.get(id) != last_step}
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
    events = (Event("unproven", reason),) if reason is not None else ()
    await pull.copy.commit(Commit(bookmark=pull.mark, enqueue=suspects, events=events))
    await read(pull, suspects)
    return reason, listing


# -- Audit ----------------------------------------------------------------------------------------


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

    def __init__(self, pull: Pull, total: int, per_page: int) -> None:
        self.pull = pull
        self.begin = Cut(0, 0, None)
        self.end = Cut(ceil(total / per_page) + 1, total, None)
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
        self.pull.check(len(self.absent), "are missing in the list")


async def audit(pull: Pull, listing: Listing, gone: int) -> str | None:
    """Compare the live rows with the list's total, and find the difference.

    `gone` listed records were found to be deleted since. Returns why a difference remains, or None.
    """
    if pull.mark.is_total_wrong:
        return await compare_all(pull)
    total = max(0, listing.last.record_count() - gone)
    if await pull.copy.count() == total:
        return None
    pull.api.purpose = "sweep"
    search = Search(pull, total, listing.last.per_page)
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


# -- Sweep ----------------------------------------------------------------------------------------


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
            elif rereads == "early" and row is not None and is_read_too_early(pull, page, item, row):
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


def is_read_too_early(
    pull: Pull, page: Page[Resource], item: Resource, row: LandedRow
) -> bool:
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
        if not pull.check(len(absent), "are missing in the list"):
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
        live = await pull.copy.live(None, None) - (pull.unread - swept.seen)
        # A tie may hide a record while another is deleted, so that the count agrees. But then fewer
        # records were seen than existed at the first page.
        existed = len(swept.seen | live) - len(swept.new)
        if len(live) >= swept.count() and existed >= swept.totals[0] + min(0, swept.error()):
            await note_total(pull, swept, len(live))
            return None
    return TOO_FEW


async def note_total(pull: Pull, swept: Sweep, live: int) -> None:
    """Remember whether the list's total is wrong although all pages agree with the copy.

    A wrong total could hide a deletion, so the following pulls compare all pages instead.
    """
    assert swept.last is not None
    if not swept.is_steady or swept.last.total_error is None:
        return
    is_wrong = swept.last.total_error != 0
    events = ()
    if is_wrong and not pull.mark.is_total_wrong:
        detail = f"the list contains {live} records, but its total is {swept.last.total}"
        events = (Event("total_off", detail),)
    pull.mark = replace(pull.mark, is_total_wrong=is_wrong)
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
    if pull.mark.unsorted_at is None and not is_one_page:
        if (reason := await compare_all(pull)) is not None:
            return reason
    pull.mark = replace(
        pull.mark, verify_page=None, proven_at=pull.mark.opened_at, opened_at=None
    )
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
    if pull.check(max(len(absent), missing), "are missing in the list"):
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


# -- Pull -----------------------------------------------------------------------------------------


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
        if pull.check(len(absent), "are missing in the list"):
            await read(pull, absent[: max(0, requests - (pull.step - step))])
        if before is None:
            break
    left = requests - (pull.step - step)
    if left > 0 and pull.refused is None:
        await read(pull, await pull.copy.oldest(left))
    await drain(pull)


async def run(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, options: PullOptions
) -> PullResult:
    """Update one stream with the fewest requests that prove it.

    Args:
        api: Reads of the stream.
        copy: Local copy of the stream.
        resource: Its resource.
        mark: Its bookmark.
        options: What to do beyond the minimum.

    Returns:
        Whether the copy is proven, and if not, why.
    """
    api.purpose = "pull"
    pull = Pull(api, copy, resource, mark, options, known=await copy.count())
    reason = await _run(pull)
    if pull.refused is not None:
        await copy.commit(Commit(events=(Event("mass_deletion", pull.refused),)))
        return PullResult(False, pull.refused, pull.total, HELD)
    if reason is None:
        pull.mark = replace(pull.mark, deletions=0)
        if pull.mark.deletions != mark.deletions:
            await copy.commit(Commit(bookmark=pull.mark))
    return PullResult(reason is None, reason, pull.total)


async def _run(pull: Pull) -> str | None:
    """Choose between a first load, a scan and a read of the whole list; return why not proven."""
    options, mark = pull.options, pull.mark
    if not pull.resource.sortable:
        return await pull_whole(pull, reads_all=options.is_full)
    if mark.proven_at is None:
        if (reason := await first_load(pull)) is not None:
            return reason
    elif options.is_full or options.sweeps:
        if (reason := await compare_all(pull, reads_all=options.is_full)) is not None:
            return reason
    pull.api.purpose = "pull"
    reason = await scan_and_audit(pull)
    if options.verification_requests and pull.refused is None:
        await reverify(pull, options.verification_requests)
    return reason


async def scan_and_audit(pull: Pull) -> str | None:
    """Find changes, then deletions. An unsorted list is read whole. Return why not proven."""
    at, is_resumed = pull.mark.unsorted_at, pull.mark.opened_at is not None
    if at is not None and not pull.options.is_full:
        whole = await pull_whole(pull)
        # The verdict is a day old at most; the next pull tries to scan again.
        if pull.mark.unsorted_at is not None and pull.served_at - at >= UNSORTED_FOR:
            pull.mark = replace(pull.mark, unsorted_at=None)
            await pull.copy.commit(Commit(bookmark=pull.mark))
        return whole
    await drain(pull)
    reason, listing = await scan(pull)
    if is_resumed and reason is None:
        reason, listing = await scan(pull)  # The first one proves the time of the killed pass.
    if reason == UNSORTED:
        return await pull_whole(pull)
    gone = len(pull.gone)
    if pull.refused is None:
        await settle(pull)
    if reason is not None or pull.refused is not None:
        return pull.refused or reason
    return await audit(pull, listing, gone)


async def read_ids(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, ids: Sequence[str]
) -> PullResult:
    """Read only these records. A deleted record is marked as deleted immediately."""
    pull = Pull(api, copy, resource, mark, PullOptions(accepts_deletes=True), await copy.count())
    await read(pull, ids)
    await settle(pull)
    rows = await copy.rows_by_id(ids)
    reason = ONLY_THESE
    if pull.unread:
        reason = f"{NOT_READ} {', '.join(sorted(pull.unread))}"
    elif absent := [id for id in ids if id not in rows]:
        reason = f"the API has no record {', '.join(absent)}"
    elif gone := sorted(id for id, row in rows.items() if row.is_deleted):
        reason = f"gone from the API: {', '.join(gone)}"
    return PullResult(False, reason, pull.known)


async def end_stream(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, options: PullOptions
) -> PullResult:
    """Mark the records of a stream as deleted because its parent is deleted.

    The 404 of the list proves all of these deletions.
    """
    live = await copy.live(None, None)
    pull = Pull(api, copy, resource, mark, options, known=len(live))
    gone: DeletionProof | None = None
    if live:
        try:
            page = await list_page(pull, 1, "created_at", "desc")
        except NotFound as error:
            if not error.is_api_error or error.served_at is None:
                raise
            gone = DeletionProof(error.served_at)
        else:
            reason = "the content type is deleted, but the API still lists its items"
            return PullResult(False, reason, page.total)
        if len(live) > DELETIONS_MIN and not pull.check(len(live), "belong to a deleted parent"):
            await copy.commit(Commit(events=(Event("mass_deletion", str(pull.refused)),)))
            return PullResult(False, pull.refused, 0, HELD)
    proofs = {id: gone for id in sorted(live) if gone is not None}
    await copy.commit(Commit(gone=proofs, ends_stream=True))
    return PullResult(True, None, 0)
