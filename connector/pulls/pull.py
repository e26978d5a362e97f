"""Exact pull of one stream, as plain async functions. The API and the local copy are injected.

    R, proven_at          server time up to which every change is loaded or queued
    L, lateness_seconds   a write that becomes visible at t is dated after t - L
    W, floor_of: R - L    every record dated up to W is loaded or queued
    T0, opened_at         server time before the first list of the running pass, the next R

    scan      list by `updated_at`, newest first, down to the first record that is certainly
              unchanged, and read every record above it; R becomes the time before the first list
    audit     compare the live rows with the total of the list; if they differ, halve the list by
              `created_at` until the deleted and the missing records are found
    sweep     every page by `created_at`: first load, unexplained totals, lists that are not sorted

A change while a list is read only moves a record up, so the scan becomes longer and never wrong.
Only a 404 of the API proves a deletion, and many deletions need the user's consent (`Pull.check`).
Every step is committed together with the bookmark that it justifies, so a pull may be killed at any
`await`. R is a server time before a list and never a value from the data, which may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from math import ceil

from connector.catalog.resource import (
    LATENESS_SECONDS_MAX,
    LATENESS_UNTIMED_SECONDS,
    Declaration,
    Order,
    Page,
    Resource,
)
from connector.errors import NotFound, UnreadableAnswer
from connector.pulls.ports import Api, Copy, PullOptions, PullResult
from connector.state.runs import Event
from connector.warehouse.stream import (
    Bookmark,
    Commit,
    DeletionProof,
    FoundDetail,
    LandedRow,
    UnreadableDetail,
)

BATCH_RECORDS_MAX = 1_000
"""Records of a commit, which limits the requests that a crash repeats."""

ATTEMPTS_MAX = 24
"""Listings of one scan, and sweeps that search missing records."""

SWEEP_ROUNDS_MAX = 3
ALARMS_MAX = 3
"""Scans in a row that find a list out of order until it counts as unsorted. A replica that lags
behind looks the same."""

WITNESSES_MAX = 5
"""Records that are read because the list contradicts their rows."""

SAME_PAGES_MAX = 2
"""Consecutive page numbers that may show the same records."""

GROWTH_MIN = 1_000
"""A search ends at twice the known records plus this number, whatever total the list reports."""

DELETIONS_MIN, DELETIONS_SHARE = 20, 0.05
"""Number, and share of the live records, of deletions that need no consent."""

CLOCK_SLACK_SECONDS = 5.0
"""Drift of two clocks between two lists; a larger one means that a clock was set."""

UNSORTED_FOR = timedelta(days=1)
"""Time until an unsorted list is scanned again, and until its details are read again."""

SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)
EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

UNSORTED = "the API does not sort this list, so a pull may find changes a day late"
NOT_SORTED_BY_CREATION = "the list is not sorted by created_at"
CHANGES_TOO_FAST = "the list changed faster than it could be read"
TOO_FEW = "the API counts more records than its list shows"
NOT_READ = "the API's answer could not be read for"
ONLY_THESE = "only the requested records were read"
MISSING = "are missing in the list"
HELD = "deletions_held"
"""Code of a result whose deletions wait for `--accept-deletes`."""


@dataclass
class Pull:
    """One pull of one stream: both sides, the bookmark, and what was read so far.

    Attributes:
        known: Number of live rows before the pull.
        refused: Reason why deletions are held; nothing is loaded afterwards.
        gone: Proofs of deletions that are not committed yet.
        unread: Reason by id for details that could not be read.
        hidden: Number of records that the API counts and no page shows.
        reads: `updated_at` of each detail read in this scan, and the number of the request.
        step: Number of requests so far.
        is_open: True while pages may set the start of a pass, the next R.
        shown: Order and ids of the last page, and the number of pages that equal it.
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
    unread: dict[str, str] = field(default_factory=dict)
    hidden: int = 0
    reads: dict[str, tuple[datetime | None, int]] = field(default_factory=dict)
    step: int = 0
    is_open: bool = False
    shown: tuple[object, int] = (None, 0)
    served_at: datetime = EVER[0]

    @property
    def lateness(self) -> timedelta:
        """L as a time span."""
        return timedelta(seconds=self.mark.lateness_seconds)

    async def save(self, *events: Event, **changes: object) -> None:
        """Change the bookmark, and commit it with events."""
        self.mark = replace(self.mark, **changes)  # type: ignore[arg-type]
        await self.copy.commit(Commit(bookmark=self.mark, events=events))

    def check(self, deleted: int, why: str, ids: Iterable[str] = ()) -> bool:
        """Return True if this number of deletions is plausible; else hold all of this pull.

        They are counted since the last accepted state. The whole of a resource is never few.
        """
        if self.options.accepts_deletes or self.refused is not None:
            return self.refused is None
        deleted += self.mark.deletions
        known = self.known + self.mark.deletions
        if deleted > max(DELETIONS_MIN, DELETIONS_SHARE * known) or 0 < known <= deleted:
            self.refused = f"{deleted} of {known} loaded records {why}"
            if examples := sorted(ids)[:3]:  # For a look at the platform.
                self.refused += f", for example {', '.join(examples)}"
        return self.refused is None

    def updated_at(self, id: str) -> datetime | None:
        """Return `updated_at` of the detail read in this scan; None without one."""
        return self.reads.get(id, (None, 0))[0]

    def read_step(self, id: str) -> int:
        """Return the number of the request that read the detail; -1 if it was not read."""
        return self.reads.get(id, (None, -1))[1]

    def is_attempted(self, id: str) -> bool:
        """Return True if the scan has read the record, or tried to."""
        return id in self.reads or id in self.gone or id in self.unread


