"""Pull: what to read of one stream, and in which order. A stream is a resource, or one content
type's items.

    never loaded   sweep, drain, look once more, then walk
    loaded         drain what is still queued, walk, look at what the list made suspect, audit
    unsortable     read whole

The audit holds the live rows against the list's own total; where they differ, the deleted and the
missing are searched for. A scrub follows where it was asked for.

A generator that asks (`commands.py`). Whoever drives it may stop at any ask: all that was committed
stays, and the next pull goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connector.catalog.resource import Declaration
from connector.engine import commands
from connector.engine import first_load as load
from connector.engine.bookmark import Bookmark
from connector.engine.commands import Commit, Event, Steps
from connector.engine.recheck import Guard, bury_few, drain, examine
from connector.engine.reconcile import Reconcile
from connector.engine.scrub import read_windows, scrub
from connector.engine.walk import OUT_OF_ORDER, Walk, Walked


@dataclass(frozen=True, slots=True)
class Manner:
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
    """How the pull of a stream ended: whether the landing is proven up to the new R, or why not.

    `total` is the API's own count in the last list that was read. `code` is that of the error that
    says what to do, where deletions were kept back.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None


_THE_LEAST = Manner()

ONLY_THESE = "only the records asked for were read"
"""Why a pull of some records proves nothing of the others."""


def pull(resource: Declaration, bookmark: Bookmark, manner: Manner = _THE_LEAST) -> Steps[Pulled]:
    """Bring one stream up to date with the fewest requests that prove it."""
    if not resource.sortable or not (bookmark.is_sorted or manner.is_full):
        return (yield from _pull_whole(resource, bookmark, manner))
    # A person who asks for everything may have set the server right: it is found out anew.
    bookmark = replace(bookmark, is_sorted=True)
    swept: load.Swept | None = None
    if bookmark.proven_at is None and bookmark.verify_page is None:
        swept = yield from load.sweep(bookmark)
        bookmark = swept.bookmark
    live = yield from commands.count_live()
    guard = Guard(live, bookmark.listed, accepts=manner.accepts_deletes)
    yield from drain(guard)
    if guard.holds_many:
        # So many need more than the API's word for each: every list is read, and then believed.
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    bookmark, ended = yield from _load(resource, bookmark, swept, guard, manner)
    if ended is not None:
        yield from bury_few(guard)
        return (yield from _concluded(ended, guard))
    if not bookmark.is_sorted:
        return (yield from _pull_whole(resource, bookmark, manner))
    return (yield from _walk(resource, bookmark, guard, manner))


def _load(
    resource: Declaration,
    bookmark: Bookmark,
    swept: load.Swept | None,
    guard: Guard,
    manner: Manner,
) -> Steps[tuple[Bookmark, Pulled | None]]:
    """What a first load and a full pull do besides; tells how the pull ended, if it has."""
    if swept is not None:
        if swept.is_short:
            reason = "fewer records could be found than the list has"
            return bookmark, Pulled(False, reason, swept.total)
        if not bookmark.is_sorted:
            yield from commands.commit(Commit(events=(load.unsorted_event(resource),)))
        elif swept.is_one_instant and resource.lists_cursor:
            # Its only page showed every id and `updated_at` at one instant: that is a walk.
            return bookmark, Pulled(True, None, swept.total)
    if (manner.is_full or manner.sweeps) and swept is None:
        bookmark = replace(bookmark, verify_page=0, scrubbed_to=None)
    if bookmark.verify_page is not None:
        if bookmark.proven_at is not None:
            yield from commands.turn_to("sweep")
        bookmark, doubt = yield from load.verify(bookmark, guard, reads_all=manner.is_full)
        if doubt is not None and (guard.refused is None or bookmark.proven_at is None):
            return bookmark, Pulled(False, doubt, (yield from commands.count_live()))
    return bookmark, None


def pull_ids(bookmark: Bookmark, ids: tuple[str, ...]) -> Steps[Pulled]:
    """Read these records and no others. What the API says is gone becomes a tombstone: a person
    named it.
    """
    live = yield from commands.count_live()
    guard = Guard(live, bookmark.listed, accepts=True)
    examined = yield from examine(ids, bookmark, guard)
    known = yield from commands.recall_ids(ids)
    absent = [id for id in ids if id not in known]
    reason = ONLY_THESE
    if absent:
        reason = f"the API has no record {', '.join(absent)}"
    elif examined.gone:
        reason = f"gone from the API: {', '.join(sorted(examined.gone))}"
    return Pulled(False, reason, live)


