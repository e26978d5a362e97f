"""Comparison of a whole stream with the local copy, and estimation of the cost of a pull.

The comparison reads every list page in order of creation and the detail of every listed record. It
also reads loaded records that are not listed, because only a 404 shows that a record is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil, log2

from connector.catalog.resource import Declaration, Page, Resource
from connector.pulls.first_load import ids_read_too_early
from connector.pulls.listing import (
    RecordState,
    find_first_clean,
    ids_of,
    list_all,
    predict_boundary,
    read_landed_rows,
    with_checked_totals,
)
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    Bookmark,
    CountLive,
    CountQueued,
    CreatedBetween,
    DeletionProof,
    DifferingFields,
    FoundDetail,
    LandedRow,
    LandedRows,
    ListPage,
    Outcome,
    ReadRecords,
    Steps,
    floor_of,
    future_limit,
)


@dataclass(slots=True)
class StreamComparison:
    """Differences between the local copy and the API, by id.

    Attributes:
        total: Number of records according to the API.
        compared: Number of records that were read.
        missing: Listed records that are not loaded.
        extra: Loaded records that the API no longer has.
        stale: Records with different values, each with the names of the fields.
        unhydrated: Records loaded as list items only.
        unread: Records that could not be read, each with the reason.
    """

    total: int = 0
    compared: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    stale: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unhydrated: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Return True if all records were compared and are equal."""
        differ = self.missing or self.extra or self.stale or self.unhydrated or self.unread
        return not differ


def compare_all_records(resource: Declaration, result: StreamComparison) -> Steps[None]:
    """Compare all listed and all loaded records with the API; add differences to `result`."""
    listed: set[str] = set()

    def take(page: Page[Resource]) -> Steps[int]:
        result.total = page.total
        fresh = tuple(id for id in ids_of(page.items) if id not in listed)
        listed.update(fresh)
        yield from _read_and_compare(fresh, result)
        return 0

    steps = list_all("created_at" if resource.sortable else None, take)
    yield from with_checked_totals(steps, Bookmark())
    unlisted = sorted((yield from CreatedBetween(None, None)) - listed)
    for start in range(0, len(unlisted), BATCH_RECORDS_MAX):
        yield from _read_and_compare(tuple(unlisted[start : start + BATCH_RECORDS_MAX]), result)


def compare_vanished(result: StreamComparison) -> Steps[None]:
    """Compare the loaded records of a stream whose parent is deleted, one by one."""
    yield from _read_and_compare(tuple(sorted((yield from CreatedBetween(None, None)))), result)


def _read_and_compare(ids: tuple[str, ...], result: StreamComparison) -> Steps[None]:
    """Read these records, compare them with the loaded rows, and add differences to `result`."""
    remaining = ids
    while remaining:
        known = yield from LandedRows(remaining)
        outcomes = yield from ReadRecords(remaining)
        remaining = tuple(id for id in remaining if id not in outcomes)
        yield from _compare_details(outcomes, known, result)


def _compare_details(
    outcomes: Mapping[str, Outcome], known: Mapping[str, LandedRow], result: StreamComparison
) -> Steps[None]:
    """Compare these details with the loaded rows, and add differences to `result`."""
    records = tuple(each.record for each in outcomes.values() if isinstance(each, FoundDetail))
    result.stale |= yield from DifferingFields(records)
    for id, outcome in outcomes.items():
        row = known.get(id)
        is_live = row is not None and not row.is_deleted
        if isinstance(outcome, DeletionProof):
            if is_live:
                result.extra.append(id)
        elif not isinstance(outcome, FoundDetail):
            result.unread[id] = outcome.message or outcome.reason
        elif not is_live:
            result.missing.append(id)
            result.stale.pop(id, None)
        elif row is not None and row.read_at is None:
            result.unhydrated.append(id)
    result.compared += len(outcomes)


# -- Cost of a pull -------------------------------------------------------------------------------
# The number of changed records is the rank of the first unchanged record. An exponential search
# over ranks finds it, with one page and one detail for each probe. The cost follows from this
# number: one list page per hundred records, one detail per changed record, and one more for the
# first unchanged record.


@dataclass(frozen=True, slots=True)
class PullCost:
    """Estimated changes and requests of one stream's pull.

    Attributes:
        total: Number of records according to the API.
        changed: Records created or changed since the last verified pull.
        deleted: Deleted records, estimated from the counts.
        queued: Records queued to be read.
        lists: Requests for list pages.
        details: Requests for single records.
        is_first: True if the first load is not complete.
    """

    total: int
    changed: int
    deleted: int
    queued: int
    lists: int
    details: int
    is_first: bool = False

    @property
    def requests(self) -> int:
        """Total number of requests."""
        return self.lists + self.details


def estimate_pull_cost(resource: Declaration, bookmark: Bookmark) -> Steps[PullCost]:
    """Estimate the cost of a pull of the stream. Sends a few requests."""
    if not resource.sortable or not bookmark.is_sorted:
        steps = _estimate_whole_read(resource, bookmark)
    elif bookmark.proven_at is None:
        steps = _estimate_first_load(resource, bookmark)
    else:
        steps = _RankSearch(resource, bookmark).estimate()
    return (yield from with_checked_totals(steps, bookmark))


def read_listed_ids(resource: Declaration) -> Steps[tuple[str, ...]]:
    """Return the ids of a whole list, to estimate the cost for the children of its records."""
    ids: dict[str, None] = {}

    def take(page: Page[Resource]) -> Steps[int]:
        ids.update(dict.fromkeys(ids_of(page.items)))
        yield from ()
        return 0

    yield from with_checked_totals(list_all(None, take), Bookmark())
    return tuple(ids)