# -- Bookmark --------------------------------------------------------------------------------------


def floor_of(mark: Bookmark) -> datetime:
    """Return W, the time up to which all records, by their date, are loaded or queued."""
    assert mark.proven_at is not None
    floor = mark.proven_at - timedelta(seconds=mark.lateness_seconds)
    if mark.closed_by is None and mark.closed_floor is not None:
        return min(floor, mark.closed_floor)
    return floor


def with_pass_start(page: Page[Resource], mark: Bookmark) -> Bookmark:
    """Return the bookmark with T0, the server time before the first page of a pass.

    Without a server time in the response, L is at least `LATENESS_UNTIMED_SECONDS`.
    """
    if page.served_at is None:
        mark = replace(mark, lateness_seconds=max(mark.lateness_seconds, LATENESS_UNTIMED_SECONDS))
    if mark.opened_at is not None:
        return mark
    before = page.timestamp - timedelta(seconds=page.round_trip_seconds) - SECOND
    return replace(mark, opened_at=before.replace(microsecond=0))


def with_clock_change(page: Page[Resource], mark: Bookmark) -> Bookmark:
    """Return the bookmark with an earlier W if the server clock was set back since the last page.

    Records written since then may be dated before R by the same amount.
    """
    before, ahead = mark.clock_ahead_seconds, page.server_ahead_seconds
    if ahead is None:
        return mark
    if before is None or ahead - before > CLOCK_SLACK_SECONDS:
        # Remembered when it is set forward, so that setting it right again is seen as well.
        return replace(mark, clock_ahead_seconds=ahead)
    if before - ahead <= CLOCK_SLACK_SECONDS:
        return mark
    distrusted = replace(mark, closed_by=None, clock_ahead_seconds=ahead)
    since = replace(distrusted, proven_at=mark.proven_at or mark.opened_at)
    return replace(distrusted, closed_floor=floor_of(since) - timedelta(seconds=before - ahead))


def with_lateness(mark: Bookmark, seconds: float) -> Bookmark:
    """Return the bookmark after a write that became visible `seconds` late: L is at least twice."""
    lateness = min(LATENESS_SECONDS_MAX, 2 * seconds)
    return replace(mark, lateness_seconds=max(mark.lateness_seconds, lateness))


def learn_lateness(pull: Pull, found: FoundDetail, row: LandedRow | None) -> Event | None:
    """Raise L if a version is dated before an earlier read that did not show it.

    If that read ended the last scan, the scan may have ended too high, and the next one reaches
    down to its floor (`Bookmark.closed_by`).
    """
    id, at, before = found.record.id, found.record.updated_at, pull.mark
    if at is None or before.proven_at is None or (row is not None and at == row.updated_at):
        return None
    if row is None or row.read_at is None:
        late = before.lateness_seconds if row is None and at <= floor_of(before) else 0.0
    else:
        late = (row.read_at - at).total_seconds()
        if id == before.closed_by and at < row.read_at + SECOND:
            pull.mark = replace(pull.mark, closed_by=None)
    pull.mark = with_lateness(pull.mark, late)
    if pull.mark.lateness_seconds == before.lateness_seconds:
        return None
    return Event("late", f"a change became visible {late:.0f} s or more late", id)


# -- Reading ---------------------------------------------------------------------------------------


async def list_page(pull: Pull, number: int, sort: str | None, order: Order) -> Page[Resource]:
    """Read one page, and note the server's clock.

    Raises `UnreadableAnswer` if several page numbers show the same records.
    """
    page = await pull.api.page(number, sort, order)
    pull.step += 1
    pull.mark = with_clock_change(page, pull.mark)
    if page.total_error is not None:
        pull.mark = replace(pull.mark, is_total_exact=page.total_error == 0)
    if pull.is_open:
        pull.mark = with_pass_start(page, pull.mark)
    shown, times = (sort, order, number == 1, *(item.id for item in page.items)), 0
    if number > 1 and not page.is_end and shown == pull.shown[0]:
        times = pull.shown[1] + 1
    pull.shown, pull.total, pull.served_at = (shown, times), page.total, page.timestamp
    if times >= SAME_PAGES_MAX:
        raise UnreadableAnswer("the list", "answered with the same records on several pages")
    return page


async def read(pull: Pull, ids: Iterable[str], *, measures: bool = True) -> None:
    """Read details and commit them with the bookmark.

    Deletions wait in `pull.gone` until `settle`. Records that could not be read are queued.
    `measures` raises L if a record shows a change that an earlier read had missed.
    """
    todo = dict.fromkeys(ids)
    while todo:
        batch = tuple(islice(todo, BATCH_RECORDS_MAX))
        rows = await pull.copy.rows_of(batch) if measures else {}
        outcomes = await pull.api.details(batch)
        pull.step += 1
        found, unread = list[FoundDetail](), dict[str, UnreadableDetail]()
        for id, outcome in outcomes.items():
            del todo[id]
            pull.unread.pop(id, None)
            pull.gone.pop(id, None)
            if isinstance(outcome, FoundDetail):
                found.append(outcome)
                pull.reads[id] = outcome.record.updated_at, pull.step
            elif isinstance(outcome, DeletionProof):
                pull.gone[id] = outcome
                pull.reads.pop(id, None)
            else:
                unread[id] = outcome
                pull.unread[id] = outcome.message or outcome.reason
        events = [learn_lateness(pull, e, rows.get(e.record.id)) for e in found if measures]
        await pull.copy.commit(Commit(
            records=tuple(found), enqueue={id: each.reason for id, each in unread.items()},
            unread=unread, bookmark=pull.mark, events=tuple(filter(None, events)),
        ))  # fmt: skip


