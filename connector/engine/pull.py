"""Pull: what to read of a stream (a resource, a type's items), in which order.

    never loaded   sweep, drain, look once more, then walk
    loaded         drain what is still queued, walk, recheck what the list made suspect, audit
    unsortable     read whole

The audit compares the live rows with the list's own total; where they differ, the deleted and the
missing are searched for. A scrub follows where it was asked for.

A generator of commands (`commands.py`). Its driver may stop at any of them: all that was committed
stays, and the next pull goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connector.catalog.resource import Declaration
from connector.engine.bookmark import Bookmark
from connector.engine.commands import Commit, CountLive, Event, Recall, SpendFor, Steps
from connector.engine.first_load import (
    TOO_FEW,
    Swept,
    read_whole,
    sweep,
    total_events,
    unsorted_event,
    verify,
)
from connector.engine.guard import Guard
from connector.engine.recheck import bury_few, drain, recheck
from connector.engine.reconcile import Reconcile
from connector.engine.scrub import read_windows, scrub
from connector.engine.walk import OUT_OF_ORDER, Walk, Walked


@dataclass(frozen=True, slots=True)
class PullOptions:
    """What is asked of a pull beyond the fewest requests that prove it.

    `is_full` reads every record again; `sweeps` compares every page of the list, and reads what
    differs or is absent. `accepts_deletes` is a person's word that deletions are meant, however
    many they are. `scrub_requests` are to be spent on looking again at what is taken to be proven;
    what that finds wrong is read as well.
    """

    is_full: bool = False
    sweeps: bool = False
    accepts_deletes: bool = False
    scrub_requests: int = 0


@dataclass(frozen=True, slots=True)
class Pulled:
    """End of a stream's pull: whether the landing is proven up to R, or why not.

    `total` is the API's own count in the last list that was read. `code` is that of the error that
    says what to do, where deletions were kept back.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None


FEWEST_REQUESTS = PullOptions()

ONLY_THESE = "only the records asked for were read"
"""Why a pull of some records proves nothing of the others."""

UNSORTED = "the server does not sort, so changes may be unseen for a day"


def pull(
    resource: Declaration, bookmark: Bookmark, options: PullOptions = FEWEST_REQUESTS
) -> Steps[Pulled]:
    """Bring one stream up to date with the fewest requests that prove it."""
    if not resource.sortable or not (bookmark.is_sorted or options.is_full):
        return (yield from _pull_whole(resource, bookmark, options))
    # A person who asks for everything may have set the server right: it is found out anew.
    bookmark = replace(bookmark, is_sorted=True)
    swept: Swept | None = None
    if bookmark.proven_at is None and bookmark.verify_page is None:
        swept = yield from sweep(bookmark)
        bookmark = swept.bookmark
    guard = Guard((yield from CountLive()), bookmark.listed, accepts=options.accepts_deletes)
    yield from drain(guard)
    if guard.holds_many:
        # So many need more than the API's word for each: every list is read, and then believed.
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    bookmark, ended = yield from _load(resource, bookmark, swept, guard, options)
    if ended is not None:
        yield from bury_few(guard)
        return (yield from _concluded(ended, guard))
    if not bookmark.is_sorted:
        return (yield from _pull_whole(resource, bookmark, options))
    return (yield from _walk(resource, bookmark, guard, options))


def pull_ids(bookmark: Bookmark, ids: tuple[str, ...]) -> Steps[Pulled]:
    """Read these records alone; what is gone becomes a tombstone at once."""
    live = yield from CountLive()
    yield from recheck(ids, bookmark, Guard(live, bookmark.listed, accepts=True))
    known = yield from Recall(ids)
    absent = [id for id in ids if id not in known]
    gone = sorted(id for id, row in known.items() if row.is_deleted)
    reason = ONLY_THESE
    if absent:
        reason = f"the API has no record {', '.join(absent)}"
    elif gone:
        reason = f"gone from the API: {', '.join(gone)}"
    return Pulled(False, reason, live)


def _load(
    resource: Declaration,
    bookmark: Bookmark,
    swept: Swept | None,
    guard: Guard,
    options: PullOptions,
) -> Steps[tuple[Bookmark, Pulled | None]]:
    """First load, or the whole list of a full pull. Returns the end, if it was one."""
    if swept is not None:
        if swept.is_short:
            return bookmark, Pulled(False, TOO_FEW, swept.total)
        if not bookmark.is_sorted:
            yield from Commit(events=(unsorted_event(resource),))
        elif swept.is_one_instant and resource.lists_cursor:
            # Its only page showed every id and `updated_at` at one instant: that is a walk.
            return bookmark, Pulled(True, None, swept.total)
    if (options.is_full or options.sweeps) and swept is None:
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    if bookmark.verify_page is not None:
        if bookmark.proven_at is not None:
            yield from SpendFor("sweep")
        bookmark, doubt = yield from verify(bookmark, guard, reads_all=options.is_full)
        if doubt is not None and (guard.refused is None or bookmark.proven_at is None):
            return bookmark, Pulled(False, doubt, (yield from CountLive()))
    return bookmark, None


