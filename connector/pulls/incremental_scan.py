"""Scan: read the list by `updated_at`, newest first, down to the first unchanged record.

    floor W = R - L: every record that the API dates at or before W is loaded or queued.
    clean, dirty: a record that the API dates at or before W, or after W.

1.  List by `updated_at` descending, until the loaded rows predict where the clean records begin.
2.  Find the boundary, the position of the first clean record: exponential search from the
    prediction, then halving. Most lists do not show `updated_at`, so the loaded rows only predict
    and a detail that was read after the list decides. All records below the boundary are older,
    so they are loaded or queued already.
3.  Read every record above the boundary, after the lists that showed it.
4.  Certify. One page belongs to one point in time and proves itself. Several pages may have
    shifted between requests. The number of distinct dirty records read must equal the rank of the
    boundary, which is the number of records above it. Otherwise list again.
5.  Commit the rows, and set R to T0, the server time before the first list. A scan that could not
    be certified keeps its R and reports the reason.

Why this is complete: records below a clean record are not newer than W, if its detail was read
after the list. Such old records were loaded when R was verified. A change during the scan only
moves a record up, which makes the scan longer but never wrong. Records with the same date need no
special treatment because their order is not used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from connector.catalog.resource import Declaration, Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard, capped_total, deviation_limit
from connector.pulls.detail_queue import DetailReads
from connector.pulls.listing import (
    Listing,
    RecordState,
    find_first_clean,
    ids_of,
    predict_boundary,
    read_landed_rows,
)
from connector.warehouse.pull_commands import (
    SECOND,
    Bookmark,
    CountLive,
    DifferingFields,
    Event,
    LandedRow,
    ListPage,
    Steps,
    UndatedIds,
    UpdatedBetween,
    floor_of,
    future_limit,
    with_clock_change,
    with_pass_start,
)

ATTEMPTS_MAX = 24
"""Maximum number of listings of one scan, in case the API changes faster than it is read."""

OUT_OF_ORDER = "the list is not sorted by updated_at"
"""Reason of a scan that found the list out of order."""

NO_END = "nothing shows where the list ends"

LISTINGS_OUT_OF_ORDER_MAX = 2
"""Listings out of order before a scan fails. The first may be due to a late write."""

ALARMS_MAX = 3
"""Such scans in a row that show that the server does not sort. A lagging replica looks the same."""

WITNESSES_MAX = 5
"""Maximum number of records read because their rows belong above the boundary."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Result of a scan.

    Attributes:
        reason: Reason why the scan is not verified; None if it is.
        total: Total of the last list.
        length: Number of records in the last list, by its rows if it shows its end.
        gone: Number of listed records that were then found to be deleted.
        suspects: Ids of loaded records to be read because of the list, each with the reason.
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
        """Return True if the local copy is verified up to the start of the scan."""
        return self.reason is None