async def settle(pull: Pull) -> None:
    """Commit the waiting deletions if they are few; else queue the records and hold them."""
    gone, pull.gone = pull.gone, {}
    if not gone:
        return
    live = sum(not row.is_deleted for row in (await pull.copy.rows_of(gone.keys())).values())
    if pull.check(live, "were answered with 404", gone):
        pull.mark = replace(pull.mark, deletions=pull.mark.deletions + live)
        await pull.copy.commit(Commit(gone=gone, bookmark=pull.mark))
    else:
        await pull.copy.commit(Commit(enqueue=dict.fromkeys(gone, "gone")))


async def drain(pull: Pull) -> None:
    """Read the queue, newest first, and settle the deletions."""
    skip = pull.unread.keys() | pull.gone.keys()
    while ids := await pull.copy.queued(BATCH_RECORDS_MAX, skip):
        await read(pull, ids)
        skip = pull.unread.keys() | pull.gone.keys()
    await settle(pull)


# -- Scan ------------------------------------------------------------------------------------------


class Listing:
    """One read of the list by `updated_at`: distinct items in order, and where they were shown.

    Attributes:
        rank: Number of items that preceded each one when it was shown last.
        number: Number of the page that showed it last.
        step: Number of the request that showed it last.
        boundary: Index in `order` of the first record that is certainly unchanged.
        has_shifted: True if the total or the page size changed between two pages.
    """

    def __init__(self) -> None:
        self.pages: list[Page[Resource]] = []
        self.order: list[Resource] = []
        self.shown = 0
        self.rank: dict[str, int] = {}
        self.number: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.rows: dict[str, LandedRow] = {}
        self.states: dict[int, str] = {}
        self.boundary = 0
        self.has_shifted = False

    @property
    def last(self) -> Page[Resource]:
        """Page that was listed last."""
        return self.pages[-1]

    @property
    def count(self) -> int:
        """Number of records in the list: the items up to its end, or else its total."""
        return self.shown if self.last.is_end else self.last.total

    @property
    def closing(self) -> Resource | None:
        """First unchanged item; None if the list ends without one."""
        return self.order[self.boundary] if self.boundary < len(self.order) else None

    async def add(self, pull: Pull) -> None:
        """List the next page."""
        page = await list_page(pull, len(self.pages) + 1, "updated_at", "desc")
        if self.pages:
            last = self.last
            self.has_shifted |= page.total < last.total or page.per_page != last.per_page
        self.pages.append(page)
        fresh = {item.id: item for item in page.items if item.id not in self.rank}
        self.order += fresh.values()
        self.rank |= {each.id: rank for rank, each in enumerate(page.items, self.shown)}
        self.number |= dict.fromkeys((each.id for each in page.items), page.page)
        self.step |= dict.fromkeys((each.id for each in page.items), pull.step)
        self.rows |= await pull.copy.rows_of(fresh.keys())
        self.shown += len(page.items)


