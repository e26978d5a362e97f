"""Reading of single records that are queued or suspicious.

Each detail is compared with its loaded row. A difference that the bookmark rules out is an anomaly
and is recorded as an event: a write that became visible too late (`late`, which raises the
lateness), or a change that the API did not date (`silent`).

`DetailReads` records which request of a scan read which detail, so that a scan knows whether a
detail was read after a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.listing import Listing
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    SECOND,
    Bookmark,
    Commit,
    DeletionProof,
    DifferingFields,
    Event,
    FoundDetail,
    LandedRow,
    LandedRows,
    NextQueued,
    Outcome,
    ReadRecords,
    Steps,
    UnreadableDetail,
    with_lateness,
)


def read_queue(guard: MassDeletionGuard) -> Steps[None]:
    """Read every queued record, newest first, and commit each batch.

    A record that cannot be read stays queued. The guard holds deletions until `commit_tombstones`.
    """
    unread: set[str] = set()
    while True:
        skip = frozenset(unread | guard.held.keys() | guard.contradicted)
        ids = yield from NextQueued(BATCH_RECORDS_MAX, skip)
        if not ids:
            break
        outcomes = yield from ReadRecords(ids)
        found, gone, failed = _split_outcomes(outcomes)
        unread |= failed.keys()
        guard.held |= gone
        yield from Commit(records=found, unread=failed)


def commit_tombstones(guard: MassDeletionGuard) -> Steps[None]:
    """Commit all deletions that the guard holds; none after a refusal."""
    if gone := guard.release_all():
        yield from Commit(gone=gone)


def commit_few_tombstones(guard: MassDeletionGuard) -> Steps[None]:
    """Commit the held deletions if they are few; else leave them to the next pull."""
    if guard.holds_many:
        guard.defer()
    elif gone := guard.release_if_few({}):
        yield from Commit(gone=gone)


def read_and_compare(
    ids: Iterable[str],
    bookmark: Bookmark,
    guard: MassDeletionGuard,
    *,
    is_absent: bool = False,
    unread: dict[str, UnreadableDetail] | None = None,
) -> Steps[Bookmark]:
    """Read these records, and record an event for each difference that the bookmark rules out.

    The ids may be queued or not; with `is_absent`, no list shows them. Records that could not be
    read are added to `unread`. Deletions that the guard does not release are queued. Returns the
    bookmark, with a higher lateness if a change was later than expected.
    """
    remaining = dict.fromkeys(ids)
    gone: dict[str, DeletionProof] = {}
    while remaining:
        batch = tuple(islice(remaining, BATCH_RECORDS_MAX))
        known = yield from LandedRows(batch)
        outcomes = yield from ReadRecords(batch)
        for id in outcomes:
            del remaining[id]
        found, batch_gone, failed = _split_outcomes(outcomes)
        gone |= batch_gone
        if unread is not None:
            unread |= failed
        differing = yield from DifferingFields(tuple(each.record for each in found))
        changed = tuple(each for each in found if each.record.id in differing)
        bookmark, events = _find_anomalies(changed, known, bookmark)
        yield from Commit(records=found, unread=failed, bookmark=bookmark, events=events)
    if is_absent:
        guard.held |= gone
    allowed = guard.release_all() if is_absent else guard.release_if_few(gone)
    yield from Commit(gone=allowed, enqueue=dict.fromkeys(gone.keys() - allowed.keys(), "gone"))
    return bookmark


def _split_outcomes(
    outcomes: dict[str, Outcome],
) -> tuple[tuple[FoundDetail, ...], dict[str, DeletionProof], dict[str, UnreadableDetail]]:
    """Return details that were found, proofs of deletion by id, and unreadable details by id."""
    found = tuple(each for each in outcomes.values() if isinstance(each, FoundDetail))
    gone = {id: each for id, each in outcomes.items() if isinstance(each, DeletionProof)}
    unread = {id: each for id, each in outcomes.items() if isinstance(each, UnreadableDetail)}
    return found, gone, unread


def _find_anomalies(
    changed: tuple[FoundDetail, ...], known: dict[str, LandedRow], bookmark: Bookmark
) -> tuple[Bookmark, tuple[Event, ...]]:
    """Return an event for each change that the API should have shown before, and the bookmark.

    The lateness of the bookmark is raised if a change became visible too late.
    """
    if bookmark.proven_at is None:
        return bookmark, ()
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    events: list[Event] = []
    for each in changed:
        id, updated_at, row = each.record.id, each.record.updated_at, known[each.record.id]
        if updated_at is None or updated_at > floor or (row.is_queued and row.read_at is None):
            continue
        if updated_at == row.updated_at:
            events.append(Event("silent", "changed, but updated_at stayed the same", id))
            continue
        bookmark = _with_raised_lateness(bookmark, updated_at, row.read_at)
        events.append(Event("late", f"became visible late (updated_at is {updated_at})", id))
    return bookmark, tuple(events)


def _with_raised_lateness(
    bookmark: Bookmark, updated_at: datetime, read_at: datetime | None
) -> Bookmark:
    """Return the bookmark with a higher lateness, after a change that it should have covered.

    The delay of the change is only known if the row was read after the date of the change.
    Otherwise the lateness is doubled.
    """
    assert bookmark.proven_at is not None
    seen_late = (read_at - updated_at).total_seconds() if read_at is not None else 0.0
    seconds = max(seen_late, bookmark.lateness_seconds)
    return with_lateness(bookmark, min(seconds, (bookmark.proven_at - updated_at).total_seconds()))


# -- Details that one scan reads ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DetailRead:
    """Detail read in this scan: its `updated_at`, and the number of requests before it."""

    updated_at: datetime | None
    step: int


class DetailReads:
    """Details that a scan has read. Its `bookmark` is committed with every batch.

    Attributes:
        step: Number of requests of the scan, to decide whether a detail is newer than a list.
        known: Loaded rows of listed items.
        by_id: Details that were found.
        gone: Records that the API reports as deleted.
        unread: Records that could not be read, each with the reason.
    """

    def __init__(self, bookmark: Bookmark, guard: MassDeletionGuard) -> None:
        self.bookmark = bookmark
        self.step = 0
        self.known: dict[str, LandedRow] = {}
        self.by_id: dict[str, DetailRead] = {}
        self.gone: dict[str, DeletionProof] = {}
        self.unread: dict[str, UnreadableDetail] = {}
        self._guard = guard
        self._is_resumed = bookmark.opened_at is not None
        self._found: dict[str, FoundDetail] = {}
        self._events: list[Event] = []
        self._undated = 0
        # Ids read since the last committed batch, found or not.
        self._unlanded = 0

    def add_known_row(self, id: str, known: LandedRow) -> None:
        """Store a loaded row. In a resumed scan, a row that was read since T0 counts as read.

        A new scan starts slightly after T0. A row read between T0 and its start would count as read
        in the scan, and a change in between would be missed.
        """
        self.known[id] = known
        opened_at = self.bookmark.opened_at if self._is_resumed else None
        if opened_at is None or known.read_at is None or known.is_queued:
            return
        # `Date` is truncated to the second, so only a detail that is a second later is surely
        # later.
        if known.read_at - SECOND >= opened_at:
            self.by_id.setdefault(id, DetailRead(known.updated_at, 0))

    def updated_at(self, id: str) -> datetime | None:
        """Return `updated_at` of the record's detail; None if it was not read or has no date."""
        return self.by_id[id].updated_at if id in self.by_id else None

    @property
    def uncommitted_new_count(self) -> int:
        """Number of new records that are read and not yet committed."""
        known = self.known
        return sum(id not in known or known[id].is_deleted for id in self._found)

    def is_read_after(self, id: str, listing: Listing) -> bool:
        """Return True if the detail was read after the listing last showed the record."""
        return id in self.by_id and self.by_id[id].step > listing.step[id]

    def forget(self, ids: Iterable[str]) -> None:
        """Treat these records as not read, so that they are read again."""
        for id in ids:
            self.by_id.pop(id, None)

    def is_attempted(self, id: str) -> bool:
        """Return True if the scan has read the record or tried to."""
        return id in self.by_id or id in self.gone or id in self.unread

    def read(self, ids: tuple[str, ...]) -> Steps[None]:
        """Read details and commit each full batch."""
        remaining = dict.fromkeys(ids)
        while remaining:
            room = BATCH_RECORDS_MAX - self._unlanded
            outcomes = yield from ReadRecords(tuple(islice(remaining, room)))
            self._unlanded += len(outcomes)
            self.step += 1
            for id in outcomes:
                del remaining[id]
            for id, outcome in outcomes.items():
                self.unread.pop(id, None)
                if isinstance(outcome, FoundDetail):
                    self._add_detail(id, outcome)
                elif isinstance(outcome, DeletionProof):
                    self.gone[id] = outcome
                else:
                    self.unread[id] = outcome
            if remaining or self._unlanded >= BATCH_RECORDS_MAX:
                yield from self._commit_found()

    def measure_listed_lateness(self, listing: Listing) -> None:
        """Raise the lateness if a detail was older than the `updated_at` of its list item."""
        for item in listing.order:
            updated_at = self.updated_at(item.id)
            if not item.declaration.lists_updated_at or updated_at is None:
                continue
            if self.is_read_after(item.id, listing) and updated_at < item.updated_at:
                late = (listing.last.timestamp - item.updated_at).total_seconds()
                self.bookmark = with_lateness(self.bookmark, late)

    def commit_end(self, bookmark: Bookmark, event: Event | None) -> Steps[None]:
        """Commit remaining details, few deletions and this bookmark; queue other records."""
        self.bookmark = bookmark
        if event is not None:
            self._events.append(event)
        if self._undated:
            why = (
                f"{self._undated} records have no updated_at, or one in the future, so every pull "
                f"reads them again"
            )
            self._events.append(Event("undated", why))
        allowed = self._guard.release_if_few(self.gone)
        withheld = dict.fromkeys(self.gone.keys() - allowed.keys(), "gone")
        queued = {id: each.reason for id, each in self.unread.items()} | withheld
        yield from self._commit_found(allowed, queued, self.unread)

    def _add_detail(self, id: str, found: FoundDetail) -> None:
        """Store a detail for the next commit, and measure its lateness."""
        updated_at = found.record.updated_at
        self._found[id] = found
        self.by_id[id] = DetailRead(updated_at, self.step)
        lateness = timedelta(seconds=self.bookmark.lateness_seconds)
        if updated_at is None or updated_at > found.served_at + lateness:
            self._undated += 1
        elif (known := self.known.get(id)) is not None and known.read_at is not None:
            self._measure_lateness(id, updated_at, known.updated_at, known.read_at)

    def _measure_lateness(
        self, id: str, updated_at: datetime, landed_at: datetime | None, read_at: datetime
    ) -> None:
        """Raise the lateness if an earlier read missed a version that is dated before it.

        If this row ended the last scan, that scan may have ended too high and is not trusted any
        more.
        """
        if landed_at == updated_at:
            return
        if id == self.bookmark.closed_by and updated_at < read_at + SECOND:
            self.bookmark = replace(self.bookmark, closed_by=None)
        late = (read_at - updated_at).total_seconds()
        before, self.bookmark = self.bookmark, with_lateness(self.bookmark, late)
        if self.bookmark.lateness_seconds > before.lateness_seconds:
            self._events.append(Event("late", f"became visible {late:.0f} s or more late", id))

    def _commit_found(
        self,
        gone: dict[str, DeletionProof] | None = None,
        enqueue: dict[str, str] | None = None,
        unread: dict[str, UnreadableDetail] | None = None,
    ) -> Steps[None]:
        """Commit the details and events since the last commit, and these changes of the queue."""
        yield from Commit(
            records=tuple(each for id, each in self._found.items() if id not in self.gone),
            gone=gone or {},
            enqueue=enqueue or {},
            unread=unread or {},
            bookmark=self.bookmark,
            events=tuple(self._events),
        )
        self._found.clear()
        self._events.clear()
        self._unlanded = 0
