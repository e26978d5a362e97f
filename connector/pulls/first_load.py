"""First load, the second sweep over a list, and the read of an unsorted list.

A first load sweeps the list in order of creation and loads every list item immediately, so that
names and statuses are available after N/100 requests. Each of these rows is queued, and the details
follow, newest first. R is the server time before the sweep. When the queue is empty, a second sweep
finds records that the first one missed because of deletions and unstable ties. Every step is
committed, so an interrupted load continues where it stopped.

Lists that cannot be sorted (content types, or a server that ignores `sort`) are read whole instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from connector.catalog.resource import Declaration, Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard, capped_total, deviation_limit
from connector.pulls.detail_queue import commit_few_tombstones, commit_tombstones, read_queue
from connector.pulls.listing import PageBatch, ids_of, is_ascending, list_all, read_landed_rows
from connector.pulls.verification_pass import VerificationRound, read_windows
from connector.warehouse.pull_commands import (
    Bookmark,
    Commit,
    CountLive,
    CreatedBetween,
    DifferingFields,
    Event,
    LandedRow,
    LandedRows,
    ListPage,
    Steps,
    with_page_checks,
    with_pass_start,
)

SWEEPS_MAX = 24
"""Maximum number of sweeps of a first load; repeated while fewer ids were seen than the total."""

VERIFICATIONS_MAX = 3
"""Maximum number of second sweeps in one pull, while fewer records are live than the total."""

DETAILS_REREAD_HOURS = 24
"""Age at which the details of an unsorted list are read again, as in a verification pass."""

TOO_FEW = "fewer records were found than the list's total"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Result of the first read of a whole list.

    Attributes:
        total: Number of records according to the API.
        is_one_instant: True if a single response showed the whole list.
        is_short: True if fewer ids were seen than the total, after all repetitions.
    """

    bookmark: Bookmark
    total: int
    is_one_instant: bool
    is_short: bool


def first_sweep(bookmark: Bookmark) -> Steps[SweepResult]:
    """Load every list item of a stream that was never loaded.

    The list is read again while fewer ids are loaded than the total, because of unstable ties. The
    stream is verified immediately only if one response showed the whole list; otherwise
    `second_sweep` verifies it.
    """
    requests, is_short, batch = 0, True, PageBatch()
    last_total: int | None = None

    def land(page: Page[Resource]) -> Steps[int]:
        nonlocal requests, bookmark, last_total
        requests += 1
        # A total is stored once a second response agrees, or once the rows show the end of the
        # list.
        is_certain = page.total_error is not None or (
            last_total is not None and abs(page.total - last_total) <= deviation_limit(page.total)
        )
        last_total = page.total
        bookmark = replace(
            with_page_checks(page, with_pass_start(page, bookmark)),
            load_page=page.page,
            listed=page.total if is_certain else bookmark.listed,
            is_sorted=bookmark.is_sorted and is_ascending(page),
        )
        batch.pages.append(page)
        if batch.is_full:
            yield from commit()
        return bookmark.total_offset or 0

    def commit() -> Steps[None]:
        if batch.pages:
            yield from Commit(items=batch.items, bookmark=bookmark)
            batch.pages.clear()

    for attempt in range(1, SWEEPS_MAX + 1):
        first = max(1, bookmark.load_page or 1) if attempt == 1 else 1
        page = yield from list_all("created_at", land, first, commit)
        yield from commit()
        is_short = (yield from CountLive()) < page.record_count()
        if not is_short:
            break
    # A full page does not show that the list ends.
    is_one_instant = requests == 1 and page.page == 1 and not page.is_full
    if is_short:
        bookmark = replace(bookmark, load_page=1)
    elif is_one_instant:
        # One response belongs to one point in time, so it missed no record.
        bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None, load_page=None)
    else:
        verify_page = 0 if bookmark.is_sorted else None
        bookmark = replace(bookmark, load_page=None, verify_page=verify_page)
    yield from Commit(bookmark=bookmark)
    return SweepResult(bookmark, page.total, is_one_instant, is_short)