class Scan:
    """Reads every change since R.

    Most lists do not show `updated_at`: the loaded rows predict where unchanged records begin, and
    a detail that was read after the list decides.

    Attributes:
        floor: W: a record dated at or before it is unchanged.
        future: A record dated after this time has a wrong date.
        above: Ids listed above a boundary in any listing of this scan.
        listing: The present listing.
    """

    def __init__(self, pull: Pull) -> None:
        self.pull, self.before = pull, pull.mark
        self.floor, self.future = floor_of(pull.mark), EVER[1]
        self.above: dict[str, None] = {}
        self.listing = Listing()
        self.lists_dates = pull.resource.lists_updated_at

    async def run(self) -> str | None:
        """Return the reason why the scan proves nothing (None: it does)."""
        pull, disorders = self.pull, 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self.listing = Listing()
            if not await self.find_boundary() and attempt < ATTEMPTS_MAX:
                continue  # The pages show too few records, and only they are read again.
            if not await self.is_plausible():
                return pull.refused
            await read(pull, [id for id in self.above if not pull.is_attempted(id)])
            if floor_of(pull.mark) < self.floor:
                self.floor = floor_of(pull.mark)
                continue  # L was raised or the clock was set back: reach further down.
            if witnesses := await self.disorder():
                disorders += 1
                if disorders == 2:  # The first one may be due to a late write.
                    return UNSORTED
                for id in witnesses:
                    pull.reads.pop(id, None)
            elif await self.is_complete():
                return None
        return CHANGES_TOO_FAST

    # -- The boundary --

    async def find_boundary(self) -> bool:
        """List pages down to the first unchanged record, and add those above it to `above`.

        From the index that the rows predict, the search goes in steps of 1, 2, 4, ... and then
        halves. Returns False if the pages show fewer records above it than there are.
        """
        pull, listing = self.pull, self.listing
        await listing.add(pull)
        assert pull.mark.opened_at is not None
        self.floor = min(self.floor, floor_of(pull.mark))
        self.future = pull.mark.opened_at + pull.lateness
        self.future += timedelta(seconds=LATENESS_UNTIMED_SECONDS)
        start = await self.list_to_prediction()
        if self.lacks_ids(start):
            return False
        low, high, stride = start - 1, start, 1
        while (state := await self.state(high)) in ("dirty", "odd"):
            if state == "odd":  # It proves nothing about the others.
                high += 1
                continue
            low, high, stride = high, high + stride, stride * 2
            while high >= len(listing.order) and self.continues():
                await listing.add(pull)
                if self.predict(low) > low + 1:  # A further page shows that the rows were wrong.
                    high = await self.list_to_prediction(low)
                    break
        high = min(high, len(listing.order))
        while high - low > 1:
            middle = (low + high) // 2
            if await self.state(middle) in ("clean", "end"):
                high = middle
            else:
                low = middle
        listing.boundary = high
        return not self.lacks_ids(high)

    async def list_to_prediction(self, changed: int = -1) -> int:
        """List pages until the rows predict an unchanged record; return its index."""
        while (start := self.predict(changed)) >= len(self.listing.order) and self.continues():
            await self.listing.add(self.pull)
        return start

    def continues(self) -> bool:
        """Return True if a page follows. Only a total that was right before shows the end."""
        last = self.listing.last
        return not (last.is_end or (self.pull.mark.is_total_exact and last.is_last))

    def predict(self, changed: int) -> int:
        """Return the first index from which all rows are unchanged and in the order of the list.

        It is greater than the index `changed`. Queued records below it are read with the queue.
        """
        listing, newer = self.listing, EVER[0]
        start = len(listing.order)
        for index in range(len(listing.order) - 1, changed, -1):
            item = listing.order[index]
            row = LandedRow(item.updated_at) if self.lists_dates else listing.rows.get(item.id)
            if row is None or row.is_deleted:
                break
            if row.is_queued:
                continue
            at = row.updated_at
            if at is not None and at <= self.future:
                if at > self.floor or at < newer:
                    break
                newer = at
            start = index
        return start

    async def state(self, index: int) -> str:
        """Return "dirty", "clean", "odd" (without a valid date) or "end" for an index.

        May list pages, and reads the detail unless it was read after the list.
        """
        pull, listing = self.pull, self.listing
        while index >= len(listing.order) and self.continues():
            await listing.add(pull)
        if index >= len(listing.order):
            return "end"
        if index not in listing.states:
            listing.states[index] = await self.state_of(listing.order[index])
        return listing.states[index]

    async def state_of(self, item: Resource) -> str:
        """Return the state of an item."""
        pull, id = self.pull, item.id
        at = item.updated_at if self.lists_dates else pull.updated_at(id)
        is_changed = id in pull.gone or (at is not None and self.floor < at <= self.future)
        row = self.listing.rows.get(id)
        is_loaded = row is not None and row.read_at and not row.is_queued and not row.is_deleted
        if row and is_loaded and not is_changed and (row.updated_at or EVER[1]) > self.future:
            return "odd"  # It is read in any case.
        if not self.lists_dates and not is_changed:  # Else it is, since dates only grow.
            if pull.read_step(id) <= self.listing.step[id]:
                await read(pull, (id,))
            if id in pull.gone or id in pull.unread:
                return "dirty"
            at = pull.updated_at(id)
        if id in pull.gone:
            return "dirty"
        if at is None or at > self.future:
            return "odd"
        return "dirty" if at > self.floor else "clean"

    def date_of(self, item: Resource) -> datetime | None:
        """Return the date that the record had in the list: its own, or one read afterwards."""
        if self.lists_dates:
            return item.updated_at
        at, step = self.pull.reads.get(item.id, (None, -1))
        return at if step > self.listing.step[item.id] else None

    # -- Completeness --

    def lacks_ids(self, boundary: int) -> bool:
        """Note the records above the boundary. Return True if several pages show too few."""
        listing = self.listing
        self.above |= dict.fromkeys(each.id for each in listing.order[:boundary])
        if len(listing.pages) == 1:
            return False
        need = listing.count
        if boundary < len(listing.order):
            need = listing.rank[listing.order[boundary].id]
        return listing.has_shifted or len(self.above.keys() - self.pull.gone.keys()) < need

    async def is_complete(self) -> bool:
        """Return True if every record above the boundary was certainly read.

        One page is one point in time. Several pages may shift between two requests, so the records
        that were above the first unchanged rank at the last page are counted. They are a subset of
        all records above that rank: equal numbers mean that none is missing.
        """
        pull, listing, last = self.pull, self.listing, self.listing.last
        if len(listing.pages) == 1:
            return True
        last_step = max(listing.step.values(), default=0)
        await read(pull, [id for id in self.above if id not in listing.rank
                          and id not in pull.gone and pull.read_step(id) < last_step])  # fmt: skip
        clean = (listing.rank[item.id] for item in listing.order
                 if (at := self.date_of(item)) is not None and at <= self.floor)  # fmt: skip
        need, until = min(clean, default=listing.count), last.timestamp - SECOND

        def was_above(id: str) -> bool:
            if id in listing.rank:
                return listing.rank[id] < need
            at = pull.updated_at(id)
            return at is not None and self.floor < at <= until

        alive = {id for id in self.above.keys() - pull.gone.keys() if was_above(id)}
        unread = {id for id in alive & pull.unread.keys() if listing.step.get(id) != last_step}
        if len(alive) < need or listing.has_shifted:
            return False
        await read(pull, sorted(unread))  # Perhaps they can be read now.
        alive -= pull.gone.keys()
        if unread := unread & pull.unread.keys():
            shown = set[str]()
            for number in sorted({listing.number[id] for id in unread & listing.rank.keys()}):
                page = await list_page(pull, number, "updated_at", "desc")
                shown |= {item.id for item in page.items}
            alive -= unread - shown
        return len(alive) >= need

    # -- Contradictions --

    async def is_plausible(self) -> bool:
        """Return True if the list does not lack suspiciously many loaded records."""
        pull, listing = self.pull, self.listing
        unknown = len(listing.order) - sum(not row.is_deleted for row in listing.rows.values())
        missing = pull.known + unknown - listing.count
        if missing <= 0:
            return True
        last = listing.rows.get(listing.order[-1].id) if listing.last.is_full else None
        since = last.updated_at if last is not None else None
        absent = await pull.copy.updated(since or EVER[0], self.future) - listing.rank.keys()
        return pull.check(missing, MISSING, absent)

    async def disorder(self) -> set[str]:
        """Return ids that prove that the list is not sorted by `updated_at`; usually none.

        Two records of one page in the wrong order prove it, by dates read after the list. So does a
        loaded record that is newer than the boundary and not listed above it, and a pair of rows
        below the boundary in the wrong order, if reading them again confirms their dates.
        """
        pull, listing = self.pull, self.listing
        assert pull.mark.opened_at is not None
        limit = pull.mark.opened_at - pull.lateness

        def misplaced(items: Iterable[Resource]) -> set[str]:
            dates = {e.id: at for e in items if (at := self.date_of(e)) and at <= limit}
            pairs = pairwise(dates.items())
            return {id for a, b in pairs if b[1] > a[1] for id in (a[0], b[0])}

        for page in listing.pages:
            if found := misplaced(page.items):
                return found
        for page in () if self.lists_dates else listing.pages:
            pair = self.misplaced_rows(page)
            await read(pull, [id for id in pair if not pull.is_attempted(id)])
            if pair and (found := misplaced(e for e in page.items if e.id in pair)):
                return found
        last = self.date_of(listing.closing) if listing.closing else None
        if last is None or last > limit:
            return set()
        witnesses = sorted(await self.unlisted(last))[:WITNESSES_MAX]
        await read(pull, witnesses)
        return {id for id in witnesses if (at := pull.updated_at(id)) and last < at <= limit}

    def misplaced_rows(self, page: Page[Resource]) -> tuple[str, ...]:
        """Return two listed ids below the boundary whose rows are in the wrong order, or none."""
        below = {item.id for item in self.listing.order[self.listing.boundary :]}
        below -= self.above.keys()
        dated = [(item.id, at) for item in page.items if item.id in below
                 and (row := self.listing.rows.get(item.id)) and not row.is_queued
                 and (at := row.updated_at) and at <= self.floor]  # fmt: skip
        for (first, earlier), (second, later) in pairwise(dated):
            if later > earlier:
                return first, second
        return ()

    async def unlisted(self, since: datetime) -> set[str]:
        """Return loaded ids newer than `since` that no list of this scan shows."""
        newer = await self.pull.copy.updated(since, self.future)
        return set(newer) - self.listing.rank.keys() - self.above.keys() - self.pull.gone.keys()

    async def suspects(self) -> dict[str, str]:
        """Return loaded records to read because the list contradicts their rows, with reasons."""
        copy, listing = self.pull.copy, self.listing
        below = [e for e in listing.order[listing.boundary :] if e.id not in self.above]
        found = dict.fromkeys(sorted(await copy.differing(below)), "differs")
        dates = [] if listing.order else [EVER[0]]
        for item in below:
            row = listing.rows.get(item.id)
            if row is None or row.is_deleted:
                found[item.id] = "listed"
            elif row.updated_at is not None and row.updated_at <= self.future:
                dates.append(row.updated_at)
        if dates and dates == sorted(dates, reverse=True):
            found |= dict.fromkeys(sorted(await self.unlisted(dates[-1])), "absent")
        found |= dict.fromkeys(await copy.undated(self.future), "undated")
        return {id: why for id, why in found.items() if not self.pull.is_attempted(id)}

    def verified(self) -> Bookmark:
        """Return the bookmark after a complete scan: R is the time before its first list.

        `closed_by` and `closed_floor` remember where the scan ended. If that record later turns out
        to have been older than the list, the next scan reaches down to this floor again.
        """
        mark, proven_at, closing = self.pull.mark, self.before.proven_at, self.listing.closing
        assert mark.opened_at is not None
        assert proven_at is not None
        was_set_back = mark.opened_at < proven_at or (
            mark.closed_by is None and mark.closed_floor != self.before.closed_floor
        )
        floor = min(proven_at, mark.opened_at) - self.pull.lateness
        is_soon = mark.opened_at - self.pull.lateness < proven_at
        if was_set_back or (is_soon and mark.closed_by is not None):
            floor = min(floor, mark.closed_floor or floor)
        is_remembered = was_set_back or closing is not None
        return replace(
            mark,
            proven_at=max(proven_at, mark.opened_at),
            opened_at=None,
            closed_by=None if was_set_back or closing is None else closing.id,
            closed_floor=floor if is_remembered else None,
            alarms=0,
            unsorted_at=None,
        )