class IncrementalScan:
    """One scan of a stream, from the first list to the commit (see the module)."""

    def __init__(self, resource: Declaration, bookmark: Bookmark, guard: MassDeletionGuard) -> None:
        assert bookmark.proven_at is not None, "a scan needs a floor: load the stream first"
        self._lists_cursor = resource.lists_updated_at
        self._lateness = timedelta(seconds=bookmark.lateness_seconds)
        self._floor = floor_of(bookmark)
        self._details = DetailReads(bookmark, guard)
        self._guard = guard
        self._above: dict[str, None] = {}
        # True if the next pass can rely on this one. Otherwise the next pass starts from
        # `_own_floor`: the floor of this pass without its own extension.
        self._is_certain, self._clock_was_set, self._has_listed = True, False, False
        self._own_floor = bookmark.proven_at - self._lateness

    def run(self) -> Steps[ScanResult]:
        """List and read until all changes are certainly read or the attempts are used up."""
        reason: str | None = "the list changed faster than it could be read"
        out_of_order = 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            listing = Listing()
            listing.boundary = yield from self._find_boundary(listing)
            self._above.update(dict.fromkeys(item.id for item in listing.order[: listing.boundary]))
            one_instant = len(listing.pages) == 1
            if not one_instant and attempt < ATTEMPTS_MAX and self._has_too_few_ids(listing):
                continue  # Only lists were read again; the ids already read are kept.
            if not one_instant and attempt == 1 and self._may_be_stale():
                continue  # A page that was older than the previous one may have hidden a record.
            details = self._details
            yield from details.read(tuple(id for id in self._above if not details.is_attempted(id)))
            details.measure_listed_lateness(listing)
            if (floor := floor_of(details.bookmark)) < self._floor:
                self._floor = floor
                continue  # The previous scan ended too high, so this one must reach lower.
            if witnesses := (yield from self._create_order_checks(listing).out_of_order()):
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
            if one_instant or (yield from self._verify_completeness(listing)):
                reason = None
                break
        return (yield from self._commit_end(listing, reason))

    def _commit_end(self, listing: Listing, reason: str | None) -> Steps[ScanResult]:
        """Commit the end of the scan, and return its result.

        If `reason` is None, the stream is verified up to the start of the scan.
        """
        total = listing.last.total
        self._guard.check_total(total)
        # A list that hides records may hide changes as well, so R must not move.
        reason = (distrust := self._guard.reason_to_hold) or reason
        bookmark = replace(self._details.bookmark, opened_at=None)
        if _is_offset_outdated(bookmark.total_offset, listing.last):
            bookmark = replace(bookmark, total_offset=None)
        if reason is None:
            live = (yield from CountLive()) + self._details.uncommitted_new_count
            listed = capped_total(total, live)
            bookmark = replace(self._verified_bookmark(bookmark, listing), alarms=0, listed=listed)
        elif reason == OUT_OF_ORDER:
            alarms = bookmark.alarms + 1
            bookmark = replace(bookmark, alarms=alarms, is_sorted=alarms < ALARMS_MAX)
        suspects: dict[str, str] = {}
        if reason in (None, distrust):
            suspects = yield from self._create_order_checks(listing).suspicious_ids()
        if distrust is not None:
            self._guard.absent |= {id for id, why in suspects.items() if why == "absent"}
            suspects = {id: suspects[id] for id in suspects.keys() - self._guard.absent}
        event = Event("unproven", reason) if reason not in (None, distrust) else None
        yield from self._details.commit_end(bookmark, event)
        gone = len(self._details.gone)
        length = listing.length(bookmark.total_offset or 0)
        return ScanResult(bookmark, reason, total, length, listing.last.per_page, gone, suspects)

    def _verified_bookmark(self, bookmark: Bookmark, listing: Listing) -> Bookmark:
        """Return the bookmark, verified up to the start of the scan, for the next scan."""
        before, opened_at, closing = bookmark.proven_at, self._started_at, listing.first_clean_item
        assert before is not None
        # A clock that is behind R gives new writes dates from before it.
        is_certain = self._is_certain and not (self._clock_was_set or opened_at < before)
        floor = min(self._own_floor, opened_at - self._lateness)
        is_soon = opened_at - self._lateness < before
        if is_soon and bookmark.closed_by is not None and bookmark.closed_floor is not None:
            # Two scans within L of each other may have ended at the same outdated response.
            floor = min(floor, bookmark.closed_floor)
        closed_by = closing.id if closing is not None and is_certain else None
        return replace(
            bookmark,
            # R never moves back, even if the server clock does.
            proven_at=max(before, opened_at),
            closed_by=closed_by,
            closed_floor=floor if closed_by is not None or not is_certain else None,
        )

    def _create_order_checks(self, listing: Listing) -> OrderChecks:
        """Return the order checks of this listing."""
        limit = self._started_at - self._lateness
        return OrderChecks(
            listing, self._details, self._above, limit, self._future_limit, self._lists_cursor
        )

    # -- the list --------------------------------------------------------------------------------

    def _list_next_page(self, listing: Listing) -> Steps[None]:
        """Read the next page of the list; the first one of the scan sets T0."""
        page = yield from ListPage(len(listing.pages) + 1, "updated_at", "desc")
        details = self._details
        details.step += 1
        details.bookmark = with_pass_start(page, details.bookmark)
        self._check_server_clock(page)
        fresh = listing.add(page, details.step)
        landed = yield from read_landed_rows(fresh)
        self._guard.count_recognised(ids_of(fresh), landed)
        for id, known in landed.items():
            details.add_known_row(id, known)

    def _check_server_clock(self, page: Page[Resource]) -> None:
        """Lower the floor if the server's clock was set back."""
        before = self._details.bookmark
        self._details.bookmark = after = with_clock_change(page, before)
        if (floor := floor_of(after)) < floor_of(before):
            self._own_floor = floor
            # Too late for this pass: the next one reads the records dated since then again.
            self._clock_was_set = self._clock_was_set or self._has_listed
            if not self._has_listed:
                self._floor = floor
        if not self._has_listed and (ahead := page.server_ahead_seconds) is not None:
            # The time of this response becomes R, so a later setback is measured from this clock.
            highest = max(ahead, after.clock_ahead_seconds or ahead)
            self._details.bookmark = replace(after, clock_ahead_seconds=highest)
        self._has_listed = True

    @property
    def _started_at(self) -> datetime:
        """T0: server time before the first list of the scan."""
        opened_at = self._details.bookmark.opened_at
        assert opened_at is not None
        return opened_at

    @property
    def _future_limit(self) -> datetime:
        """Time after which a record's date is ignored."""
        return future_limit(self._started_at, self._details.bookmark)

    @property
    def _total_offset(self) -> int | None:
        """Number of records by which the list exceeds its total; None if it was never measured."""
        return self._details.bookmark.total_offset

    def _has_whole_list(self, listing: Listing) -> bool:
        """Return True if the last page of the list was read."""
        return listing.last.ends_list(self._total_offset or 0)

    # -- the boundary ----------------------------------------------------------------------------

    def _find_boundary(self, listing: Listing) -> Steps[int]:
        """List pages until the first clean record; return its index in `listing.order`.

        Returns the length of the list if there is none.
        """
        yield from self._list_next_page(listing)
        start = self._predict_boundary(listing)
        while start >= len(listing.order) and not self._has_whole_list(listing):
            yield from self._list_next_page(listing)
            start = self._predict_boundary(listing)
        return (
            yield from find_first_clean(
                start,
                lambda index: self._state_at_index(listing, index),
                lambda: len(listing.order),
            )
        )

    def _state_at_index(self, listing: Listing, index: int) -> Steps[RecordState]:
        """Return the state of the record at this index. Lists further pages if necessary."""
        while index >= len(listing.order) and not self._has_whole_list(listing):
            yield from self._list_next_page(listing)
        if index >= len(listing.order):
            return "end"
        item = listing.order[index]
        if (yield from self._is_undated(listing, item)):
            return "odd"
        return "dirty" if (yield from self._is_dirty(listing, item)) else "clean"

    def _predict_boundary(self, listing: Listing) -> int:
        """Return the index from which all items are loaded and in order, by the loaded rows."""
        rows = [
            LandedRow(item.updated_at) if self._lists_cursor else self._details.known.get(item.id)
            for item in listing.order
        ]
        return predict_boundary(rows, self._floor, self._future_limit)

    def _is_below_floor(self, updated_at: datetime | None) -> bool:
        """Return True if the date is at or before the floor."""
        return updated_at is not None and updated_at <= self._floor

    def _is_dirty(self, listing: Listing, item: Resource) -> Steps[bool]:
        """Return True if the record changed after the floor. Reads its detail if necessary."""
        id, details = item.id, self._details
        if self._lists_cursor:
            return not self._is_below_floor(item.updated_at)
        if id in details.gone:
            return True
        if id in details.by_id:
            if not self._is_below_floor(details.updated_at(id)):
                return True  # A dirty record stays dirty until R moves: `updated_at` only grows.
            if details.is_read_after(id, listing):
                return False
        yield from details.read((id,))
        # An unreadable record counts as dirty and is queued. A detail from before the list proves
        # nothing.
        return not self._is_verified_clean(listing, item)

    def _is_undated(self, listing: Listing, item: Resource) -> Steps[bool]:
        """Return True if the record has no `updated_at`, or a future one. May read its detail."""
        if self._lists_cursor:
            return self._is_missing_or_future(item.updated_at)
        known = self._details.known.get(item.id)
        if known is None or known.is_queued or known.is_deleted or known.read_at is None:
            return False
        if not self._is_missing_or_future(known.updated_at):
            return False
        yield from self._is_dirty(listing, item)
        return item.id in self._details.by_id and self._is_missing_or_future(
            self._details.updated_at(item.id)
        )

    def _is_missing_or_future(self, updated_at: datetime | None) -> bool:
        """Return True if there is no date, or one after the limit."""
        return updated_at is None or updated_at > self._future_limit

    def _may_be_stale(self) -> bool:
        """Return True if earlier responses of this server were older than their `Date`.

        A page may then come from a replica that lags behind the replica of the previous page, and
        may hide records. Several pages are therefore listed twice. If new changes could replace
        hidden ones in the count, the next scan reaches down to the floor of this one again.
        """
        return self._details.bookmark.late_seconds_seen > SECOND.total_seconds()

    # -- the certificate -------------------------------------------------------------------------

    def _has_too_few_ids(self, listing: Listing) -> bool:
        """Return True if fewer ids were seen above the boundary than its rank, or pages shifted."""
        need = listing.length(self._total_offset or 0)
        if listing.first_clean_item is not None:
            need = listing.rank[listing.first_clean_item.id]
        return listing.has_shifted or len(self._above.keys() - self._details.gone.keys()) < need

    def _verify_completeness(self, listing: Listing) -> Steps[bool]:
        """Read missing records again; return True if all records above the boundary were then read.

        Also sets `_is_certain`: whether ids that cannot be stale would suffice. A record is dirty
        if it is dated after the floor, otherwise clean. An id counts if it was dirty at the last
        page and existed after it: this listing shows it above the first verified clean rank, or
        does not show it and it was read since. These ids are a subset of the records above that
        rank, so if the numbers are equal, the sets are equal. An id that could not be read since
        then counts if its page, listed again, still shows it.
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
        until = listing.last.timestamp - SECOND
        live = [id for id in self._above if self._was_dirty_and_alive(listing, id, need, until)]
        if len(live) >= need:
            lost = yield from self._no_longer_listed(listing, live)
            live = [id for id in live if id not in lost]
        if len(live) < need or listing.has_shifted:
            return False
        last_page = {item.id for item in listing.last.items}
        settled = [id for id in live if id in last_page or self._was_updated_long_before(id, until)]
        self._is_certain = not self._may_be_stale() or len(settled) >= need
        return True

    def _no_longer_listed(self, listing: Listing, live: Collection[str]) -> Steps[set[str]]:
        """List pages of unread ids again, and return the ids that are not there any more."""
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

    def _was_updated_long_before(self, id: str, until: datetime) -> bool:
        """Return True if even a lagging replica shows the last update; False without a date."""
        updated_at = self._details.updated_at(id)
        return updated_at is not None and updated_at <= until - self._lateness

    def _is_verified_clean(self, listing: Listing, item: Resource) -> bool:
        """Return True if a date that was read after the list is at or before the floor."""
        if self._lists_cursor:
            return self._is_below_floor(item.updated_at)
        is_younger = self._details.is_read_after(item.id, listing)
        return is_younger and self._is_below_floor(self._details.updated_at(item.id))

    def _was_dirty_and_alive(self, listing: Listing, id: str, need: int, until: datetime) -> bool:
        """Return True if the record is above rank `need`, or unlisted and changed by `until`."""
        if id in self._details.gone:
            return False
        if id in listing.rank:
            return listing.rank[id] < need
        updated_at = self._details.updated_at(id)
        return updated_at is not None and self._floor < updated_at <= until


def _is_offset_outdated(offset: int | None, page: Page[Resource]) -> bool:
    """Return True if the page's records contradict its total plus this offset."""
    if offset is None:
        return False
    if page.total_error is not None:
        return abs(page.total_error - offset) > deviation_limit(page.record_count())
    return page.total + offset < (page.page - 1) * page.per_page + len(page.items)