def second_sweep(
    bookmark: Bookmark, guard: MassDeletionGuard, *, reads_all: bool = False
) -> Steps[tuple[Bookmark, str | None]]:
    """Compare every page again until as many records are live as the list has.

    After a first load, this verifies the stream. With `reads_all`, every record is also read again.
    Returns the bookmark, and the reason if the comparison failed, else None. After a failure the
    next pull compares again, unless the guard has refused and the stream was loaded before.
    """
    reason: str | None = None
    sweeps = SWEEPS_MAX
    for _ in range(VERIFICATIONS_MAX):
        round_result = yield from read_windows(bookmark, guard, reads_all=reads_all)
        bookmark, reads_all = round_result.bookmark, False
        if guard.refused is None:
            yield from commit_tombstones(guard)
        yield from read_queue(guard)
        yield from commit_few_tombstones(guard)
        if guard.refused is not None:
            if bookmark.proven_at is not None:
                bookmark = replace(bookmark, verify_page=None)
            yield from Commit(bookmark=bookmark)
            return bookmark, guard.refused.message
        if not bookmark.is_sorted:
            # The windows after this one were not compared, so nothing is verified.
            yield from Commit(bookmark=bookmark)
            return bookmark, "the list is not sorted by created_at"
        if (yield from CountLive()) < round_result.count:
            sweeps -= yield from _sweep_until_complete(round_result, sweeps)
            bookmark = round_result.bookmark
            yield from read_queue(guard)
            yield from commit_few_tombstones(guard)
        live = yield from CountLive()
        # A tie may hide a record from every window while another is deleted, so that the count
        # agrees. But then fewer records were seen than existed at some time during the round.
        seen_count = len(round_result.seen_hashes) + (yield from _count_unlisted_live(round_result))
        if live >= round_result.count and seen_count >= round_result.minimum_population:
            reason = None
            break
        reason = TOO_FEW
    events: tuple[Event, ...] = ()
    if reason is None:
        stored_total = capped_total(round_result.total, live)
        bookmark = replace(bookmark, verify_page=None, listed=stored_total)
        if (offset := round_result.offset(live)) is not None:
            events = wrong_total_events(bookmark, offset, live)
            bookmark = replace(bookmark, total_offset=offset)
        if bookmark.proven_at is None:
            bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None)
    yield from Commit(bookmark=bookmark, events=events)
    return bookmark, reason


def _sweep_until_complete(round_result: VerificationRound, sweeps_max: int) -> Steps[int]:
    """List all pages again until as many records are live as listed; return the number of reads.

    The round has compared every loaded record, so only missing records are searched, and lists show
    them. Another round would read the details of a third of tied records again.
    """

    def land(page: Page[Resource]) -> Steps[int]:
        round_result.add_page(page)
        round_result.add_listed(page.items, (yield from read_landed_rows(page.items)))
        yield from Commit(items=page.items)
        return round_result.bookmark.total_offset or 0

    for sweeps in range(1, sweeps_max + 1):
        yield from list_all("created_at", land)
        if (yield from CountLive()) >= round_result.count:
            return sweeps
    return sweeps_max


def _count_unlisted_live(round_result: VerificationRound) -> Steps[int]:
    """Return the number of live records that no window listed."""
    absent = tuple(
        id
        for id, why in round_result.suspects.items()
        if why == "absent" and hash(id) not in round_result.seen_hashes
    )
    known = yield from LandedRows(absent)
    return sum(not each.is_deleted and not each.is_queued for each in known.values())


# -- Lists that cannot be sorted -----------------------------------------------------------------