async def scan(pull: Pull) -> tuple[str | None, Listing]:
    """Read every change since R, and move R. Return why it is not proven (None: it is)."""
    pull.reads.clear()
    if pull.mark.opened_at is not None:
        # A killed pass is continued, so its reads since its start count.
        rows = await pull.copy.rows_of(await pull.copy.live(None, None))
        pull.reads |= {
            id: (row.updated_at, 0)
            for id, row in rows.items()
            if row.read_at and row.read_at - SECOND >= pull.mark.opened_at and not row.is_queued
        }
    pull.is_open, run = True, Scan(pull)
    reason = await run.run()
    pull.is_open = False
    if reason is None:
        suspects, pull.mark = await run.suspects(), run.verified()
        await pull.copy.commit(Commit(bookmark=pull.mark, enqueue=suspects))
    elif reason == UNSORTED:
        alarms = pull.mark.alarms + 1
        at = run.listing.last.timestamp if alarms >= ALARMS_MAX else None
        event = Event("unsorted", UNSORTED)
        await pull.save(event, opened_at=None, alarms=alarms, unsorted_at=at)
    else:  # Nothing of a refused list counts, and the next pull starts again.
        events = (Event("unproven", reason),) if pull.refused is None else ()
        await pull.save(*events, opened_at=None)
    return reason, run.listing