def _walk(resource: Declaration, bookmark: Bookmark, guard: Guard, manner: Manner) -> Steps[Pulled]:
    """Walk, look at what the list made suspect, audit, and scrub if that was asked for."""
    yield from commands.turn_to("pull")
    is_resumed = bookmark.opened_at is not None
    walked = yield from Walk(resource, bookmark, guard).run()
    if is_resumed and walked.is_proven:
        # The pass cut short is proven as of its own opening; what changed since needs another.
        walked = yield from Walk(resource, walked.bookmark, guard).run()
    bookmark = walked.bookmark
    if walked.reason == OUT_OF_ORDER and guard.refused is None:
        event = () if bookmark.is_sorted else (load.unsorted_event(resource),)
        yield from commands.commit(Commit(events=event))
        return (yield from _pull_whole(resource, bookmark, manner))
    doubt = walked.reason
    if guard.refused is None and guard.holds_many:
        yield from commands.turn_to("sweep")
        bookmark, found = yield from load.verify(replace(bookmark, scrubbed_to=None), guard)
        doubt = doubt or found
    else:
        yield from commands.commit(Commit(enqueue=walked.suspects))
        examined = yield from examine(walked.suspects, bookmark, guard)
        if guard.refused is None:
            bookmark, found = yield from _audit(walked, examined.bookmark, guard)
            doubt = doubt or found
    is_confirmed = guard.refused is None and guard.blindness is not None
    if is_confirmed and (yield from commands.count_live()) == 0:
        # Each record that the empty list had was asked for, and is gone: now the list is believed.
        walked = yield from Walk(resource, bookmark, Guard(0, 0)).run()
        bookmark, doubt = walked.bookmark, walked.reason
    if manner.scrub_requests and guard.refused is None:
        yield from commands.turn_to("scrub")
        bookmark = yield from scrub(bookmark, manner.scrub_requests, guard)
        yield from drain(guard)
        yield from bury_few(guard)
    return (yield from _concluded(Pulled(doubt is None, doubt, walked.total), guard))


def _audit(walked: Walked, bookmark: Bookmark, guard: Guard) -> Steps[tuple[Bookmark, str | None]]:
    """Hold the live rows against the total of the walk's own list; search where they differ.

    Records that were found gone after that list are in its total and no longer live. A total whose
    offset was never measured proves nothing, equal or not. Returns the bookmark, and what remains
    unexplained.
    """
    if bookmark.total_offset is None:
        yield from commands.turn_to("sweep")
        return (yield from _explain(bookmark, guard))
    total = walked.total + bookmark.total_offset - walked.gone
    if (yield from commands.count_live()) == total:
        return bookmark, None
    yield from commands.turn_to("sweep")
    search = Reconcile(total, walked.per_page, bookmark, guard)
    absent = yield from search.run()
    examined = yield from examine(absent, search.bookmark, guard, is_absent=True)
    bookmark = examined.bookmark
    if not search.is_sorted:
        bookmark = replace(bookmark, is_sorted=False)
        yield from commands.commit(Commit(bookmark=bookmark))
        return bookmark, "the list is not sorted by created_at"
    yield from drain(guard)
    yield from bury_few(guard)
    if guard.refused is not None:
        return bookmark, guard.refused.told
    live = yield from commands.count_live()
    if (offset := bookmark.total_offset) is not None:
        is_explained = not search.totals or live == search.totals[-1] + offset
        # What changes as it is read is for the next pull's audit to see.
        if is_explained or set(search.totals) != {walked.total}:
            return bookmark, None
    return (yield from _explain(bookmark, guard))


def _explain(bookmark: Bookmark, guard: Guard) -> Steps[tuple[Bookmark, str | None]]:
    """Compare every page, after a search did not account for the total, or where nothing says
    what the total is worth.

    If all pages agree with the landing and only the total does not, then it is the total that is
    wrong, and by how much is remembered.
    """
    done = yield from read_windows(replace(bookmark, scrubbed_to=None), guard)
    examined = yield from examine(done.suspects, done.bookmark, guard, is_absent=True)
    bookmark = examined.bookmark
    yield from drain(guard)
    yield from bury_few(guard)
    live = yield from commands.count_live()
    offset = done.offset(live)
    if offset is None or guard.refused is not None:
        told = f"the API counts {done.total} records, and {live} are landed"
        return bookmark, told if live != done.count else None
    events = load.total_events(bookmark, offset, live)
    bookmark = replace(bookmark, total_offset=offset)
    yield from commands.commit(Commit(bookmark=bookmark, events=events))
    return bookmark, None


def _concluded(pulled: Pulled, guard: Guard) -> Steps[Pulled]:
    """How the pull ended, with what the guard kept back: then it is not proven, and says why."""
    refusal = guard.refusal
    if refusal is None:
        return pulled
    yield from commands.commit(Commit(events=(Event("mass_deletion", refusal.told),)))
    return Pulled(False, refusal.told, pulled.total, refusal.code)


def _pull_whole(resource: Declaration, bookmark: Bookmark, manner: Manner) -> Steps[Pulled]:
    """Read the list whole; content that cannot be sorted is never proven by its list alone."""
    live = yield from commands.count_live()
    guard = Guard(live, bookmark.listed, accepts=manner.accepts_deletes)
    bookmark, is_whole, total = yield from load.read_whole(
        resource, bookmark, guard, reads_all=manner.is_full
    )
    reason: str | None = None
    if not is_whole:
        reason = "the list changed while it was read"
    elif resource.sortable:
        reason = "the server does not sort, so changes may be unseen for a day"
    return (yield from _concluded(Pulled(reason is None, reason, total), guard))
