"""The first load, the second look at a list, and the reading of whole lists.

A first load sweeps the list in order of creation and lands every list item at once, so that names
and statuses are there after N/100 requests; each row so landed is queued, and the details follow
newest first. R is the server's time before the sweep. A second look over the list, once the queue
is empty, finds what deletions and unstable ties made the sweep miss. Every step is committed, so
a load that is cut short goes on where it stopped.

Lists that cannot be sorted (content types; a server that ignores `sort`) are read whole instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from connector.catalog.page import Page
from connector.catalog.resource import Declaration, Resource
from connector.engine.bookmark import Bookmark, measured, opened
from connector.engine.commands import (
    Between,
    Commit,
    CountLive,
    Differing,
    Event,
    LandedRow,
    ListPage,
    Recall,
    Steps,
)
from connector.engine.guard import Guard
from connector.engine.listing import PageBatch, ids_of, is_ascending, list_all, recall
from connector.engine.recheck import bury, bury_few, drain
from connector.engine.scrub import Round, read_windows

SWEEPS_MAX = 24
"""Sweeps of one first load: more than one only if fewer ids were seen than the list's total. Where
all records are tied and each page draws its own, a sweep leaves out a third of what is left.
"""

VERIFICATIONS_MAX = 3
"""Times that all pages are looked at again while fewer records are live than the total says."""

DETAILS_REREAD_HOURS = 24
"""Age at which the details of an unsorted list are read again, as a scrub would."""

TOO_FEW = "fewer records could be found than the list has"


@dataclass(frozen=True, slots=True)
class Swept:
    """How a sweep over a whole list ended.

    `is_one_instant`: a single answer showed all of it. `is_short`: fewer ids were seen than the
    total says, however often it was read.
    """

    bookmark: Bookmark
    total: int
    is_one_instant: bool
    is_short: bool


def sweep(bookmark: Bookmark) -> Steps[Swept]:
    """Land every list item of a stream that was never loaded.

    It repeats while fewer ids are landed than the total says, which unstable ties can cause. R is
    set at once only if one answer showed everything; otherwise `verify` sets it.
    """
    requests, is_short, batch = 0, True, PageBatch()

    def land(page: Page[Resource]) -> Steps[int]:
        nonlocal requests, bookmark
        requests += 1
        bookmark = replace(
            measured(page, opened(page, bookmark)),
            load_page=page.page,
            listed=page.total,
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
        is_short = (yield from CountLive()) < page.count
        if not is_short:
            break
    # A page that is full does not show that nothing follows it.
    is_one_instant = requests == 1 and page.page == 1 and not page.is_full
    if is_short:
        bookmark = replace(bookmark, load_page=1)
    elif is_one_instant:
        # One answer is one instant: there is nothing that it can have missed.
        bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None, load_page=None)
    else:
        verify_page = 0 if bookmark.is_sorted else None
        bookmark = replace(bookmark, load_page=None, verify_page=verify_page)
    yield from Commit(bookmark=bookmark)
    return Swept(bookmark, page.total, is_one_instant, is_short)


def verify(
    bookmark: Bookmark, guard: Guard, *, reads_all: bool = False
) -> Steps[tuple[Bookmark, str | None]]:
    """Look at every page once more, until as many records are live as the list has.

    After a first load it sets R. With `reads_all`, every record is read again as well. Returns the
    bookmark, and why the landing is still in doubt, if it is: then R is not set, and the next pull
    looks again, unless it is the guard that refused what a loaded stream shows.
    """
    doubt: str | None = None
    sweeps = SWEEPS_MAX
    for _ in range(VERIFICATIONS_MAX):
        done = yield from read_windows(bookmark, guard, reads_all=reads_all)
        bookmark, reads_all = done.bookmark, False
        if guard.refused is None:
            yield from bury(guard)
        yield from drain(guard)
        yield from bury_few(guard)
        if guard.refused is not None:
            if bookmark.proven_at is not None:
                bookmark = replace(bookmark, verify_page=None)
            yield from Commit(bookmark=bookmark)
            return bookmark, guard.refused.message
        if not bookmark.is_sorted:
            # What the windows did not compare is not vouched for.
            yield from Commit(bookmark=bookmark)
            return bookmark, "the list is not sorted by created_at"
        if (yield from CountLive()) < done.count:
            sweeps -= yield from _fill(done, sweeps)
            bookmark = done.bookmark
            yield from drain(guard)
            yield from bury_few(guard)
        live = yield from CountLive()
        # Ties may hide a record from every window while another is deleted, and the count agree;
        # but then fewer were seen than were there at one time or another.
        seen = len(done.seen) + (yield from _alive(done))
        if live >= done.count and seen >= done.population:
            doubt = None
            break
        doubt = TOO_FEW
    events: tuple[Event, ...] = ()
    if doubt is None:
        bookmark = replace(bookmark, verify_page=None, listed=done.total)
        if (offset := done.offset(live)) is not None:
            events = total_events(bookmark, offset, live)
            bookmark = replace(bookmark, total_offset=offset)
        if bookmark.proven_at is None:
            bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None)
    yield from Commit(bookmark=bookmark, events=events)
    return bookmark, doubt


def _fill(done: Round, sweeps_max: int) -> Steps[int]:
    """List all pages again until as many are live as listed; returns the sweeps.

    The round has read again all that was landed, so that only what is missing is looked for, and
    lists show that. Another round would read a third of tied records by their details once more.
    """

    def land(page: Page[Resource]) -> Steps[int]:
        done.note(page)
        done.show(page.items, (yield from recall(page.items)))
        yield from Commit(items=page.items)
        return done.bookmark.total_offset or 0

    for sweeps in range(1, sweeps_max + 1):
        yield from list_all("created_at", land)
        if (yield from CountLive()) >= done.count:
            return sweeps
    return sweeps_max


def _alive(done: Round) -> Steps[int]:
    """How many that no window listed turned out to be alive."""
    absent = tuple(
        id for id, why in done.suspects.items() if why == "absent" and hash(id) not in done.seen
    )
    known = yield from Recall(absent)
    return sum(not each.is_deleted and not each.is_queued for each in known.values())


# -- Lists that cannot be sorted -----------------------------------------------------------------


def read_whole(
    resource: Declaration, bookmark: Bookmark, guard: Guard, *, reads_all: bool = False
) -> Steps[tuple[Bookmark, bool, int]]:
    """Read a list that cannot be sorted: every page, and the details that need it.

    A detail is read when the record is new, when its list item shows other values, and when the
    last reading proves nothing (`read_too_early`); with `reads_all`, always. Returns the
    bookmark, whether the list was certainly seen whole, and its total.
    """
    sort = "created_at" if resource.sortable else None
    listed: set[str] = set()
    number, total, has_shifted = 1, 0, False
    while True:
        page = yield from ListPage(number, sort, "asc")
        has_shifted |= number > 1 and page.total != total
        total = page.total
        bookmark = opened(page, bookmark)
        assert bookmark.opened_at is not None
        known = yield from recall(page.items)
        differing = yield from Differing(page.items)
        early = ids_of(page.items) if reads_all else read_too_early(page, known, bookmark)
        queued = {id: "stale" for id in early if id in known and known[id].read_at is not None}
        queued |= dict.fromkeys(differing, "differs")
        yield from Commit(items=page.items, enqueue=queued, bookmark=bookmark)
        listed.update(ids_of(page.items))
        if page.is_last:
            break
        number += 1
    held = yield from Between(None, None)
    guard.check_total(total)
    guard.check_absent(len(held - listed), len(held & listed))
    is_whole = not has_shifted and len(listed) == page.count and guard.refused is None
    if is_whole and number > 1 and not resource.sortable:
        is_whole = yield from _are_all_alive(listed)
    if is_whole:
        yield from Commit(enqueue=dict.fromkeys(held - listed, "absent"))
    yield from drain(guard)
    if guard.holds_many:
        # Said to be gone and listed in the same breath is no evidence.
        guard.still_listed(listed)
    yield from bury(guard)
    is_whole &= guard.refused is None
    if guard.blindness is not None:
        # An empty list is true once each record that it had was asked for, and is gone.
        is_whole &= (yield from CountLive()) == 0
    proven_at = bookmark.proven_at
    if is_whole and not resource.sortable:
        # Where lists ought to be sorted and are not, nothing tells what changed: R stays.
        assert bookmark.opened_at is not None
        proven_at = max(proven_at or bookmark.opened_at, bookmark.opened_at)
    bookmark = replace(bookmark, proven_at=proven_at, opened_at=None, load_page=None)
    if guard.refused is None:
        bookmark = replace(bookmark, listed=total)
    yield from Commit(bookmark=bookmark)
    return bookmark, is_whole, total


def _are_all_alive(listed: set[str]) -> Steps[bool]:
    """Whether a second look at the list shows all of them.

    One deleted between two pages pulls another onto the page before, where nobody looks any more,
    and the count agrees if one was created as well. Those that are listed again lived at the last
    page of the first look, which counted as many: then they are all that there were.
    """
    again: set[str] = set()

    def note(page: Page[Resource]) -> Steps[int]:
        yield from ()
        again.update(ids_of(page.items))
        return 0

    yield from list_all(None, note)
    return listed <= again


def read_too_early(
    page: Page[Resource], known: dict[str, LandedRow], bookmark: Bookmark
) -> list[str]:
    """Listed ids whose details are to be read again though nothing listed differs.

    A detail proves an `updated_at` that the list shows once it was read later than the lateness
    after it. Without one it proves nothing, and a list that ought to be sorted is not proven
    anyhow. Every detail is read again after `DETAILS_REREAD_HOURS`.
    """
    lateness = timedelta(seconds=bookmark.lateness_seconds)
    daily = page.dated_at - timedelta(hours=DETAILS_REREAD_HOURS)
    found: list[str] = []
    for item in page.items:
        read_at = known[item.id].read_at if item.id in known else None
        updated_at = item.updated_at if item.declaration.lists_cursor else None
        limit = daily if item.declaration.sortable else page.dated_at
        if updated_at is not None:
            limit = max(daily, updated_at + lateness)
        if read_at is not None and read_at < limit:
            found.append(item.id)
    return found


def total_events(bookmark: Bookmark, offset: int, live: int) -> tuple[Event, ...]:
    """Events for a list's total that is wrong; none where that is known."""
    if offset in (0, bookmark.total_offset):
        return ()
    told = f"the list shows {live} records, and its total says {live - offset}"
    return (Event("total_off", told),)


def unsorted_event(resource: Declaration) -> Event:
    """Tells that the server does not sort, which forbids cheap pulls of the resource."""
    return Event(
        "unsorted",
        f"the list of {resource.name} is not in the order asked for: every pull reads it whole",
    )