# -- Audit -----------------------------------------------------------------------------------------


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

    def __init__(self, pull: Pull) -> None:
        self.pull = pull
        self.listed: dict[int, frozenset[str]] = {}
        self.absent: set[str] = set()
        self.pages: list[Page[Resource]] = []

    async def run(self, total: int, per_page: int) -> set[str]:
        """Return loaded ids that no page shows. Missing records are loaded and queued."""
        most = 2 * self.pull.known + GROWTH_MIN  # Whatever total the list reports.
        end = Cut(ceil(min(total, most) / per_page) + 1, total, None)
        waiting = [(Cut(0, 0, None), end)]
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
        while unread := [n for n in range(low.page + 1, high.page) if n not in self.listed]:
            page = await self.read_page(
                min(unread, key=lambda n: abs(2 * n - low.page - high.page))
            )
            base, items = (page.page - 1) * page.per_page, page.items
            if page.is_end:
                rank = base + len(items) if items else min(base, high.rank)
                high = Cut(page.page + bool(items), rank, None)
            cuts = [Cut(page.page, base + n, items[n].created_at) for n in range(1, len(items))
                    if items[n - 1].created_at < items[n].created_at]  # fmt: skip
            if cuts:
                return [(cuts[-1], high), (low, cuts[0])]
        pages = (self.listed[n] for n in range(low.page, high.page + 1) if n in self.listed)
        after = None if low.at is None else low.at - TICK
        await self.note_absent(frozenset().union(*pages), after, high.at)
        return []

    async def read_page(self, number: int) -> Page[Resource]:
        """Read one page: load and queue missing records, and queue records that differ."""
        pull = self.pull
        page = await list_page(pull, number, "created_at", "asc")
        self.pages.append(page)
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
        self.pull.check(len(self.absent), MISSING, self.absent)


async def audit(pull: Pull, listing: Listing, gone: int) -> str | None:
    """Compare the live rows with the list's total, and find the difference.

    `gone` listed records were found to be deleted since. Returns why a difference remains, or None.
    """
    unlisted = pull.unread.keys() - listing.rank.keys()
    strangers = unlisted - (await pull.copy.rows_of(unlisted)).keys()
    if strangers or not pull.mark.is_total_exact or any(page.is_short for page in listing.pages):
        return await compare_all(pull)  # A wrong total could hide a deletion.
    total = max(0, listing.count - gone)
    if await pull.copy.count() == total:
        return None
    pull.api.purpose, search = "sweep", Search(pull)
    absent = await search.run(total, listing.last.per_page)
    if pull.refused is None:
        await read(pull, sorted(absent))
        await drain(pull)
    if pull.refused is not None:
        return pull.refused
    if not search.pages or await pull.copy.count() == search.pages[-1].record_count():
        return None
    if {page.total for page in search.pages} != {listing.last.total}:
        return None  # The list changes while it is read, so the next pull compares again.
    return await compare_all(pull)


# -- Sweep -----------------------------------------------------------------------------------------


class Sweep:
    """Reads of every page in order of creation.

    Attributes:
        seen: Listed ids.
        new: Listed ids that may have become visible since the first page.
        items, queue: What has to be loaded or read; kept until `land`.
    """

    def __init__(self, pull: Pull) -> None:
        self.pull = pull
        self.seen: set[str] = set()
        self.new: set[str] = set()
        self.items: dict[str, Resource] = {}
        self.queue: dict[str, str] = {}
        self.pages: list[Page[Resource]] = []
        self.is_sorted = True

    @property
    def missing(self) -> int:
        """Number of rows that short pages do not show."""
        latest = {page.page: page for page in self.pages}
        return sum(page.per_page - len(page.items) for page in latest.values() if page.is_short)

    @property
    def count(self) -> int:
        """Number of records, by the rows of the last page and of short ones before it."""
        return self.pages[-1].record_count() - self.missing

    @property
    def is_steady(self) -> bool:
        """Return True if all pages had the same total."""
        return len({page.total for page in self.pages}) == 1

    async def run(self, *, lands: bool = False, rereads: str = "") -> None:
        """Read all pages.

        Args:
            lands: Load the items of each batch immediately, and note the page for a resumed load.
            rereads: Queue all listed records ("all"), or those read too early ("early").
        """
        pull, total = self.pull, 0
        sort = "created_at" if pull.resource.sortable else None
        number = (pull.mark.load_page or 1) if lands else 1
        while True:
            page = await list_page(pull, number, sort, "asc")
            has_shrunk, total = page.total < total, page.total
            await self.add(page, rereads)
            if lands:
                pull.mark = replace(pull.mark, load_page=number)
                if len(self.items) >= BATCH_RECORDS_MAX:
                    await self.land()
            if has_shrunk and number > 1:
                number -= 1  # A deletion moved a record to the page before.
            elif page.is_last:
                break
            else:
                number += 1

    async def add(self, page: Page[Resource], rereads: str) -> None:
        """Note what a page shows, and what has to be loaded or read because of it."""
        pull = self.pull
        self.pages.append(page)
        dates = [item.created_at for item in page.items if item.created_at is not None]
        self.is_sorted &= all(earlier <= later for earlier, later in pairwise(dates))
        self.seen |= (ids := {item.id for item in page.items})
        rows = await pull.copy.rows_of(ids)
        since = self.pages[0].timestamp - pull.lateness
        for item in page.items:
            row = rows.get(item.id)
            if row is None or row.is_deleted:
                self.items[item.id] = item
            if row is None and (item.created_at is None or item.created_at > since):
                self.new.add(item.id)
            if rereads == "all" or (rereads and row and is_read_too_early(pull, page, item, row)):
                self.queue[item.id] = "full" if rereads == "all" else "stale"
        self.queue |= dict.fromkeys(await pull.copy.differing(page.items), "differs")

    async def land(self) -> None:
        """Load the unknown records, queue the others, and commit the bookmark."""
        items, mark = tuple(self.items.values()), self.pull.mark
        await self.pull.copy.commit(Commit(items=items, enqueue=self.queue, bookmark=mark))
        self.items, self.queue = {}, {}

    async def live(self) -> frozenset[str]:
        """Return the live ids, without records that are neither listed nor readable."""
        return await self.pull.copy.live(None, None) - (self.pull.unread.keys() - self.seen)

    async def has_seen_all(self) -> bool:
        """Return True if as many records were seen as existed at the first page.

        A record may be hidden by a tie or move to an earlier page while another is deleted, so that
        the count at the last page agrees. But then fewer were seen than existed.
        """
        existed = self.pages[0].total + min(0, self.count - self.pages[-1].total)
        return len(self.seen | await self.live()) - len(self.new) >= existed

    async def forget_strays(self) -> None:
        """Forget ids that were listed once, cannot be read, and that the whole list lacks."""
        absent = self.pull.unread.keys() - self.seen
        rows = await self.pull.copy.rows_of(absent)
        strays = sorted(id for id in absent if id not in rows or rows[id].read_at is None)
        detail = "was listed once, cannot be read, and no complete list shows it"
        events = tuple(Event("stray", detail, id) for id in strays)
        await self.pull.copy.commit(Commit(forget=tuple(strays), events=events))
        for id in strays:
            del self.pull.unread[id]


