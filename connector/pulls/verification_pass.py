"""Verification pass: compare verified records with the API again, the oldest reads first.

It finds differences that no list of changes shows: a change that the API did not date, a write that
became visible later than the lateness, and a deleted and a missing record that cancel each other
out in every count. The list verification compares the list in order of creation, page by page (a
window), in rounds. The detail verification reads the records whose details were read longest ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from connector.catalog.resource import PER_PAGE_MAX, Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.detail_queue import read_and_compare
from connector.pulls.listing import PageBatch, ids_of, is_ascending, list_page, read_landed_rows
from connector.warehouse.pull_commands import (
    Bookmark,
    Commit,
    CountLive,
    CreatedBetween,
    DifferingFields,
    LandedRow,
    LeastRecentlyRead,
    ListPage,
    Steps,
    with_clock_change,
    with_page_checks,
)

DETAILS_PER_WINDOW = 20
"""Number of details that a verification pass reads for each window of the list."""

_TICK = timedelta(microseconds=1)


@dataclass(slots=True)
class VerificationRound:
    """One comparison of the list with the rows, page by page (a page is a window).

    Attributes:
        requests: Number of pages that were requested.
        suspects: Ids to be read, each with the reason.
        absent: Number of loaded records that were not listed.
        recognised: Number of listed records that are loaded.
        total: Total of the last window.
        count: Number of records by the last window.
        seen_hashes: Listed ids, as hashes to save memory.
        maybe_new: Hashes in `seen_hashes` that may have become visible since the first window.
        is_steady: True if all windows had the same total.
        is_over: True if the last window of the list was read.
        ends_full: True if the last window was full and no newer record was found after it.
    """

    bookmark: Bookmark
    requests: int = 0
    suspects: dict[str, str] = field(default_factory=dict)
    absent: int = 0
    recognised: int = 0
    total: int = 0
    count: int = 0
    largest_total: int = 0
    seen_hashes: set[int] = field(default_factory=set)
    maybe_new: set[int] = field(default_factory=set)
    first_page: Page[Resource] | None = None
    is_steady: bool = True
    is_over: bool = False
    ends_full: bool = False
    # Windows read since the verified time of the bookmark that are still to be compared.
    pending_pages: list[Page[Resource]] = field(default_factory=list)
    batch: PageBatch = field(default_factory=PageBatch)

    def add_page(self, page: Page[Resource]) -> bool:
        """Store a page's total and count. Return True if the total fell since the last page."""
        has_before = self.requests > 0
        has_shrunk = has_before and page.total < self.total
        self.is_steady &= not has_before or page.total == self.total
        self.requests += 1
        self.total, self.count = page.total, page.record_count()
        self.largest_total = max(self.largest_total, page.total)
        self.first_page = self.first_page or page
        self.bookmark = with_page_checks(page, self.bookmark)
        return has_shrunk

    def add_listed(self, items: tuple[Resource, ...], known: Mapping[str, LandedRow]) -> None:
        """Remember the items as seen, and those not in `known` as maybe new.

        An item is only maybe new if it was created after the first page less the lateness.
        """
        assert self.first_page is not None
        lateness = timedelta(seconds=self.bookmark.lateness_seconds)
        since = self.first_page.timestamp - lateness
        self.seen_hashes.update(hash(item.id) for item in items)
        new = (item for item in items if item.id not in known)
        self.maybe_new.update(hash(each.id) for each in new if each.created_at > since)

    @property
    def minimum_population(self) -> int:
        """Minimum number of records that were in the list at some time during the round.

        A record created since the first window hides a deleted record in the totals.
        """
        assert self.first_page is not None
        maximum = max(self.largest_total, self.first_page.total + len(self.maybe_new))
        return self.count - self.total + maximum

    def offset(self, live: int) -> int | None:
        """Return by how many the live rows exceed the total; None if that is not certain."""
        is_whole = len(self.seen_hashes) == self.count == live or (
            self.ends_full and live == self.total
        )
        return live - self.total if self.is_over and self.is_steady and is_whole else None