def _walk(
    resource: Declaration, bookmark: Bookmark, guard: Guard, options: PullOptions
) -> Steps[Pulled]:
    """Walk, recheck what the list made suspect, audit, and scrub if asked."""
    yield from SpendFor("pull")
    is_resumed = bookmark.opened_at is not None
    walked = yield from Walk(resource, bookmark, guard).run()
    if is_resumed and walked.is_proven:
        # The pass cut short is proven as of its own opening; what changed since needs another.
        walked = yield from Walk(resource, walked.bookmark, guard).run()
    bookmark, doubt = walked.bookmark, walked.reason
    if doubt == OUT_OF_ORDER and guard.refused is None:
        events = () if bookmark.is_sorted else (unsorted_event(resource),)
        yield from Commit(events=events)
        return (yield from _pull_whole(resource, bookmark, options))
    if guard.refused is None and guard.holds_many:
        yield from SpendFor("sweep")
        bookmark, found = yield from verify(replace(bookmark, scrubbed_to=None), guard)
        doubt = doubt or found
    else:
        yield from Commit(enqueue=walked.suspects)
        bookmark = yield from recheck(walked.suspects, bookmark, guard)
        if guard.refused is None:
            bookmark, found = yield from _audit(walked, bookmark, guard)
            doubt = doubt or found
    is_confirmed = guard.refused is None and guard.blindness is not None
    if is_confirmed and (yield from CountLive()) == 0:
        # Each record that the empty list had was asked for, and is gone: now the list is believed.
        walked = yield from Walk(resource, bookmark, Guard(0, 0)).run()
        bookmark, doubt = walked.bookmark, walked.reason
    if options.scrub_requests and guard.refused is None:
        yield from SpendFor("scrub")
        yield from scrub(bookmark, options.scrub_requests, guard)
        yield from drain(guard)
        yield from bury_few(guard)
    return (yield from _concluded(Pulled(doubt is None, doubt, walked.total), guard))


def _audit(walked: Walked, bookmark: Bookmark, guard: Guard) -> Steps[tuple[Bookmark, str | None]]:
    """Compare the live rows with the walk's total; search where they differ.

    Records that were found gone after that list are in its total and no longer live. A total whose
    offset was never measured proves nothing, equal or not. Returns the bookmark, and what remains
    unexplained.
    """
    if bookmark.total_offset is None:
        yield from SpendFor("sweep")
        return (yield from _explain(bookmark, guard))
    total = walked.total + bookmark.total_offset - walked.gone
    if (yield from CountLive()) == total:
        return bookmark, None
    yield from SpendFor("sweep")
    search = Reconcile(total, walked.per_page, bookmark, guard)
    absent = yield from search.run()
    bookmark = yield from recheck(absent, search.bookmark, guard, is_absent=True)
    if not search.is_sorted:
        bookmark = replace(bookmark, is_sorted=False)
        yield from Commit(bookmark=bookmark)
        return bookmark, "the list is not sorted by created_at"
    yield from drain(guard)
    yield from bury_few(guard)
    if guard.refused is not None:
        return bookmark, guard.refused.message
    live = yield from CountLive()
    if (offset := bookmark.total_offset) is not None:
        is_explained = not search.totals or live == search.totals[-1] + offset
        # What changes as it is read is for the next pull's audit to see.
        if is_explained or set(search.totals) != {walked.total}:
            return bookmark, None
    return (yield from _explain(bookmark, guard))


def _explain(bookmark: Bookmark, guard: Guard) -> Steps[tuple[Bookmark, str | None]]:
    """Compare every page where the total is not accounted for, or not worth anything.

    If all pages agree with the landing and only the total does not, then it is the total that is
    wrong, and by how much is remembered.
    """
    done = yield from read_windows(replace(bookmark, scrubbed_to=None), guard)
    bookmark = yield from recheck(done.suspects, done.bookmark, guard, is_absent=True)
    yield from drain(guard)
    yield from bury_few(guard)
    live = yield from CountLive()
    offset = done.offset(live)
    if offset is None or guard.refused is not None:
        told = f"the API counts {done.total} records, and {live} are landed"
        return bookmark, told if live != done.count else None
    events = total_events(bookmark, offset, live)
    bookmark = replace(bookmark, total_offset=offset)
    yield from Commit(bookmark=bookmark, events=events)
    return bookmark, None


def _pull_whole(resource: Declaration, bookmark: Bookmark, options: PullOptions) -> Steps[Pulled]:
    """Read the list whole, and say why it is not proven, if it is not."""
    guard = Guard((yield from CountLive()), bookmark.listed, accepts=options.accepts_deletes)
    bookmark, is_whole, total = yield from read_whole(
        resource, bookmark, guard, reads_all=options.is_full
    )
    reason: str | None = None
    if not is_whole:
        reason = "the list changed while it was read"
    elif resource.sortable:
        reason = UNSORTED
    return (yield from _concluded(Pulled(reason is None, reason, total), guard))


def _concluded(pulled: Pulled, guard: Guard) -> Steps[Pulled]:
    """End of the pull; it is not proven where the guard kept deletions back."""
    refusal = guard.refusal
    if refusal is None:
        return pulled
    yield from Commit(events=(Event("mass_deletion", refusal.message),))
    return Pulled(False, refusal.message, pulled.total, refusal.code)