def is_read_too_early(pull: Pull, page: Page[Resource], item: Resource, row: LandedRow) -> bool:
    """Return True if a listed record must be read although no listed value differs.

    If the list shows `updated_at`, the detail must have been read later than that time plus L. If
    not, a detail of an earlier pull proves nothing; in a list that should be sorted it is kept for
    a day.
    """
    daily = page.timestamp - UNSORTED_FOR
    limit = daily if pull.resource.sortable else page.timestamp
    if pull.resource.lists_updated_at and item.updated_at is not None:
        limit = max(daily, item.updated_at + pull.lateness)
    return row.read_at is not None and row.read_at < limit


async def compare_all(pull: Pull, *, reads_all: bool = False) -> str | None:
    """Compare every page until all listed records are loaded and all others proven deleted.

    Returns why the copy is not proven, or None.
    """
    copy, rereads = pull.copy, "all" if reads_all else ""
    pull.api.purpose = "sweep" if pull.mark.proven_at is not None else "pull"
    for _ in range(SWEEP_ROUNDS_MAX):
        before, swept = await copy.live(None, None), Sweep(pull)
        await swept.run(rereads=rereads)
        absent, rereads = before - swept.seen, ""
        if not pull.check(len(absent), MISSING, absent):
            return pull.refused
        await swept.land()
        if not swept.is_sorted:
            return NOT_SORTED_BY_CREATION
        await read(pull, sorted(absent))
        await drain(pull)
        for _ in range(ATTEMPTS_MAX):
            if pull.refused is not None or await copy.count() >= swept.count:
                break  # Else ties hide records from some pages: list again.
            await swept.run()
            await swept.land()
            await drain(pull)
        if pull.refused is not None:
            return pull.refused
        live = len(await swept.live())
        if live >= swept.count and await swept.has_seen_all():
            last = swept.pages[-1]
            pull.hidden = last.total - live if swept.missing and last.items else 0
            await check_total(pull, swept, live)
            return None
    return TOO_FEW


async def check_total(pull: Pull, swept: Sweep, live: int) -> None:
    """Check the list's total, now that all pages agree with the copy.

    A full last page does not show that the list ends there, so the newest records are listed, and
    loaded if no page showed them. An event reports a total that is wrong: every following pull
    compares all pages.
    """
    await swept.forget_strays()
    if swept.pages[-1].is_full:
        newest = await list_page(pull, 1, "created_at", "desc")
        unseen = tuple(item for item in newest.items if item.id not in swept.seen)
        pull.mark = replace(pull.mark, is_total_exact=not unseen and newest.total == live)
        await pull.copy.commit(Commit(items=unseen, bookmark=pull.mark))
        await drain(pull)
    if swept.missing:
        pull.mark = replace(pull.mark, is_total_exact=False)
    detail = f"the list contains {live} records, but its total is {swept.pages[-1].total}"
    is_wrong = swept.is_steady and not pull.mark.is_total_exact and not pull.hidden
    await pull.save(*(Event("total_off", detail),) * is_wrong)


