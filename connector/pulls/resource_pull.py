"""Pull of a stream (a resource, or the content items of one type): the requests that it needs.

    never loaded   sweep, read the queue, sweep again, then scan
    loaded         read the queue, scan, read suspicious records, audit
    not sortable   read the whole list

The audit compares the live rows with the total of the list. If they differ, it searches for deleted
and missing records. A verification pass follows if it was requested.

A pull is a generator of commands (`warehouse/pull_commands.py`). Its executor may stop at any
command: committed rows stay, and the next pull continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connector.catalog.resource import Declaration
from connector.errors_api import NotFound
from connector.pulls.deletion_guard import MassDeletionGuard, Refusal
from connector.pulls.detail_queue import commit_few_tombstones, read_and_compare, read_queue
from connector.pulls.first_load import (
    TOO_FEW,
    SweepResult,
    first_sweep,
    read_whole_list,
    second_sweep,
    unsorted_event,
    wrong_total_events,
)
from connector.pulls.incremental_scan import OUT_OF_ORDER, IncrementalScan, ScanResult
from connector.pulls.listing import with_checked_totals
from connector.pulls.reconcile import DeletionSearch
from connector.pulls.verification_pass import read_windows, run_verification_pass
from connector.warehouse.pull_commands import (
    Bookmark,
    Commit,
    CountLive,
    CreatedBetween,
    DeletionProof,
    Event,
    LandedRows,
    ListPage,
    SetPurpose,
    Steps,
    UnreadableDetail,
)


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a pull beyond the minimum number of requests.

    Attributes:
        is_full: Read every record again.
        sweeps: Compare every page of the list, and read records that differ or are absent.
        accepts_deletes: Accept all deletions, because the user has confirmed them.
        verification_requests: Number of requests that compare verified records again. A record that
            is wrong is read in addition.
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
        code: Error code that describes the next step, if deletions were held.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None


FEWEST_REQUESTS = PullOptions()

NOT_READ = "the API's answer could not be read for"
"""Beginning of the reason of a pull of selected records that could not be read."""

ONLY_THESE = "only the requested records were read"
"""Reason why a pull of selected records does not verify the others."""

UNSORTED = "the API does not sort this list, so a pull may find changes a day late"


def pull(
    resource: Declaration, bookmark: Bookmark, options: PullOptions = FEWEST_REQUESTS
) -> Steps[PullResult]:
    """Update one stream with the minimum number of requests that verifies it."""
    return (yield from with_checked_totals(_choose_and_pull(resource, bookmark, options), bookmark))


def _choose_and_pull(
    resource: Declaration, bookmark: Bookmark, options: PullOptions
) -> Steps[PullResult]:
    """Update one stream by a first load, a scan or a read of the whole list."""
    if not resource.sortable or not (bookmark.is_sorted or options.is_full):
        return (yield from _pull_whole(resource, bookmark, options))
    # A full pull checks again whether the server sorts.
    bookmark = replace(bookmark, is_sorted=True)
    swept: SweepResult | None = None
    if bookmark.proven_at is None and bookmark.verify_page is None:
        swept = yield from first_sweep(bookmark)
        bookmark = swept.bookmark
    guard = MassDeletionGuard(
        (yield from CountLive()), bookmark.listed, accepts=options.accepts_deletes
    )
    yield from read_queue(guard)
    if guard.holds_many:
        # Many deletions need more than a 404 each: every page is read to confirm them.
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    bookmark, ended = yield from _load_or_compare(resource, bookmark, swept, guard, options)
    if ended is not None:
        yield from commit_few_tombstones(guard)
        return (yield from _apply_refusal(ended, guard))
    if not bookmark.is_sorted:
        return (yield from _pull_whole(resource, bookmark, options))
    return (yield from _scan(resource, bookmark, guard, options))


def mark_stream_deleted(*, accepts_deletes: bool = False) -> Steps[PullResult]:
    """Mark the records of a stream as deleted because its parent is deleted.

    The 404 of the list proves all of these deletions. A large number of deletions is held until the
    user accepts them.
    """
    live = yield from CreatedBetween(None, None)
    if not live:
        yield from Commit(ends_stream=True)
        return PullResult(True, None, 0)
    try:
        page = yield from ListPage(1, "created_at", "desc")
    except NotFound as error:
        if not error.is_api_error or error.served_at is None:
            raise
        gone = DeletionProof(error.served_at)
    else:
        reason = "the content type is deleted, but the API still lists its items"
        return PullResult(False, reason, page.total)
    guard = MassDeletionGuard(len(live), None, accepts=accepts_deletes)
    allowed = guard.release_if_few(dict.fromkeys(sorted(live), gone))
    if allowed:
        yield from Commit(gone=allowed, ends_stream=True)
        return PullResult(True, None, 0)
    message = f"{len(live)} records are missing: their content type is deleted"
    guard.refused = Refusal("list_shrank", message)
    return (yield from _apply_refusal(PullResult(False, message, 0), guard))


def read_ids(bookmark: Bookmark, ids: tuple[str, ...]) -> Steps[PullResult]:
    """Read only these records. A deleted record becomes a tombstone immediately."""
    live, unread = (yield from CountLive()), dict[str, UnreadableDetail]()
    guard = MassDeletionGuard(live, bookmark.listed, accepts=True)
    yield from read_and_compare(ids, bookmark, guard, unread=unread)
    known = yield from LandedRows(ids)
    absent = [id for id in ids if id not in known and id not in unread]
    gone = sorted(id for id, row in known.items() if row.is_deleted and id not in unread)
    reason = ONLY_THESE
    if unread:
        descriptions = (f"{id} ({each.message or each.reason})" for id, each in unread.items())
        reason = f"{NOT_READ} {', '.join(descriptions)}"
    elif absent:
        reason = f"the API has no record {', '.join(absent)}"
    elif gone:
        reason = f"gone from the API: {', '.join(gone)}"
    return PullResult(False, reason, live)


def _load_or_compare(
    resource: Declaration,
    bookmark: Bookmark,
    sweep_result: SweepResult | None,
    guard: MassDeletionGuard,
    options: PullOptions,
) -> Steps[tuple[Bookmark, PullResult | None]]:
    """Run the first load or a requested full comparison.

    Returns the bookmark, and the result if the pull ends here, else None.
    """
    if sweep_result is not None:
        if sweep_result.is_short:
            return bookmark, PullResult(False, TOO_FEW, sweep_result.total)
        if not bookmark.is_sorted:
            yield from Commit(events=(unsorted_event(resource),))
        elif sweep_result.is_one_instant and resource.lists_updated_at:
            # The only page showed every id and `updated_at` at one point in time, as a scan would.
            return bookmark, PullResult(True, None, sweep_result.total)
    if (options.is_full or options.sweeps) and sweep_result is None:
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    if bookmark.verify_page is not None:
        if bookmark.proven_at is not None:
            yield from SetPurpose("sweep")
        bookmark, reason = yield from second_sweep(bookmark, guard, reads_all=options.is_full)
        if reason is not None and (guard.refused is None or bookmark.proven_at is None):
            return bookmark, PullResult(False, reason, (yield from CountLive()))
    return bookmark, None


def _scan(
    resource: Declaration, bookmark: Bookmark, guard: MassDeletionGuard, options: PullOptions
) -> Steps[PullResult]:
    """Scan for changes, read suspicious records, compare the count, and re-verify if requested."""
    yield from SetPurpose("pull")
    is_resumed = bookmark.opened_at is not None
    scan_result = yield from IncrementalScan(resource, bookmark, guard).run()
    if is_resumed and scan_result.is_proven:
        # A resumed pass verifies the time of its start; later changes need another scan.
        scan_result = yield from IncrementalScan(resource, scan_result.bookmark, guard).run()
    bookmark, reason = scan_result.bookmark, scan_result.reason
    if reason == OUT_OF_ORDER and guard.refused is None:
        events = () if bookmark.is_sorted else (unsorted_event(resource),)
        yield from Commit(events=events)
        return (yield from _pull_whole(resource, bookmark, options))
    if guard.refused is None and guard.holds_many:
        yield from SetPurpose("sweep")
        bookmark, found = yield from second_sweep(replace(bookmark, scrubbed_to=None), guard)
        reason = reason or found
    else:
        yield from Commit(enqueue=scan_result.suspects)
        bookmark = yield from read_and_compare(scan_result.suspects, bookmark, guard)
        if guard.refused is None:
            bookmark, found = yield from _compare_count(scan_result, bookmark, guard)
            reason = reason or found
    is_confirmed = guard.refused is None and guard.reason_to_hold is not None
    if is_confirmed and (yield from CountLive()) == 0:
        # Each loaded record was read and is deleted, so the empty list is accepted.
        scan_result = yield from IncrementalScan(resource, bookmark, MassDeletionGuard(0, 0)).run()
        bookmark, reason = scan_result.bookmark, scan_result.reason
    if options.verification_requests and guard.refused is None:
        yield from SetPurpose("scrub")
        yield from run_verification_pass(bookmark, options.verification_requests, guard)
        yield from read_queue(guard)
        yield from commit_few_tombstones(guard)
    return (yield from _apply_refusal(PullResult(reason is None, reason, scan_result.total), guard))


def _compare_count(
    scan_result: ScanResult, bookmark: Bookmark, guard: MassDeletionGuard
) -> Steps[tuple[Bookmark, str | None]]:
    """Audit: compare the number of live rows with the scan's total, and search if they differ.

    The total includes records that were found deleted after that list. A total whose offset was
    never measured proves nothing, equal or not. Returns the bookmark, and the reason if a
    difference remains unexplained, else None.
    """
    if bookmark.total_offset is None:
        yield from SetPurpose("sweep")
        return (yield from _compare_all_pages(bookmark, guard))
    total = scan_result.length - scan_result.gone
    if (yield from CountLive()) == total:
        return bookmark, None
    yield from SetPurpose("sweep")
    search = DeletionSearch(total, scan_result.per_page, bookmark, guard)
    absent = yield from search.run()
    bookmark = yield from read_and_compare(absent, search.bookmark, guard, is_absent=True)
    if not search.is_sorted:
        bookmark = replace(bookmark, is_sorted=False)
        yield from Commit(bookmark=bookmark)
        return bookmark, "the list is not sorted by created_at"
    yield from read_queue(guard)
    yield from commit_few_tombstones(guard)
    if guard.refused is not None:
        return bookmark, guard.refused.message
    live = yield from CountLive()
    if (offset := bookmark.total_offset) is not None:
        is_explained = not search.totals or live == search.totals[-1] + offset
        # If the list changes while it is read, the next pull's audit searches again.
        if is_explained or set(search.totals) != {scan_result.total}:
            return bookmark, None
    return (yield from _compare_all_pages(bookmark, guard))


def _compare_all_pages(
    bookmark: Bookmark, guard: MassDeletionGuard
) -> Steps[tuple[Bookmark, str | None]]:
    """Compare every page, because the total differs or was never measured.

    If all pages agree with the local copy and only the total does not, the total is wrong, and its
    offset is stored. Returns the bookmark, and the reason if a difference remains, else None.
    """
    round_result = yield from read_windows(replace(bookmark, scrubbed_to=None), guard)
    bookmark = yield from read_and_compare(
        round_result.suspects, round_result.bookmark, guard, is_absent=True
    )
    yield from read_queue(guard)
    yield from commit_few_tombstones(guard)
    live = yield from CountLive()
    offset = round_result.offset(live)
    if offset is None or guard.refused is not None:
        message = f"the API counts {round_result.total} records, but {live} are loaded"
        return bookmark, message if live != round_result.count else None
    events = wrong_total_events(bookmark, offset, live)
    bookmark = replace(bookmark, total_offset=offset)
    yield from Commit(bookmark=bookmark, events=events)
    return bookmark, None


def _pull_whole(
    resource: Declaration, bookmark: Bookmark, options: PullOptions
) -> Steps[PullResult]:
    """Update a stream by reading its whole list."""
    guard = MassDeletionGuard(
        (yield from CountLive()), bookmark.listed, accepts=options.accepts_deletes
    )
    bookmark, is_whole, total = yield from read_whole_list(
        resource, bookmark, guard, reads_all=options.is_full
    )
    reason: str | None = None
    if not is_whole:
        reason = "the list changed while it was read"
    elif resource.sortable:
        reason = UNSORTED
    return (yield from _apply_refusal(PullResult(reason is None, reason, total), guard))


def _apply_refusal(result: PullResult, guard: MassDeletionGuard) -> Steps[PullResult]:
    """Return the result; as not verified, with an event, if the guard holds deletions."""
    refusal = guard.refusal
    if refusal is None:
        return result
    yield from Commit(events=(Event("mass_deletion", refusal.message),))
    return PullResult(False, refusal.message, result.total, refusal.code)