def run_verification_pass(
    bookmark: Bookmark, requests: int, guard: MassDeletionGuard
) -> Steps[None]:
    """Re-verify records with at most this number of requests: first pages, then details."""
    windows = max(1, requests // (DETAILS_PER_WINDOW + 1)) if requests else 0
    remaining = requests
    if bookmark.is_sorted and windows:
        round_result = yield from read_windows(bookmark, guard, windows=windows)
        bookmark, remaining = round_result.bookmark, remaining - round_result.requests
        suspects = tuple(round_result.suspects)[: max(0, remaining)]
        bookmark = yield from read_and_compare(suspects, bookmark, guard, is_absent=True)
        remaining -= len(suspects)
    if remaining > 0:
        yield from read_and_compare((yield from LeastRecentlyRead(remaining)), bookmark, guard)


def read_windows(
    bookmark: Bookmark,
    guard: MassDeletionGuard,
    *,
    windows: int | None = None,
    reads_all: bool = False,
) -> Steps[VerificationRound]:
    """Compare at most `windows` windows (default: all) with the rows, after the last round's end.

    Unknown records are loaded and queued. Records that differ, and loaded records that are not
    listed, are queued; with `reads_all` all records are. Absent records are not queued once the
    guard has refused. If the list is not sorted, the round ends and its bookmark is marked as
    unsorted.
    """
    verification_round = VerificationRound(bookmark)
    number, offset = yield from _resume_position(bookmark, PER_PAGE_MAX)
    # A whole round verifies the list, so it must continue without a gap. Checking this costs a
    # window, which a short verification pass does not spend.
    is_strict = windows is None and bookmark.scrubbed_to is not None
    compare = partial(_compare_windows, verification_round, guard, reads_all=reads_all)
    while not verification_round.is_over:
        if windows is not None and verification_round.requests >= windows:
            break
        page = yield from list_page(number, "created_at", "asc", compare)
        has_shrunk = verification_round.add_page(page)
        if verification_round.requests == 1 and page.per_page != PER_PAGE_MAX:
            assumed, (number, offset) = (
                number,
                (yield from _resume_position(bookmark, page.per_page)),
            )
            if assumed != number:
                continue
        if not is_ascending(page):
            verification_round.bookmark = replace(verification_round.bookmark, is_sorted=False)
            break
        if number > 1 and (
            has_shrunk
            or ((offset or is_strict) and _may_leave_gap(page, verification_round.bookmark))
        ):
            # A record before this page was deleted, so the first record here moved to the page
            # before.
            yield from compare()
            number, verification_round.pending_pages = number - 1, []
            continue
        offset, is_strict = 0, False
        verification_round.pending_pages.append(page)
        verification_round.batch.pages.append(page)
        verification_round.is_over = page.ends_list(verification_round.bookmark.total_offset or 0)
        if verification_round.is_over or verification_round.batch.is_full:
            yield from compare()
        number += 1
    yield from compare()
    if (
        verification_round.is_over
        and windows is None
        and page.is_full
        and verification_round.bookmark.total_offset is None
    ):
        yield from _check_after_last_page(page, verification_round)
    return verification_round


def _check_after_last_page(
    last: Page[Resource], verification_round: VerificationRound
) -> Steps[None]:
    """Read the newest records, to check if records follow a last page that is full.

    Only the total shows that it is the last. The newest records are listed instead of the next page
    because the API may refuse a page after the last.
    """
    page = yield from ListPage(1, "created_at", "desc")
    known = yield from read_landed_rows(page.items)
    end = last.items[-1].created_at
    beyond = {hash(item.id) for item in page.items if item.created_at > end}
    verification_round.requests += 1
    verification_round.is_steady &= page.total == verification_round.total
    verification_round.ends_full = len(known) == len(page.items)
    if len(beyond) < len(page.items):
        # It overlaps with the last page, so there is no gap.
        verification_round.count += len(beyond - verification_round.seen_hashes)
        verification_round.add_listed(
            tuple(item for item in page.items if item.created_at > end), known
        )
    verification_round.bookmark = with_clock_change(page, verification_round.bookmark)
    yield from Commit(items=page.items, bookmark=verification_round.bookmark)


def _resume_position(bookmark: Bookmark, per_page: int) -> Steps[tuple[int, int]]:
    """Return the page where the last round stopped, and how many of its items it has compared."""
    if bookmark.scrubbed_to is None:
        return 1, 0
    seen_count = yield from CountLive(bookmark.scrubbed_to + _TICK)
    return seen_count // per_page + 1, seen_count % per_page


def _may_leave_gap(page: Page[Resource], bookmark: Bookmark) -> bool:
    """Return True if records may exist between the page and the last compared record."""
    if not page.items:
        return True
    first = page.items[0].created_at
    return bookmark.scrubbed_to is not None and first is not None and first > bookmark.scrubbed_to


def _compare_windows(
    verification_round: VerificationRound, guard: MassDeletionGuard, *, reads_all: bool
) -> Steps[None]:
    """Compare the pages since the last commit with the rows; commit, and queue differences."""
    if not verification_round.batch.pages:
        return
    page, items = verification_round.batch.pages[-1], verification_round.batch.items
    last = None if verification_round.is_over else page.items[-1].created_at
    landed = yield from CreatedBetween(verification_round.bookmark.scrubbed_to, last)
    listed = {id for each in verification_round.pending_pages for id in ids_of(each.items)}
    guard.drop_listed(listed)
    absent = landed - listed - verification_round.suspects.keys()
    known = yield from read_landed_rows(items)
    verification_round.add_listed(items, known)
    verification_round.recognised += guard.count_recognised(ids_of(items), known)
    verification_round.absent += len(absent)
    for each in verification_round.batch.pages:
        guard.check_total(each.total)
    guard.check_missing(verification_round.absent, verification_round.recognised)
    absent = absent - guard.held.keys() if guard.refused is None else frozenset()
    differing = yield from DifferingFields(items)
    suspects = dict.fromkeys(sorted(absent), "absent")
    suspects |= dict.fromkeys(sorted(differing), "differs")
    verification_round.suspects |= suspects
    if reads_all:
        suspects = dict.fromkeys(ids_of(items), "full") | suspects
    yield from _advance_verified_time(page, last, listed, verification_round)
    yield from Commit(items=items, enqueue=suspects, bookmark=verification_round.bookmark)
    verification_round.batch.pages.clear()


def _advance_verified_time(
    page: Page[Resource],
    end: datetime | None,
    listed: set[str],
    verification_round: VerificationRound,
) -> Steps[None]:
    """Move the verified time to the end of the page, or before a tie that crosses the end."""
    verified: datetime | None = None  # After the last page, the next round starts at the first.
    pending: list[Page[Resource]] = []
    if end is not None:
        tied = yield from CreatedBetween(end - _TICK, end + _TICK)
        earlier = [item.created_at for item in page.items if item.created_at < end]
        if not tied <= listed and not earlier:
            return
        verified, pending = (end, []) if tied <= listed else (max(earlier), [page])
    verification_round.bookmark = replace(verification_round.bookmark, scrubbed_to=verified)
    verification_round.pending_pages = pending
