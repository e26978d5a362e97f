"""The walk: newest `updated_at` first, down to the first record that is proven landed.

    floor W = R - L: everything that the API dates at or before W is landed, or queued.

1.  List `updated_at` descending until the landed order predicts where the floor is. 2.  Find the
boundary: the first record whose *remote* `updated_at` is at or below W, by galloping from the
    prediction and then halving. The landed order only predicts; the detail, read after the list,
    decides. Everything below the boundary is older still, so it is landed (or queued) already.
3.  Read every record above the boundary, after the lists that showed it. 4.  Certify: one page is
one instant and proves itself. Several pages may have shifted between requests, so
    the distinct dirty records read must be as many as the boundary's rank says. Otherwise list
    again.
5.  Commit the rows, and R := T0, the server's time before the first list. A walk that could not
be certified
    keeps its R and says so.

Why it is sound: below a record with remote `updated_at` <= W, read after the list, everything is
at most as new as W, and everything so old was landed when R was proven. Edits in the meantime
only move records up, which makes the walk longer and never wrong. Ties need no care, since no
order within a tie is believed.

Pure: moments come with the answers; nothing here knows a clock, a socket or a database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from connector.engine import ask
from connector.engine.ask import (
    Bookmark,
    Commit,
    Event,
    Found,
    Gone,
    Known,
    PageSeen,
    Steps,
)
from connector.resource import Declaration, Resource

ATTEMPTS_MAX = 12
"""Listings of one walk before it gives up being proven: an API that changes faster than it is
read.
"""

BATCH_RECORDS_MAX = 100
"""Records read between two commits, which bounds what a crash costs."""

GONE_MIN = 20
GONE_SHARE = 0.02

_SECOND = timedelta(seconds=1)


def gone_max(live: int) -> float:
    """More missing records than this are no deletions but a key that lost sight of them."""
    return max(GONE_MIN, GONE_SHARE * live)


@dataclass(frozen=True, slots=True)
class Walked:
    """How a walk ended. `reason` says why it is not proven; `total` is the last list's.

    `gone` counts the records that were listed and then found to be deleted.
    """

    bookmark: Bookmark
    is_proven: bool
    reason: str | None
    total: int
    gone: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """A detail read in this pass: its `updated_at`, and the step at which it was read."""

    updated_at: datetime | None
    step: int


class _Listing:
    """One attempt's pages: the distinct items in listed order, each with rank and step."""

    def __init__(self) -> None:
        self.pages: list[PageSeen] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.last_step = 0
        self.has_shifted = False

    def add(self, page: PageSeen, step: int) -> tuple[Resource, ...]:
        """Take a page in; returns the items that this listing had not shown before."""
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
            # The last showing counts: a record that slid onto a later page stands at its new rank.
            self.rank[item.id] = (page.page - 1) * page.per_page + index
            self.step[item.id] = step
        return tuple(fresh)

    @property
    def is_complete(self) -> bool:
        """Whether the list has no further page."""
        return self.pages[-1].is_last