def _estimate_first_load(resource: Declaration, bookmark: Bookmark) -> Steps[PullCost]:
    """Estimate a first load: two reads of the list, every detail, and a scan."""
    page = yield from ListPage(1, "created_at", "asc")
    live = yield from CountLive()
    queued = yield from CountQueued()
    pages = max(1, ceil(page.total / page.per_page))
    unlisted = max(0, page.total - live)
    ends = 0 if resource.lists_updated_at else 1
    details = unlisted + queued + (ends if page.total else 0)
    # Pages that an interrupted load has read are not read again.
    swept = pages if bookmark.verify_page is not None else max(0, (bookmark.load_page or 1) - 1)
    # A single page needs no second sweep. A full page does not show that it is the last, so the
    # newest records are listed as well.
    is_full = 0 < page.total == pages * page.per_page
    lists = 1 + ends if pages == 1 and not is_full else pages - swept + pages + 1 + is_full
    return PullCost(page.total, unlisted, 0, queued, lists, details, is_first=True)


def _estimate_whole_read(resource: Declaration, bookmark: Bookmark) -> Steps[PullCost]:
    """Estimate a pull that reads every page: its pages, and the details that it would read."""
    ids_to_read: set[str] = set()

    def take(page: Page[Resource]) -> Steps[int]:
        known = yield from read_landed_rows(page.items)
        ids_to_read.update(
            (yield from DifferingFields(page.items)), ids_read_too_early(page, known, bookmark)
        )
        ids_to_read.update(
            id for id in ids_of(page.items) if id not in known or not known[id].read_at
        )
        return 0

    page = yield from list_all("created_at" if resource.sortable else None, take)
    live = yield from CountLive()
    queued = yield from CountQueued()
    is_first = bookmark.proven_at is None
    deleted = max(0, live - page.record_count())
    details = max(len(ids_to_read), queued) + deleted
    return PullCost(
        page.total, len(ids_to_read), deleted, queued, page.page, details, is_first=is_first
    )


class _RankSearch:
    """Search for the first unchanged record of a list that is sorted by `updated_at`.

    The rank of a record is the number of records above it.
    """

    def __init__(self, resource: Declaration, bookmark: Bookmark) -> None:
        self._lists_cursor = resource.lists_updated_at
        self._bookmark = bookmark
        self._floor = self._future = floor_of(bookmark)
        self._pages: dict[int, Page[Resource]] = {}
        self._dates: dict[str, datetime | None] = {}
        self._unknown = 0
        self._seen = 0

    def estimate(self) -> Steps[PullCost]:
        """Find the number of changed records, and return the estimated cost."""
        first = yield from self._read_page(1)
        self._future = future_limit(first.timestamp, self._bookmark)
        changed = yield from self._count_changed(first)
        live = yield from CountLive()
        queued = yield from CountQueued()
        pages = max(1, ceil(first.total / first.per_page))
        pages_read = max(1, min(self._seen, changed))
        new = round(self._unknown * changed / pages_read) if changed else 0
        offset = self._bookmark.total_offset
        deleted = max(0, live + new - first.total - (offset or 0))
        lists = min(pages, changed // first.per_page + 1)
        ends = 0 if self._lists_cursor or changed >= first.total else 1
        searched = 0
        if offset is None:
            searched = pages
        elif deleted:
            searched = min(pages, deleted * (ceil(log2(max(1, pages / deleted))) + 2))
        return PullCost(
            total=first.total,
            changed=changed,
            deleted=deleted,
            queued=queued,
            lists=lists + searched,
            details=changed + ends + deleted + queued,
        )

    def _read_page(self, number: int) -> Steps[Page[Resource]]:
        """Read a page, or return it again, and count its records that are not loaded."""
        if number not in self._pages:
            page = yield from ListPage(number, "updated_at", "desc")
            self._pages[number] = page
            known = yield from read_landed_rows(page.items)
            self._seen += len(page.items)
            self._unknown += sum(item.id not in known for item in page.items)
        return self._pages[number]

    def _count_changed(self, first: Page[Resource]) -> Steps[int]:
        """Return the number of changed records: the rank of the first unchanged one."""
        known = yield from read_landed_rows(first.items)
        rows = [
            LandedRow(item.updated_at) if self._lists_cursor else known.get(item.id)
            for item in first.items
        ]
        start = predict_boundary(rows, self._floor, self._future)
        return (
            yield from find_first_clean(
                start, lambda rank: self._state_at_rank(first, rank), lambda: first.total
            )
        )

    def _state_at_rank(self, first: Page[Resource], rank: int) -> Steps[RecordState]:
        """Return the state of the record at this rank. Reads its page and its detail."""
        if rank >= first.total:
            return "end"
        page = yield from self._read_page(rank // first.per_page + 1)
        index = rank % first.per_page
        if index >= len(page.items):
            return "end"
        updated_at = yield from self._read_updated_at(page.items[index])
        if updated_at is None or updated_at > self._future:
            return "odd"
        return "dirty" if updated_at > self._floor else "clean"

    def _read_updated_at(self, item: Resource) -> Steps[datetime | None]:
        """Return the `updated_at` of a record. An unreadable record counts as changed now."""
        if self._lists_cursor:
            return item.updated_at
        if item.id not in self._dates:
            outcomes = yield from ReadRecords((item.id,))
            outcome = outcomes[item.id]
            if isinstance(outcome, FoundDetail):
                self._dates[item.id] = outcome.record.updated_at
            else:
                self._dates[item.id] = self._future
        return self._dates[item.id]
