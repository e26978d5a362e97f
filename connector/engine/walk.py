"""The walk: newest `updated_at` first, down to the first record that is proven landed.

    floor W = R - L: everything that the API dates at or before W is landed, or queued.

1.  List `updated_at` descending until the landed order predicts where the floor is.
2.  Find the boundary: the first record whose *remote* `updated_at` is at or below W, by galloping
    from the prediction and then halving. The landed order only predicts; the detail, read after
    the list, decides. Everything below the boundary is older still, so it is landed (or queued)
    already.
3.  Read every record above the boundary, after the lists that showed it.
4.  Certify: one page is one instant and proves itself. Several pages may have shifted between
    requests, so the distinct dirty records read must be as many as the boundary's rank says.
    Otherwise list again.
5.  Commit the rows, and R := T0, the server's time before the first list. A walk that could not
    be certified keeps its R and says so.

Why it is sound: below a record with remote `updated_at` <= W, read after the list, everything is
at most as new as W, and everything so old was landed when R was proven. Edits in the meantime
only move records up, which makes the walk longer and never wrong. Ties need no care, since no
order within a tie is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from connector.catalog.resource import Declaration, Resource
from connector.engine import commands
from connector.engine.bookmark import Bookmark, floor_of
from connector.engine.commands import Event, Known, PageSeen, Steps
from connector.engine.recheck import SECOND, Guard, Listing, Readings, clocked, opening

# -- Gallop ----------------------------------------------------------------------------------------
# The search for the first clean record of a list, which whoever walks and whoever prices share.


Verdict = Literal["dirty", "clean", "odd", "end"]
"""Of the record of a rank: above the floor, at or below it, without a date that could say so, or
not there, since the list ends before.
"""


def predicted(rows: Sequence[Known | None], floor: datetime, future: datetime) -> int:
    """The smallest index from which on all rows, in the list's order, look landed and in order.

    None is a record that is not landed. A row without `updated_at`, or with one after `future`,
    predicts nothing.
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
    start: int, verdict: Callable[[int], Steps[Verdict]], end: Callable[[], int]
) -> Steps[int]:
    """The index of the first clean record, or `end()`: gallop from `start` 1, 2, 4, then halve.

    What is odd says nothing of those above it, so the gallop steps over it.
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
        if (yield from verdict(middle)) == "clean":
            high = middle
        else:
            low = middle
    return high


# -- Evidence --------------------------------------------------------------------------------------
# What a listing shows besides its boundary: that it is out of order, and which rows are suspect.
#
# None of it costs a request, but for a few witnesses where something is wrong.


WITNESSES_MAX = 5
"""Records read to find out why they are not listed where the landed rows say that they belong."""


class Evidence:
    """One listing of a pass, with the boundary found in it and what was read.

    `above` are the ids seen above a boundary in this pass. `limit` is T0 - L: what is dated at or
    before it was not written since the pass opened, and what is dated after `future` is not dated
    at all.
    """

    def __init__(
        self,
        listing: Listing,
        boundary: int,
        readings: Readings,
        above: frozenset[str],
        *,
        limit: datetime,
        future: datetime,
        lists_cursor: bool,
    ) -> None:
        self._listing, self._boundary = listing, boundary
        self._readings, self._above = readings, above
        self._limit, self._future, self._lists_cursor = limit, future, lists_cursor

    def out_of_order(self) -> Steps[frozenset[str]]:
        """Who testifies that the list is not in order, if it is not.

        Out of order are two records that one answer shows the wrong way round, and one that is
        newer than the boundary and not listed above it.
        """
        for page in self._listing.pages:
            shown = {item.id: self._testimony(item) for item in page.items}
            dated = [each for each in shown.values() if each is not None]
            if any(later > earlier for earlier, later in pairwise(dated)):
                return frozenset(id for id, each in shown.items() if each is not None)
        if self._boundary == len(self._listing.order):
            return frozenset()
        last = self._testimony(self._listing.order[self._boundary])
        if last is None:
            return frozenset()
        unseen = yield from self._unseen(last)
        witnesses = sorted(unseen - self._readings.dead)[:WITNESSES_MAX]
        yield from self._readings.read(tuple(witnesses))
        return frozenset(id for id in witnesses if self._is_between(id, last))

    def suspects(self) -> Steps[dict[str, str]]:
        """Landed ids to look at, each with the reason, by what the clean part of the list shows.

        Below the boundary the landed rows are what the API has. A list item that differs from its
        row, or that has none, says otherwise; and so does a row that is newer than the last of
        them and not listed.
        """
        suspects: dict[str, str] = {}
        dated: list[datetime] = []
        known = self._readings.known
        clean = {item.id for item in self._listing.order[self._boundary :]} - self._above
        for page in self._listing.pages:
            below = tuple(item for item in page.items if item.id in clean)
            differing = yield from commands.differing(below)
            suspects |= dict.fromkeys(differing, "differs")
            for item in below:
                held = known.get(item.id)
                if held is None or held.is_deleted:
                    suspects[item.id] = "listed"
                elif held.updated_at is not None and held.updated_at <= self._future:
                    dated.append(held.updated_at)
        if dated and dated == sorted(dated, reverse=True):
            unseen = yield from self._unseen(dated[-1])
            suspects |= dict.fromkeys(unseen, "absent")
        # What has no date, or one in the future, is shown to have changed by nothing but reading.
        undated = yield from commands.undated(self._future)
        suspects |= dict.fromkeys(undated, "undated")
        return {id: why for id, why in suspects.items() if not self._readings.settled(id)}

    def _testimony(self, item: Resource) -> datetime | None:
        """The `updated_at` that the record certainly had when it was listed; None if unknown.

        A list item says so itself where lists show it. A detail does if it was read after the list
        and says that nothing was written since the pass opened.
        """
        if self._lists_cursor:
            return item.updated_at
        reading = self._readings.by_id.get(item.id)
        if reading is None or reading.updated_at is None or reading.updated_at > self._limit:
            return None
        return reading.updated_at if reading.step > self._listing.step[item.id] else None

    def _unseen(self, moment: datetime) -> Steps[frozenset[str]]:
        """Landed ids that are newer than the moment, and that no list of this pass shows."""
        held = yield from commands.updated_between(moment, self._future)
        return held - self._listing.rank.keys() - self._above

    def _is_between(self, id: str, last: datetime) -> bool:
        """Whether a witness belongs above the boundary, and did so when the list was made."""
        reading = self._readings.by_id.get(id)
        updated_at = reading.updated_at if reading is not None else None
        return updated_at is not None and last < updated_at <= self._limit


# -- Walk ------------------------------------------------------------------------------------------
#


ATTEMPTS_MAX = 24
"""Listings of one walk before it gives up: an API that changes faster than it is read."""

OUT_OF_ORDER = "the list is not sorted by updated_at"
"""Why a walk is not proven that found the list out of order."""

LISTINGS_OUT_OF_ORDER_MAX = 2
"""Listings of one walk found out of order before it gives up. The first may be a write that came
late.
"""

ALARMS_MAX = 3
"""Walks in a row that found the list out of order before the server is taken not to sort. Replicas
that lag can look like that, for a while.
"""


@dataclass(frozen=True, slots=True)
class Walked:
    """How a walk ended. `reason` says why it is not proven; `total` is the last list's.

    `gone` counts the records that were listed and then found to be deleted. `suspects` are landed
    ids that the list gave reason to read, for what it shows or does not show of them.
    """

    bookmark: Bookmark
    is_proven: bool
    reason: str | None
    total: int
    per_page: int
    gone: int
    suspects: dict[str, str]


class Walk:
    """One pass over one stream, from its opening to its commit, as the module describes it."""

    def __init__(self, resource: Declaration, bookmark: Bookmark, guard: Guard) -> None:
        assert bookmark.proven_at is not None, "a walk needs a floor: load the stream first"
        self._lists_cursor = resource.lists_cursor
        self._lateness = timedelta(seconds=bookmark.lateness_seconds)
        self._floor = floor_of(bookmark)
        self._readings = Readings(bookmark, guard)
        self._guard = guard
        self._above: dict[str, None] = {}
        # Whether the end of this pass needs no second look by the next one, and down to where that
        # would have to reach: what this one was to prove, without what it reached back for.
        self._is_certain, self._clock_was_set, self._has_listed = True, False, False
        self._own_floor = bookmark.proven_at - self._lateness

    def run(self) -> Steps[Walked]:
        """Walk until the pass is proven or the attempts are used up."""
        reason: str | None = "the list changed faster than it could be read"
        out_of_order = 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            listing = Listing()
            boundary = yield from self._find_boundary(listing)
            self._above.update(dict.fromkeys(item.id for item in listing.order[:boundary]))
            one_instant = len(listing.pages) == 1
            if not one_instant and attempt < ATTEMPTS_MAX and self._is_short(listing, boundary):
                continue  # Only lists were spent; the ids already seen are kept.
            if not one_instant and attempt == 1 and self._may_be_stale():
                continue  # What one page hid, since it was older than the page before, is seen now.
            yield from self._read_above()
            self._readings.compare(listing)
            if (floor := min(self._floor, floor_of(self._readings.bookmark))) < self._floor:
                self._floor = floor
                continue  # The walk before this one ended too high, so this one must reach lower.
            evidence = self._evidence(listing, boundary)
            if witnesses := (yield from evidence.out_of_order()):
                out_of_order += 1
                if out_of_order == LISTINGS_OUT_OF_ORDER_MAX:
                    reason = OUT_OF_ORDER
                    break
                self._readings.forget(witnesses)
                continue
            if boundary == len(listing.order) and self._may_go_on(listing):
                reason = "nothing shows where the list ends"
                break
            if one_instant or (yield from self._certify(listing)):
                reason = None
                break
        return (yield from self._close(listing, boundary, reason))

    def _close(self, listing: Listing, boundary: int, reason: str | None) -> Steps[Walked]:
        """Commit the end of the pass: R := T0 if nothing speaks against it."""
        total = listing.pages[-1].total
        self._guard.allows_list(total)
        # What cannot be seen cannot be said to be unchanged, so R must not move either.
        reason = (blindness := self._guard.blindness) or reason
        before, opened_at = self._readings.bookmark, self._readings.bookmark.opened_at
        assert before.proven_at is not None
        assert opened_at is not None
        # A server whose clock went back must not take the proven floor back with it.
        proven_at = max(before.proven_at, opened_at) if reason is None else before.proven_at
        bookmark = replace(before, proven_at=proven_at, opened_at=None)
        if reason is None:
            # By a clock that is behind R, what was written since bears moments from before it.
            is_behind = opened_at < before.proven_at
            is_certain = self._is_certain and not (self._clock_was_set or is_behind)
            is_closed = boundary < len(listing.order) and is_certain
            floor = min(self._own_floor, opened_at - self._lateness)
            is_soon = opened_at - self._lateness < before.proven_at
            if is_soon and before.closed_by is not None and before.closed_floor is not None:
                # Within L of the last walk, the same old answer may have closed both.
                floor = min(floor, before.closed_floor)
            bookmark = replace(
                bookmark,
                closed_by=listing.order[boundary].id if is_closed else None,
                closed_floor=floor if is_closed or not is_certain else None,
                alarms=0,
                listed=total,
            )
        elif reason == OUT_OF_ORDER:
            alarms = bookmark.alarms + 1
            bookmark = replace(bookmark, alarms=alarms, is_sorted=alarms < ALARMS_MAX)
        evidence = self._evidence(listing, boundary)
        suspects = (yield from evidence.suspects()) if reason in (None, blindness) else {}
        if blindness is not None:
            suspects = {id: why for id, why in suspects.items() if why != "absent"}
        event = Event("unproven", reason) if reason not in (None, blindness) else None
        yield from self._readings.close(bookmark, event)
        return Walked(
            bookmark=bookmark,
            is_proven=reason is None,
            reason=reason,
            total=total,
            per_page=listing.pages[-1].per_page,
            gone=len(self._readings.dead),
            suspects=suspects,
        )

    def _evidence(self, listing: Listing, boundary: int) -> Evidence:
        opened_at = self._readings.bookmark.opened_at
        assert opened_at is not None
        return Evidence(
            listing,
            boundary,
            self._readings,
            frozenset(self._above),
            limit=opened_at - self._lateness,
            future=self._future(),
            lists_cursor=self._lists_cursor,
        )

    # -- the list --------------------------------------------------------------------------------

    def _extend(self, listing: Listing) -> Steps[None]:
        """List one page more; the first one of the pass sets T0."""
        page = yield from commands.list_page(len(listing.pages) + 1, "updated_at", "desc")
        readings = self._readings
        readings.step += 1
        if readings.bookmark.opened_at is None:
            readings.bookmark = replace(readings.bookmark, opened_at=opening(page))
        self._note_clock(page)
        readings.bookmark = timed(page, readings.bookmark)
        fresh = listing.add(page, readings.step)
        known = yield from commands.recall(fresh)
        for item in fresh:
            readings.remember(item.id, known.get(item.id))

    def _note_clock(self, page: PageSeen) -> None:
        """Reach lower where the server's clock was set back since R was set, and this pass too if
        it was set back before.
        """
        before = self._readings.bookmark
        self._readings.bookmark = after = clocked(page, before)
        if (floor := floor_of(after)) < floor_of(before):
            self._own_floor = floor
            # What was dated before this pass could see it is the next one's to read again.
            self._clock_was_set = self._clock_was_set or self._has_listed
            if not self._has_listed:
                self._floor = floor
        if not self._has_listed and (ahead := page.ahead_seconds) is not None:
            # R is going to be this answer's time, so it is this clock that must not be set back.
            highest = max(ahead, self._readings.bookmark.clock_ahead_seconds or ahead)
            self._readings.bookmark = replace(self._readings.bookmark, clock_ahead_seconds=highest)
        self._has_listed = True

    @property
    def _offset(self) -> int:
        """By how many the list's rows exceed its total, as far as that is known."""
        return self._readings.bookmark.total_offset or 0

    def _may_go_on(self, listing: Listing) -> bool:
        """Whether only a total that nobody has measured says that the list ends."""
        return listing.pages[-1].is_full and self._readings.bookmark.total_offset is None

    # -- the boundary ----------------------------------------------------------------------------

    def _find_boundary(self, listing: Listing) -> Steps[int]:
        """The index in `listing.order` of the first clean record; its length if there is none."""
        yield from self._extend(listing)
        start = self._predict(listing)
        while start >= len(listing.order) and not listing.is_complete(self._offset):
            yield from self._extend(listing)
            start = self._predict(listing)
        return (
            yield from first_clean(
                start, lambda index: self._verdict(listing, index), lambda: len(listing.order)
            )
        )

    def _verdict(self, listing: Listing, index: int) -> Steps[Verdict]:
        """What the record of that index is, listing as far as it takes to see it."""
        while index >= len(listing.order) and not listing.is_complete(self._offset):
            yield from self._extend(listing)
        if index >= len(listing.order):
            return "end"
        if (yield from self._is_undated(listing, index)):
            return "odd"
        return "dirty" if (yield from self._is_dirty(listing, index)) else "clean"

    def _predict(self, listing: Listing) -> int:
        """The index from which on all items look landed and in order."""
        rows = [
            Known(item.updated_at, None, False, False)
            if self._lists_cursor
            else self._readings.known.get(item.id)
            for item in listing.order
        ]
        return predicted(rows, self._floor, self._future())

    def _is_below_floor(self, updated_at: datetime | None) -> bool:
        return updated_at is not None and updated_at <= self._floor

    def _is_dirty(self, listing: Listing, index: int) -> Steps[bool]:
        """Whether the remote `updated_at` is above the floor, by evidence younger than the list."""
        item, readings = listing.order[index], self._readings
        id = item.id
        if self._lists_cursor:
            return not self._is_below_floor(item.updated_at)
        if id in readings.dead:
            return True
        reading = readings.by_id.get(id)
        if reading is not None:
            if not self._is_below_floor(reading.updated_at):
                return True  # Once dirty, dirty until R moves: `updated_at` only grows.
            if reading.step > listing.step[id]:
                return False
        yield from readings.read((id,))
        # What could not be read is treated as dirty and queued: it proves nothing, and neither
        # does what it showed before the list.
        return not self._is_verified_clean(listing, item)

    def _is_undated(self, listing: Listing, index: int) -> Steps[bool]:
        """Whether the record has no `updated_at`, or one in the future, as few odd ones do."""
        item = listing.order[index]
        if self._lists_cursor:
            return item.updated_at is None or item.updated_at > self._future()
        known = self._readings.known.get(item.id)
        if known is None or known.is_queued or known.is_deleted or known.read_at is None:
            return False
        if known.updated_at is not None and known.updated_at <= self._future():
            return False
        yield from self._is_dirty(listing, index)
        reading = self._readings.by_id.get(item.id)
        updated_at = reading.updated_at if reading is not None else None
        return reading is not None and (updated_at is None or updated_at > self._future())

    def _future(self) -> datetime:
        """What is dated after this is in the future, and not by a clock that is a little ahead."""
        opened_at = self._readings.bookmark.opened_at
        assert opened_at is not None
        return future_of(opened_at, self._readings.bookmark)

    def _read_above(self) -> Steps[None]:
        """Read what stands above the boundary and was not read in this pass yet."""
        unread = tuple(id for id in self._above if not self._readings.settled(id))
        yield from self._readings.read(unread)

    def _may_be_stale(self) -> bool:
        """Whether answers of this server were seen to be older than they said.

        Then a page may come from a replica behind that of the page before, and hide as many records
        as it is behind. Several pages are listed twice then, and where fresh changes may stand in
        for hidden ones in the count, the next walk reaches down to this one's floor again.
        """
        return self._readings.bookmark.late_seconds_seen > SECOND.total_seconds()

    # -- the certificate -------------------------------------------------------------------------

    def _is_short(self, listing: Listing, boundary: int) -> bool:
        """Whether fewer ids were seen above the boundary than its rank says there are."""
        need = listing.length(self._offset)
        if boundary < len(listing.order):
            need = listing.rank[listing.order[boundary].id]
        return listing.has_shifted or len(self._above.keys() - self._readings.dead) < need

    def _certify(self, listing: Listing) -> Steps[bool]:
        """Whether the dirty records read are all that stood above the boundary at the last page.

        Counted are only ids that were dirty then and lived after it: shown by this listing above
        the first verified clean rank, or not shown and read since. They are a subset of the
        records above that rank, so equal numbers mean equal sets.
        """
        need = listing.length(self._offset)
        for item in listing.order:
            if self._is_verified_clean(listing, item):
                need = min(need, listing.rank[item.id])
        readings = self._readings
        hidden = tuple(
            id
            for id in self._above
            if id not in listing.rank
            and id not in readings.dead
            and (id not in readings.by_id or readings.by_id[id].step < listing.last_step)
        )
        yield from readings.read(hidden)
        until = listing.pages[-1].served_at - SECOND
        live = [id for id in self._above if self._was_dirty_and_alive(listing, id, need, until)]
        if len(live) < need or listing.has_shifted:
            return False
        last_page = {item.id for item in listing.pages[-1].items}
        settled = [id for id in live if id in last_page or self._is_settled(id, until)]
        self._is_certain = not self._may_be_stale() or len(settled) >= need
        return True

    def _is_settled(self, id: str, until: datetime) -> bool:
        """Whether every replica shows the record where it stands, however far it is behind."""
        reading = self._readings.by_id.get(id)
        updated_at = reading.updated_at if reading is not None else None
        return updated_at is not None and updated_at <= until - self._lateness

    def _is_verified_clean(self, listing: Listing, item: Resource) -> bool:
        id = item.id
        if self._lists_cursor:
            return self._is_below_floor(item.updated_at)
        reading = self._readings.by_id.get(id)
        is_younger = reading is not None and reading.step > listing.step[id]
        return reading is not None and is_younger and self._is_below_floor(reading.updated_at)

    def _was_dirty_and_alive(self, listing: Listing, id: str, need: int, until: datetime) -> bool:
        if id in self._readings.dead:
            return False
        if id in listing.rank:
            return listing.rank[id] < need
        reading = self._readings.by_id.get(id)
        if reading is None or reading.updated_at is None:
            return False
        return self._floor < reading.updated_at <= until


def future_of(now: datetime, bookmark: Bookmark) -> datetime:
    """What is dated after this is in the future, and not by a clock that is a little ahead."""
    return now + timedelta(seconds=bookmark.lateness_seconds + commands.LATENESS_UNTIMED_SECONDS)


def timed(page: PageSeen, bookmark: Bookmark) -> Bookmark:
    """The bookmark with the lateness that the answer's clock calls for."""
    if page.is_server_clock:
        return bookmark
    lateness = max(bookmark.lateness_seconds, commands.LATENESS_UNTIMED_SECONDS)
    return replace(bookmark, lateness_seconds=lateness)