async def first_load(pull: Pull) -> str | None:
    """Load every list item, read every detail, and compare every page again; R is the start.

    Returns why the stream is not loaded completely, or None.
    """
    pull.is_open, is_one_page = True, False
    if not pull.mark.is_listed:
        is_resumed, swept = pull.mark.load_page is not None, Sweep(pull)
        for attempt in range(ATTEMPTS_MAX):
            await swept.run(lands=attempt == 0)
            await swept.land()
            if await pull.copy.count() >= swept.count:
                break
        else:
            return TOO_FEW
        last = swept.pages[-1]
        is_one_page = len(swept.pages) == 1 and not is_resumed and not last.is_full
        unsorted_at = pull.mark.unsorted_at if swept.is_sorted else last.timestamp
        await pull.save(load_page=None, is_listed=True, unsorted_at=unsorted_at)
    await drain(pull)
    needs_second_read = pull.mark.unsorted_at is None and not is_one_page
    if needs_second_read and (reason := await compare_all(pull)) is not None:
        return reason
    await pull.save(is_listed=False, proven_at=pull.mark.opened_at, opened_at=None)
    pull.is_open = False
    return None


async def pull_whole(pull: Pull) -> str | None:
    """Read a list that cannot be sorted, or that the API does not sort. Return why not proven."""
    pull.is_open = True
    before, swept = await pull.copy.live(None, None), Sweep(pull)
    await swept.run(rereads="all" if pull.options.is_full else "early")
    is_whole = swept.is_steady and len(swept.seen) == swept.count
    if is_whole and len(swept.pages) > 1 and not pull.resource.sortable:
        again = Sweep(pull)  # A record can move to an earlier page while another is deleted.
        await again.run()
        is_whole = swept.seen <= again.seen
    absent = before - swept.seen if is_whole else frozenset()
    missing = len(before) + len(swept.items) - swept.count
    if pull.check(max(len(absent), missing), MISSING, absent):
        await swept.land()
        await read(pull, sorted(absent))
        await drain(pull)
        if is_whole:
            await swept.forget_strays()
    opened_at, proven_at = pull.mark.opened_at, pull.mark.proven_at
    assert opened_at is not None
    if is_whole and pull.refused is None and not pull.resource.sortable:
        proven_at = max(proven_at or opened_at, opened_at)
    await pull.save(opened_at=None, load_page=None, proven_at=proven_at)
    pull.is_open = False
    if pull.refused is not None or not is_whole:
        return pull.refused or "the list changed while it was read"
    return UNSORTED if pull.resource.sortable else None


# -- Pull ------------------------------------------------------------------------------------------


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
    reason = await update(pull)
    if pull.refused is not None:
        await pull.save(Event("mass_deletion", pull.refused))
        return PullResult(False, pull.refused, pull.total, HELD)
    if reason is None and pull.mark.deletions:
        await pull.save(deletions=0)
    if reason is None and pull.hidden:
        reason = f"{TOO_FEW}: {pull.hidden} more"
    return PullResult(reason is None, reason, pull.total)


async def update(pull: Pull) -> str | None:
    """Choose between a first load, a scan and a read of the whole list; return why not proven."""
    options, reason = pull.options, None
    if not pull.resource.sortable:
        return await pull_whole(pull)
    if pull.mark.proven_at is None:
        reason = await first_load(pull)
        if reason is None and pull.mark.unsorted_at is not None:
            reason = UNSORTED
    elif options.is_full or options.sweeps:
        reason = await compare_all(pull, reads_all=options.is_full)
    if reason is not None:
        return reason
    pull.api.purpose, unsorted_at = "pull", pull.mark.unsorted_at
    if unsorted_at is None or options.is_full:
        return await find_changes(pull)
    reason = await pull_whole(pull)
    if pull.served_at - unsorted_at >= UNSORTED_FOR:  # The next pull tries to scan again.
        await pull.save(unsorted_at=None)
    return reason


async def find_changes(pull: Pull) -> str | None:
    """Find changes, then deletions. Return why the copy is not proven, or None."""
    is_resumed = pull.mark.opened_at is not None
    reason, listing = await scan(pull)
    if is_resumed and reason is None:
        reason, listing = await scan(pull)  # The first one proves the time of the killed pass.
    if reason == UNSORTED:
        return await pull_whole(pull)
    gone = len(pull.gone.keys() & listing.rank.keys())
    if pull.refused is None:
        await drain(pull)
    if pull.options.verification_requests and pull.refused is None:
        pull.api.purpose = "scrub"
        await read(pull, await pull.copy.oldest(pull.options.verification_requests))
        await settle(pull)
    if reason is not None or pull.refused is not None:
        return pull.refused or reason
    return await audit(pull, listing, gone)


async def read_ids(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, ids: Sequence[str]
) -> PullResult:
    """Read only these records. A deleted record is marked as deleted immediately."""
    options = PullOptions(accepts_deletes=True)
    pull = Pull(api, copy, resource, mark, options, known=await copy.count())
    await read(pull, ids)
    await settle(pull)
    rows = await copy.rows_of(ids)
    reason = ONLY_THESE
    if pull.unread:
        reasons = (f"{id} ({why})" for id, why in sorted(pull.unread.items()))
        reason = f"{NOT_READ} {', '.join(reasons)}"
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
    gone = dict[str, DeletionProof]()
    if live:
        try:
            page = await list_page(pull, 1, "created_at", "desc")
        except NotFound as error:
            if not error.is_api_error or error.served_at is None:
                raise
            gone = dict.fromkeys(sorted(live), DeletionProof(error.served_at))
        else:
            reason = "the content type is deleted, but the API still lists its items"
            return PullResult(False, reason, page.total)
        why = "belong to a deleted parent"
        if len(live) > DELETIONS_MIN and not pull.check(len(live), why, live):
            await copy.commit(Commit(events=(Event("mass_deletion", str(pull.refused)),)))
            return PullResult(False, pull.refused, 0, HELD)
    await copy.commit(Commit(gone=gone, ends_stream=True))
    return PullResult(True, None, 0)