class Walk:
    """One pass over one stream, from its opening to its commit, as the module describes it."""

    def __init__(self, resource: Declaration, bookmark: Bookmark) -> None:
        assert bookmark.proven_at is not None, "a walk needs a floor: load the stream first"
        self._lists_cursor = resource.lists_cursor
        self._bookmark = bookmark
        self._lateness = timedelta(seconds=bookmark.lateness_seconds)
        self._floor = bookmark.proven_at - self._lateness
        self._is_resumed = bookmark.opened_at is not None
        self._step = 0
        self._known: dict[str, Known] = {}
        self._readings: dict[str, _Reading] = {}
        self._dead: set[str] = set()
        self._above: dict[str, None] = {}
        self._found: list[Found] = []
        self._gone: dict[str, Gone] = {}
        self._unread: dict[str, str] = {}

    def run(self) -> Steps[Walked]:
        """Walk until the pass is proven or the attempts are used up."""
        is_proven, reason = False, None
        for attempt in range(1, ATTEMPTS_MAX + 1):
            listing = _Listing()
            boundary = yield from self._find_boundary(listing)
            self._above.update(dict.fromkeys(item.id for item in listing.order[:boundary]))
            one_instant = len(listing.pages) == 1
            if not one_instant and attempt < ATTEMPTS_MAX and self._is_short(listing, boundary):
                continue  # Only lists were spent; the ids already seen are kept.
            yield from self._read(self._above_unread())
            is_proven = one_instant or (yield from self._certify(listing))
            if is_proven:
                break
        if not is_proven:
            reason = "the list changed faster than it could be read"
        if self._order_is_broken(listing):
            is_proven, reason = False, "the list is not sorted by updated_at"
        total = listing.pages[-1].total
        live = yield from ask.count_live()
        if live - total > gone_max(live):
            # What cannot be seen cannot be said to be unchanged, so R must not move either.
            is_proven, reason = False, f"the list shows {total} records where {live} are landed"
        bookmark = self._close(is_proven)
        events = () if is_proven else (Event("unproven", reason or ""),)
        yield from self._land(bookmark, events)
        return Walked(bookmark, is_proven, reason, total, len(self._dead))

    # -- the list --------------------------------------------------------------------------------

    def _extend(self, listing: _Listing) -> Steps[None]:
        """List one page more; the first one of the pass sets T0."""
        page = yield from ask.list_page(len(listing.pages) + 1, "updated_at", "desc")
        self._step += 1
        if self._bookmark.opened_at is None:
            self._bookmark = replace(self._bookmark, opened_at=opening(page))
        if not page.is_server_clock:
            self._bookmark = replace(
                self._bookmark,
                lateness_seconds=max(self._bookmark.lateness_seconds, ask.LATENESS_UNTIMED_SECONDS),
            )
        fresh = listing.add(page, self._step)
        known = yield from ask.recall(fresh)
        for item in fresh:
            self._remember(item.id, known.get(item.id))

    def _remember(self, id: str, known: Known | None) -> None:
        """Keep what is landed; a row read since T0, by a run that was cut short, counts as read.

        Only in a pass that is resumed: T0 lies a little before the pass, so in a new one a row that
        was read just before it would count as read since, and what came after would be missed.
        """
        if known is None:
            return
        self._known[id] = known
        opened_at = self._bookmark.opened_at if self._is_resumed else None
        if opened_at is None or known.read_at is None or known.is_queued:
            return
        # `Date` is cut to the second, so only a reading that is later by one is surely later.
        if known.read_at - _SECOND >= opened_at:
            self._readings.setdefault(id, _Reading(known.updated_at, 0))

    # -- the boundary ----------------------------------------------------------------------------

    def _find_boundary(self, listing: _Listing) -> Steps[int]:
        """The index in `listing.order` of the first clean record; its length if there is none."""
        yield from self._extend(listing)
        start = self._predict(listing)
        while start >= len(listing.order) and not listing.is_complete:
            yield from self._extend(listing)
            start = self._predict(listing)
        low, probe, stride = start - 1, start, 1
        while True:
            while probe >= len(listing.order) and not listing.is_complete:
                yield from self._extend(listing)
            if probe >= len(listing.order):
                high = len(listing.order)
                break
            if not (yield from self._is_dirty(listing, probe)):
                high = probe
                break
            low, probe, stride = probe, probe + stride, stride * 2
        while high - low > 1:
            middle = (low + high) // 2
            if (yield from self._is_dirty(listing, middle)):
                low = middle
            else:
                high = middle
        return high

    def _predict(self, listing: _Listing) -> int:
        """The smallest index from which on all items look landed and in order."""
        start, newer = len(listing.order), None
        while start > 0:
            item = listing.order[start - 1]
            if self._lists_cursor:
                updated_at = item.updated_at if self._is_below_floor(item.updated_at) else None
            else:
                known = self._known.get(item.id)
                is_settled = known is not None and not known.is_queued and not known.is_deleted
                updated_at = known.updated_at if known is not None and is_settled else None
            if updated_at is None or updated_at > self._floor:
                break
            if newer is not None and updated_at < newer:
                break
            newer = updated_at
            start -= 1
        return start

    def _is_below_floor(self, updated_at: datetime | None) -> bool:
        return updated_at is not None and updated_at <= self._floor

    def _is_dirty(self, listing: _Listing, index: int) -> Steps[bool]:
        """Whether the remote `updated_at` is above the floor, by evidence younger than the list."""
        item = listing.order[index]
        id = item.id
        if self._lists_cursor:
            return not self._is_below_floor(item.updated_at)
        if id in self._dead:
            return True
        reading = self._readings.get(id)
        if reading is not None:
            if not self._is_below_floor(reading.updated_at):
                return True  # Once dirty, dirty until R moves: `updated_at` only grows.
            if reading.step > listing.step[id]:
                return False
        yield from self._read((id,))
        reading = self._readings.get(id)
        # What could not be read is treated as dirty and queued: it proves nothing.
        return reading is None or not self._is_below_floor(reading.updated_at)

    # -- the details -----------------------------------------------------------------------------

    def _above_unread(self) -> tuple[str, ...]:
        """Ids above the boundary that this pass has not read yet."""
        settled = self._readings.keys() | self._dead | self._unread.keys()
        return tuple(id for id in self._above if id not in settled)

    def _read(self, ids: tuple[str, ...]) -> Steps[None]:
        """Read details, landing every full batch together with the open pass."""
        for start in range(0, len(ids), BATCH_RECORDS_MAX):
            outcomes = yield from ask.read_records(ids[start : start + BATCH_RECORDS_MAX])
            self._step += 1
            for id, outcome in outcomes.items():
                self._unread.pop(id, None)
                if isinstance(outcome, Found):
                    self._found.append(outcome)
                    self._readings[id] = _Reading(outcome.record.updated_at, self._step)
                elif isinstance(outcome, Gone):
                    self._gone[id] = outcome
                    self._dead.add(id)
                else:
                    self._unread[id] = outcome.reason
            if len(self._found) + len(self._gone) >= BATCH_RECORDS_MAX:
                yield from self._land(self._bookmark)

    def _land(self, bookmark: Bookmark, events: tuple[Event, ...] = ()) -> Steps[None]:
        latest = {found.record.id: found for found in self._found}
        yield from ask.commit(
            Commit(
                records=tuple(latest[id] for id in latest if id not in self._gone),
                gone=dict(self._gone),
                enqueue=dict(self._unread),
                bookmark=bookmark,
                events=events,
            )
        )
        self._found.clear()
        self._gone.clear()

    # -- the certificate -------------------------------------------------------------------------

    def _is_short(self, listing: _Listing, boundary: int) -> bool:
        """Whether fewer ids were seen above the boundary than its rank says there are."""
        need = listing.pages[-1].total
        if boundary < len(listing.order):
            need = listing.rank[listing.order[boundary].id]
        return listing.has_shifted or len(self._above.keys() - self._dead) < need

    def _certify(self, listing: _Listing) -> Steps[bool]:
        """Whether the dirty records read are all that stood above the boundary at the last page.

        Counted are only ids that were dirty then and lived after it: shown by this listing above
        the first verified clean rank, or not shown and read since. They are a subset of the
        records above that rank, so equal numbers mean equal sets.
        """
        need = listing.pages[-1].total
        for item in listing.order:
            if self._is_verified_clean(listing, item):
                need = min(need, listing.rank[item.id])
        hidden = tuple(
            id
            for id in self._above
            if id not in listing.rank
            and id not in self._dead
            and (id not in self._readings or self._readings[id].step < listing.last_step)
        )
        yield from self._read(hidden)
        until = listing.pages[-1].served_at - _SECOND
        live = sum(self._was_dirty_and_alive(listing, id, need, until) for id in self._above)
        return live >= need and not listing.has_shifted

    def _is_verified_clean(self, listing: _Listing, item: Resource) -> bool:
        id = item.id
        if self._lists_cursor:
            return self._is_below_floor(item.updated_at)
        reading = self._readings.get(id)
        is_younger = reading is not None and reading.step > listing.step[id]
        return reading is not None and is_younger and self._is_below_floor(reading.updated_at)

    def _was_dirty_and_alive(self, listing: _Listing, id: str, need: int, until: datetime) -> bool:
        if id in self._dead:
            return False
        if id in listing.rank:
            return listing.rank[id] < need
        reading = self._readings.get(id)
        if reading is None or reading.updated_at is None:
            return False
        return self._floor < reading.updated_at <= until

    def _order_is_broken(self, listing: _Listing) -> bool:
        """Whether one answer showed two records the wrong way round, by details that may testify.

        Only a record that was not written since the pass opened may: its `updated_at` is at most
        T0 - L.
        """
        assert self._bookmark.opened_at is not None
        limit = self._bookmark.opened_at - self._lateness
        for page in listing.pages:
            newer: datetime | None = None
            for item in page.items:
                reading = self._readings.get(item.id)
                if reading is None or reading.updated_at is None or reading.updated_at > limit:
                    continue
                if newer is not None and reading.updated_at > newer:
                    return True
                newer = reading.updated_at
        return False

    def _close(self, is_proven: bool) -> Bookmark:
        """The bookmark after the pass: R := T0 if proven; the pass is over either way."""
        before, opened_at = self._bookmark, self._bookmark.opened_at
        assert before.proven_at is not None
        assert opened_at is not None
        # A server whose clock went back must not take the proven floor back with it.
        proven_at = max(before.proven_at, opened_at) if is_proven else before.proven_at
        return replace(before, proven_at=proven_at, opened_at=None)


def opening(page: PageSeen) -> datetime:
    """T0 by a pass's first list: the server's time before it, cut to the second and never later."""
    before = page.served_at - timedelta(seconds=page.round_trip_seconds) - _SECOND
    return before.replace(microsecond=0)