def read_whole_list(
    resource: Declaration, bookmark: Bookmark, guard: MassDeletionGuard, *, reads_all: bool = False
) -> Steps[tuple[Bookmark, bool, int]]:
    """Read every page of a list that cannot be sorted, and the details that need it.

    A detail is read if the record is new, if its list item shows other values, if the last read
    proves nothing (`ids_read_too_early`), or with `reads_all`. Returns the bookmark, True if the
    whole list was certainly seen, and its total.
    """
    sort = "created_at" if resource.sortable else None
    listed: set[str] = set()
    number, total, has_shifted, recognised = 1, 0, False, 0
    while True:
        page = yield from ListPage(number, sort, "asc")
        has_shifted |= number > 1 and page.total != total
        total = page.total
        bookmark = with_pass_start(page, bookmark)
        assert bookmark.opened_at is not None
        known = yield from read_landed_rows(page.items)
        recognised += guard.count_recognised(ids_of(page.items), known)
        differing = yield from DifferingFields(page.items)
        early = ids_of(page.items) if reads_all else ids_read_too_early(page, known, bookmark)
        queued = {id: "stale" for id in early if id in known and known[id].read_at is not None}
        queued |= dict.fromkeys(differing, "differs")
        yield from Commit(items=page.items, enqueue=queued, bookmark=bookmark)
        listed.update(ids_of(page.items))
        if page.is_last:
            break
        number += 1
    landed = yield from CreatedBetween(None, None)
    guard.check_total(total)
    guard.check_missing(len(landed - listed), recognised)
    is_whole = not has_shifted and len(listed) == page.record_count() and guard.refused is None
    if is_whole and number > 1 and not resource.sortable:
        is_whole = yield from _are_all_listed_again(listed)
    if is_whole:
        yield from Commit(enqueue=dict.fromkeys(landed - listed, "absent"))
    yield from read_queue(guard)
    if guard.holds_many:
        # A record that the list shows is not proven to be deleted, even if its detail was a 404.
        guard.drop_listed(listed)
    yield from commit_tombstones(guard)
    is_whole &= guard.refused is None
    if guard.reason_to_hold is not None:
        # An empty list is accepted if each loaded record was read and is deleted.
        is_whole &= (yield from CountLive()) == 0
    proven_at = bookmark.proven_at
    if is_whole and not resource.sortable:
        # A sortable list that is not sorted does not show what changed, so R does not move.
        assert bookmark.opened_at is not None
        proven_at = max(proven_at or bookmark.opened_at, bookmark.opened_at)
    bookmark = replace(bookmark, proven_at=proven_at, opened_at=None, load_page=None)
    if guard.refused is None:
        bookmark = replace(bookmark, listed=capped_total(total, len(listed)))
    yield from Commit(bookmark=bookmark)
    return bookmark, is_whole, total


def _are_all_listed_again(listed: set[str]) -> Steps[bool]:
    """Return True if a second read of the list shows all of these records.

    A deletion between two pages moves another record onto the previous page, which was read
    already. If a record was created as well, the count agrees. Records that are listed again
    existed when the last page of the first read was made. If that page counted the same number,
    these are all records.
    """
    listed_again: set[str] = set()

    def note(page: Page[Resource]) -> Steps[int]:
        yield from ()
        listed_again.update(ids_of(page.items))
        return 0

    yield from list_all(None, note)
    return listed <= listed_again


def ids_read_too_early(
    page: Page[Resource], known: dict[str, LandedRow], bookmark: Bookmark
) -> list[str]:
    """Return listed ids whose details must be read again although no listed value differs.

    If the list shows `updated_at`, the detail must have been read later than that time plus the
    lateness. If not, a detail of an earlier pull proves nothing; in a list that should be sorted,
    which is never verified, it is kept. Every detail is read again after `DETAILS_REREAD_HOURS`.
    """
    lateness = timedelta(seconds=bookmark.lateness_seconds)
    daily = page.timestamp - timedelta(hours=DETAILS_REREAD_HOURS)
    found: list[str] = []
    for item in page.items:
        read_at = known[item.id].read_at if item.id in known else None
        updated_at = item.updated_at if item.declaration.lists_updated_at else None
        limit = daily if item.declaration.sortable else page.timestamp
        if updated_at is not None:
            limit = max(daily, updated_at + lateness)
        if read_at is not None and read_at < limit:
            found.append(item.id)
    return found


def wrong_total_events(bookmark: Bookmark, offset: int, live: int) -> tuple[Event, ...]:
    """Return an event if the list's total is wrong by another number than before, else none.

    `offset` is the number of records by which the list exceeds its total.
    """
    if offset in (0, bookmark.total_offset):
        return ()
    message = f"the list contains {live} records, but its total is {live - offset}"
    return (Event("total_off", message),)


def unsorted_event(resource: Declaration) -> Event:
    """Return the event of a server that ignores the requested order of a list."""
    return Event(
        "unsorted",
        f"the API does not sort the list of {resource.name} as requested, so every pull reads the "
        f"whole list",
    )
