"""Scan: newest `updated_at` first, down to the first record proven landed.

    floor W = R - L: everything that the API dates at or before W is landed, or queued.
    clean, dirty: a record that the API dates at or before W, and one that it dates after W.

1.  List `updated_at` descending until the landed rows predict where the clean records begin.
2.  Find the boundary, the place of the first clean record, by exponential search from the
    prediction and then halving. Most lists hide `updated_at`: the landed rows only predict, and a
    detail that was read after the list decides. Everything below the boundary is older still, so
    that it is landed or queued already.
3.  Read every record above the boundary, after the lists that showed it.
4.  Certify. One page is one instant and proves itself. Several pages may have shifted between
    requests, so as many distinct dirty records must have been read as the boundary's rank says,
    which is the number of records above it. Otherwise list again.
5.  Commit the rows, and R := T0, the server's time before the first list. A scan that could not
    be certified keeps its R and says so.

Why this is enough: everything below a record that is clean, by a detail read after the list, is
not newer than W, and everything so old was landed when R was proven. A change in the meantime only
moves a record up, which makes the scan longer and never wrong. Records of one date need no care,
since their order is not used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from connector.catalog.page import Page
from connector.catalog.resource import Declaration, Resource
from connector.pulls.deletion_guard import MassDeletionGuard, capped_total, deviation_limit
from connector.pulls.detail_queue import DetailReads
from connector.pulls.listing import (
    Dirtiness,
    Listing,
    first_clean,
    ids_of,
    predicted_boundary,
    read_landed_rows,
)
from connector.warehouse.bookmark import (
    SECOND,
    Bookmark,
    floor_of,
    future_of,
    with_clock_change,
    with_pass_start,
)
from connector.warehouse.pull_commands import (
    CountLive,
    DifferingFields,
    Event,
    LandedRow,
    ListPage,
    Steps,
    UndatedIds,
    UpdatedBetween,
)

ATTEMPTS_MAX = 24
"""Listings of one scan before it gives up, since the API changes faster than it is read."""

OUT_OF_ORDER = "the list is not sorted by updated_at"
"""Reason of a scan that found the list out of order."""

NO_END = "nothing shows where the list ends"

LISTINGS_OUT_OF_ORDER_MAX = 2
"""Listings out of order before a scan gives up: the first may be due to a late write."""

ALARMS_MAX = 3
"""Such scans in a row that show that the server does not sort; a lagging replica looks alike."""

WITNESSES_MAX = 5
"""Records read because the landed rows say that they belong above the boundary."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """End of a scan. `reason` says why it is not proven; `total` is the last list's.

    `length` is the number of records in that list, by its rows if it shows its end.
    `gone` counts the records that were listed and then found to be deleted. `suspects` are landed
    ids that must be read because of what the list shows, or because it does not show them.
    """

    bookmark: Bookmark
    reason: str | None
    total: int
    length: int
    per_page: int
    gone: int
    suspects: dict[str, str]

    @property
    def is_proven(self) -> bool:
        """Whether the scan proved the landing up to the new R."""
        return self.reason is None


class IncrementalScan:
    """One pass over a stream, from its opening to its commit (see the module)."""

    def __init__(self, resource: Declaration, bookmark: Bookmark, guard: MassDeletionGuard) -> None:
        assert bookmark.proven_at is not None, "a scan needs a floor: load the stream first"
        self._lists_cursor = resource.lists_cursor
        self._lateness = timedelta(seconds=bookmark.lateness_seconds)
        self._floor = floor_of(bookmark)
        self._details = DetailReads(bookmark, guard)
        self._guard = guard
        self._above: dict[str, None] = {}
        # Whether the next pass can rely on this one. If not, it reaches down to `_own_floor`: the
        # floor of this pass, without what this one reached back for itself.
        self._is_certain, self._clock_was_set, self._has_listed = True, False, False
        self._own_floor = bookmark.proven_at - self._lateness

    def run(self) -> Steps[ScanResult]:
        """Scan until the pass is proven or the attempts are used up."""
        reason: str | None = "the list changed faster than it could be read"
        out_of_order = 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            listing = Listing()
            listing.boundary = yield from self._find_boundary(listing)
            self._above.update(dict.fromkeys(item.id for item in listing.order[: listing.boundary]))
            one_instant = len(listing.pages) == 1
            if not one_instant and attempt < ATTEMPTS_MAX and self._is_short(listing):
                continue  # Only lists were spent; the ids already seen are kept.
            if not one_instant and attempt == 1 and self._may_be_stale():
                continue  # A page that was older than the one before may have hidden a record.
            details = self._details
            yield from details.read(tuple(id for id in self._above if not details.is_settled(id)))
            details.compare(listing)
            if (floor := floor_of(details.bookmark)) < self._floor:
                self._floor = floor
                continue  # The scan before this one ended too high, so this one must reach lower.
            if witnesses := (yield from self._checks(listing).out_of_order()):
                out_of_order += 1
                if out_of_order == LISTINGS_OUT_OF_ORDER_MAX:
                    reason = OUT_OF_ORDER
                    break
                details.forget(witnesses)
                continue
            if (
                listing.first_clean_item is None
                and listing.last.is_full
                and self._total_offset is None
            ):
                reason = NO_END
                break
            if one_instant or (yield from self._certify(listing)):
                reason = None
                break
        return (yield from self._close(listing, reason))

    def _close(self, listing: Listing, reason: str | None) -> Steps[ScanResult]:
        """Commit the end of the pass: R := T0 if it is proven."""
        total = listing.last.total
        self._guard.check_total(total)
        # A list that hides records may hide changes as well, so R must not move.
        reason = (distrust := self._guard.hold) or reason
        bookmark = replace(self._details.bookmark, opened_at=None)
        if _is_outdated(bookmark.total_offset, listing.last):
            bookmark = replace(bookmark, total_offset=None)
        if reason is None:
            live = (yield from CountLive()) + self._details.unlanded_new
            listed = capped_total(total, live)
            bookmark = replace(self._proven(bookmark, listing), alarms=0, listed=listed)
        elif reason == OUT_OF_ORDER:
            alarms = bookmark.alarms + 1
            bookmark = replace(bookmark, alarms=alarms, is_sorted=alarms < ALARMS_MAX)
        suspects: dict[str, str] = {}
        if reason in (None, distrust):
            suspects = yield from self._checks(listing).suspicious_ids()
        if distrust is not None:
            self._guard.absent |= {id for id, why in suspects.items() if why == "absent"}
            suspects = {id: suspects[id] for id in suspects.keys() - self._guard.absent}
        event = Event("unproven", reason) if reason not in (None, distrust) else None
        yield from self._details.close(bookmark, event)
        gone = len(self._details.gone)
        length = listing.length(bookmark.total_offset or 0)
        return ScanResult(bookmark, reason, total, length, listing.last.per_page, gone, suspects)

    def _proven(self, bookmark: Bookmark, listing: Listing) -> Bookmark:
        """Bookmark with R := T0, and with what the next scan must know about this one."""
        before, opened_at, closing = bookmark.proven_at, self._opened_at, listing.first_clean_item
        assert before is not None
        # A clock that is behind R gives new writes dates from before it.
        is_certain = self._is_certain and not (self._clock_was_set or opened_at < before)
        floor = min(self._own_floor, opened_at - self._lateness)
        is_soon = opened_at - self._lateness < before
        if is_soon and bookmark.closed_by is not None and bookmark.closed_floor is not None:
            # Two scans within L of each other may have ended at the same outdated answer.
            floor = min(floor, bookmark.closed_floor)
        closed_by = closing.id if closing is not None and is_certain else None
        return replace(
            bookmark,
            # R never moves back, not even with the server's clock.
            proven_at=max(before, opened_at),
            closed_by=closed_by,
            closed_floor=floor if closed_by is not None or not is_certain else None,
        )

    def _checks(self, listing: Listing) -> OrderChecks:
        limit = self._opened_at - self._lateness
        return OrderChecks(
            listing,
            self._details,
            self._above,
            limit,
            self._latest_accepted_time,
            self._lists_cursor,
        )

    # -- the list --------------------------------------------------------------------------------

    def _extend(self, listing: Listing) -> Steps[None]:
        """List one page more; the first one of the pass sets T0."""
        page = yield from ListPage(len(listing.pages) + 1, "updated_at", "desc")
        details = self._details
        details.step += 1
        details.bookmark = with_pass_start(page, details.bookmark)
        self._note_clock(page)
        fresh = listing.add(page, details.step)
        landed = yield from read_landed_rows(fresh)
        self._guard.count_recognised(ids_of(fresh), landed)
        for id, known in landed.items():
            details.remember(id, known)

    def _note_clock(self, page: Page[Resource]) -> None:
        """Lower the floor if the server's clock was set back."""
        before = self._details.bookmark
        self._details.bookmark = after = with_clock_change(page, before)
        if (floor := floor_of(after)) < floor_of(before):
            self._own_floor = floor
            # Too late for this pass: the next one reads again what was dated in the meantime.
            self._clock_was_set = self._clock_was_set or self._has_listed
            if not self._has_listed:
                self._floor = floor
        if not self._has_listed and (ahead := page.ahead_seconds) is not None:
            # This answer's time becomes R, so a later setback is measured from this clock.
            highest = max(ahead, after.clock_ahead_seconds or ahead)
            self._details.bookmark = replace(after, clock_ahead_seconds=highest)
        self._has_listed = True

    @property
    def _opened_at(self) -> datetime:
        opened_at = self._details.bookmark.opened_at
        assert opened_at is not None
        return opened_at

    @property
    def _latest_accepted_time(self) -> datetime:
        return future_of(self._opened_at, self._details.bookmark)

    @property
    def _total_offset(self) -> int | None:
        return self._details.bookmark.total_offset

    def _is_complete(self, listing: Listing) -> bool:
        return listing.last.ends_list(self._total_offset or 0)

    # -- the boundary ----------------------------------------------------------------------------

    def _find_boundary(self, listing: Listing) -> Steps[int]:
        """Index in `listing.order` of the first clean record; its length if none is."""
        yield from self._extend(listing)
        start = self._predict(listing)
        while start >= len(listing.order) and not self._is_complete(listing):
            yield from self._extend(listing)
            start = self._predict(listing)
        return (
            yield from first_clean(
                start, lambda index: self._verdict(listing, index), lambda: len(listing.order)
            )
        )

    def _verdict(self, listing: Listing, index: int) -> Steps[Dirtiness]:
        """Verdict on the record of that index; lists further pages to see it."""
        while index >= len(listing.order) and not self._is_complete(listing):
            yield from self._extend(listing)
        if index >= len(listing.order):
            return "end"
        item = listing.order[index]
        if (yield from self._is_undated(listing, item)):
            return "odd"
        return "dirty" if (yield from self._is_dirty(listing, item)) else "clean"

    def _predict(self, listing: Listing) -> int:
        """The index from which on all items look landed and in order."""
        rows = [
            LandedRow(item.updated_at) if self._lists_cursor else self._details.known.get(item.id)
            for item in listing.order
        ]
        return predicted_boundary(rows, self._floor, self._latest_accepted_time)

    def _is_below_floor(self, updated_at: datetime | None) -> bool:
        return updated_at is not None and updated_at <= self._floor

    def _is_dirty(self, listing: Listing, item: Resource) -> Steps[bool]:
        """Whether the remote `updated_at` is above the floor, read after the list."""
        id, details = item.id, self._details
        if self._lists_cursor:
            return not self._is_below_floor(item.updated_at)
        if id in details.gone:
            return True
        if id in details.by_id:
            if not self._is_below_floor(details.updated_at(id)):
                return True  # A dirty record stays dirty until R moves: `updated_at` only grows.
            if details.is_younger(id, listing):
                return False
        yield from details.read((id,))
        # A record that could not be read counts as dirty and is queued. A detail from before the
        # list proves nothing.
        return not self._is_verified_clean(listing, item)

    def _is_undated(self, listing: Listing, item: Resource) -> Steps[bool]:
        """Whether the record has no `updated_at`, or one in the future."""
        if self._lists_cursor:
            return self._is_odd(item.updated_at)
        known = self._details.known.get(item.id)
        if known is None or known.is_queued or known.is_deleted or known.read_at is None:
            return False
        if not self._is_odd(known.updated_at):
            return False
        yield from self._is_dirty(listing, item)
        return item.id in self._details.by_id and self._is_odd(self._details.updated_at(item.id))

    def _is_odd(self, updated_at: datetime | None) -> bool:
        return updated_at is None or updated_at > self._latest_accepted_time

    def _may_be_stale(self) -> bool:
        """Whether answers of this server were seen to be older than their `Date`.

        Then a page may come from a replica that lags behind that of the page before, and hide
        records. So several pages are listed twice; and if fresh changes could replace hidden ones
        in the count, the next scan reaches down to this one's floor again.
        """
        return self._details.bookmark.late_seconds_seen > SECOND.total_seconds()

    # -- the certificate -------------------------------------------------------------------------

    def _is_short(self, listing: Listing) -> bool:
        """Whether fewer ids were seen above the boundary than its rank."""
        need = listing.length(self._total_offset or 0)
        if listing.first_clean_item is not None:
            need = listing.rank[listing.first_clean_item.id]
        return listing.has_shifted or len(self._above.keys() - self._details.gone.keys()) < need

    def _certify(self, listing: Listing) -> Steps[bool]:
        """Whether all records above the boundary, as of the last page, were read.

        Only ids count that were dirty then and existed after it: ids that this listing shows above
        the first verified clean rank, and ids that it does not show and that were read since. They
        are a subset of the records above that rank, so if the numbers are equal, so are the sets.
        An id that could not be read since counts if its page, listed again, still shows it.
        """
        need = listing.length(self._total_offset or 0)
        for item in listing.order:
            if self._is_verified_clean(listing, item):
                need = min(need, listing.rank[item.id])
        details = self._details
        hidden = tuple(
            id
            for id in self._above
            if id not in listing.rank
            and id not in details.gone
            and (id not in details.by_id or details.by_id[id].step < listing.last_step)
        )
        yield from details.read(hidden)
        until = listing.last.dated_at - SECOND
        live = [id for id in self._above if self._was_dirty_and_alive(listing, id, need, until)]
        if len(live) >= need:
            lost = yield from self._lost(listing, live)
            live = [id for id in live if id not in lost]
        if len(live) < need or listing.has_shifted:
            return False
        last_page = {item.id for item in listing.last.items}
        settled = [id for id in live if id in last_page or self._is_settled(id, until)]
        self._is_certain = not self._may_be_stale() or len(settled) >= need
        return True

    def _lost(self, listing: Listing, live: Collection[str]) -> Steps[set[str]]:
        """Unread ids whose page, listed again, no longer shows them."""
        rank = listing.rank
        lost = {
            id
            for id in live
            if id in self._details.unread and listing.step.get(id) != listing.last_step
        }
        for number in sorted({rank[id] // listing.last.per_page + 1 for id in lost & rank.keys()}):
            page = yield from ListPage(number, "updated_at", "desc")
            lost.difference_update(ids_of(page.items))
        return lost

    def _is_settled(self, id: str, until: datetime) -> bool:
        """Whether the record is so old that even a replica that lags shows it."""
        updated_at = self._details.updated_at(id)
        return updated_at is not None and updated_at <= until - self._lateness

    def _is_verified_clean(self, listing: Listing, item: Resource) -> bool:
        if self._lists_cursor:
            return self._is_below_floor(item.updated_at)
        is_younger = self._details.is_younger(item.id, listing)
        return is_younger and self._is_below_floor(self._details.updated_at(item.id))

    def _was_dirty_and_alive(self, listing: Listing, id: str, need: int, until: datetime) -> bool:
        if id in self._details.gone:
            return False
        if id in listing.rank:
            return listing.rank[id] < need
        updated_at = self._details.updated_at(id)
        return updated_at is not None and self._floor < updated_at <= until


def _is_outdated(offset: int | None, page: Page[Resource]) -> bool:
    """Return True if the total's offset does not fit the records that the page shows."""
    if offset is None:
        return False
    if page.offset is not None:
        return abs(page.offset - offset) > deviation_limit(page.count)
    return page.total + offset < (page.page - 1) * page.per_page + len(page.items)


# -- Order checks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderChecks:
    """Checks of a listing beyond its boundary: its order, and rows that look wrong.

    They cost no request, except for a few witnesses if something is wrong. `above` are the ids
    seen above a boundary in this pass. `limit` is T0 - L: a record dated at or before it was not
    written since the pass began. A date after `future` counts as no date.
    """

    listing: Listing
    details: DetailReads
    above: Collection[str]
    limit: datetime
    future: datetime
    lists_cursor: bool

    def out_of_order(self) -> Steps[frozenset[str]]:
        """Ids of records that prove that the list is not in order; none if it is.

        Two records of one page in the wrong order prove it, and so does a record that is newer
        than the boundary and not listed above it.
        """
        for page in self.listing.pages:
            shown = {item.id: self._listed_updated_at(item) for item in page.items}
            dated = [each for each in shown.values() if each is not None]
            if any(later > earlier for earlier, later in pairwise(dated)):
                return frozenset(id for id, each in shown.items() if each is not None)
        closing = self.listing.first_clean_item
        last = None if closing is None else self._listed_updated_at(closing)
        if last is None:
            return frozenset()
        unseen = yield from self._unlisted_newer_than(last)
        witnesses = sorted(unseen - self.details.gone.keys())[:WITNESSES_MAX]
        yield from self.details.read(tuple(witnesses))
        # A witness is newer than the boundary, and was so when the list was made.
        dates = {id: self.details.updated_at(id) for id in witnesses}
        return frozenset(id for id, at in dates.items() if at and last < at <= self.limit)

    def suspicious_ids(self) -> Steps[dict[str, str]]:
        """Landed ids that must be read, with the reason, by the clean part of the list.

        Below the boundary the landed rows should equal the list. A list item that differs from its
        row, or has none, is suspect; so is a row that is newer than the last of them and not
        listed.
        """
        suspects: dict[str, str] = {}
        dated: list[datetime] = []
        clean = {item.id for item in self.listing.order[self.listing.boundary :]}
        for page in self.listing.pages:
            below = tuple(
                item for item in page.items if item.id in clean and item.id not in self.above
            )
            suspects |= dict.fromkeys(sorted((yield from DifferingFields(below))), "differs")
            for item in below:
                row = self.details.known.get(item.id)
                if row is None or row.is_deleted:
                    suspects[item.id] = "listed"
                elif row.updated_at is not None and row.updated_at <= self.future:
                    dated.append(row.updated_at)
        if not self.listing.order:  # Where a list shows nothing, every row is newer than its last.
            dated = [datetime.min.replace(tzinfo=UTC)]
        if dated and dated == sorted(dated, reverse=True):
            suspects |= dict.fromkeys(
                sorted((yield from self._unlisted_newer_than(dated[-1]))), "absent"
            )
        # Only a read shows whether a record without a date, or with a future one, has changed.
        suspects |= dict.fromkeys((yield from UndatedIds(self.future)), "undated")
        return {id: why for id, why in suspects.items() if not self.details.is_settled(id)}

    def _listed_updated_at(self, item: Resource) -> datetime | None:
        """`updated_at` that the record had when it was listed; None if unknown.

        A list item has it, if lists show it. A detail has it if it was read after the list and
        shows no write since the pass began.
        """
        if self.lists_cursor:
            return item.updated_at
        updated_at = self.details.updated_at(item.id)
        if updated_at is None or updated_at > self.limit:
            return None
        return updated_at if self.details.is_younger(item.id, self.listing) else None

    def _unlisted_newer_than(self, moment: datetime) -> Steps[frozenset[str]]:
        """Landed ids newer than the time that no list of this pass shows."""
        landed = yield from UpdatedBetween(moment, self.future)
        return landed - self.listing.rank.keys() - set(self.above)