# -- Order checks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderChecks:
    """Checks of the order of a listing, and of rows below its boundary.

    They send no requests, except for a few records if there is a problem.

    Attributes:
        above: Ids seen above a boundary in this scan.
        limit: T0 - L. A record dated at or before it was not written since the scan began.
        future: A date after this time counts as missing.
    """

    listing: Listing
    details: DetailReads
    above: Collection[str]
    limit: datetime
    future: datetime
    lists_cursor: bool

    def out_of_order(self) -> Steps[frozenset[str]]:
        """Return ids of records that prove that the list is not in order; none if it may be.

        Two records of one page in the wrong order prove it. So does a record that is newer than the
        boundary and not listed above it.
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
        # The record is newer than the boundary, and was so when the list was made.
        dates = {id: self.details.updated_at(id) for id in witnesses}
        return frozenset(id for id, at in dates.items() if at and last < at <= self.limit)

    def suspicious_ids(self) -> Steps[dict[str, str]]:
        """Return ids of loaded records to read again, each with the reason.

        Below the boundary the loaded rows should equal the list. A list item that differs from its
        row or has no row is suspicious. So is a row that is newer than the last item and not
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
        if not self.listing.order:  # If a list is empty, every row is newer than its last item.
            dated = [datetime.min.replace(tzinfo=UTC)]
        if dated and dated == sorted(dated, reverse=True):
            suspects |= dict.fromkeys(
                sorted((yield from self._unlisted_newer_than(dated[-1]))), "absent"
            )
        # Only a detail shows whether a record without a date, or with a future one, has changed.
        suspects |= dict.fromkeys((yield from UndatedIds(self.future)), "undated")
        return {id: why for id, why in suspects.items() if not self.details.is_attempted(id)}

    def _listed_updated_at(self, item: Resource) -> datetime | None:
        """Return the `updated_at` that the record had when it was listed; None if unknown.

        The list item may contain it. A detail contains it if it was read after the list and shows
        no write since the pass began.
        """
        if self.lists_cursor:
            return item.updated_at
        updated_at = self.details.updated_at(item.id)
        if updated_at is None or updated_at > self.limit:
            return None
        return updated_at if self.details.is_read_after(item.id, self.listing) else None

    def _unlisted_newer_than(self, moment: datetime) -> Steps[frozenset[str]]:
        """Return loaded ids newer than this time that no list of this pass shows."""
        landed = yield from UpdatedBetween(moment, self.future)
        return landed - self.listing.rank.keys() - set(self.above)
