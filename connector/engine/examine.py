"""Reading records one by one: what is queued, what is in doubt, what was verified longest ago.

Each detail read here is held against the landed row. A difference that the bookmark says cannot
be is an anomaly: a write that became visible too late, which raises the lateness, or a change
that the API did not date. Both are told as events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from connector.engine import ask
from connector.engine.ask import Commit, Event, Found, Gone, Known, Outcome, Steps
from connector.engine.bookmark import Bookmark
from connector.engine.guard import Guard

BATCH_RECORDS_MAX = 100
"""Records read between two commits, which bounds what a crash costs."""

LATENESS_SECONDS_MAX = 3600.0
"""The lateness never grows beyond an hour: what comes later is the scrub's to find."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of reading records: the bookmark, whose lateness may have grown, and the ids that
    are gone.
    """

    bookmark: Bookmark
    gone: frozenset[str] = frozenset()


def drain(guard: Guard) -> Steps[None]:
    """Read everything queued, newest first, committing each batch.

    What cannot be read stays queued, and what is gone is held by the guard, until `bury`. What was
    said to be gone in this pull and is listed all the same waits for the next one.
    """
    unread: set[str] = set()
    while ids := (
        yield from ask.next_queued(
            BATCH_RECORDS_MAX, frozenset(unread | guard.held.keys() | guard.contradicted)
        )
    ):
        outcomes = yield from ask.read_records(ids)
        found, gone = _sorted_out(outcomes)
        unread |= outcomes.keys() - gone.keys() - {each.record.id for each in found}
        guard.held |= gone
        yield from ask.commit(Commit(records=found))


def bury(guard: Guard) -> Steps[None]:
    """Make the tombstones that the guard held, now that lists do not show them either."""
    if gone := guard.release():
        yield from ask.commit(Commit(gone=gone))


def bury_few(guard: Guard) -> Steps[None]:
    """Make the tombstones that the guard held, if they are few; many stay queued, and wait for the
    lists of another round.
    """
    if guard.holds_many:
        guard.put_off()
    elif gone := guard.let_through({}):
        yield from ask.commit(Commit(gone=gone))


def examine(
    ids: Iterable[str], bookmark: Bookmark, guard: Guard, *, is_absent: bool = False
) -> Steps[Examined]:
    """Read these records, whether queued or not, and judge what differs from the landed rows.

    `is_absent` says that no list shows those that may be gone. What the guard does not let through
    at once is queued.
    """
    wanted = tuple(dict.fromkeys(ids))
    gone: dict[str, Gone] = {}
    for start in range(0, len(wanted), BATCH_RECORDS_MAX):
        batch = wanted[start : start + BATCH_RECORDS_MAX]
        known = yield from ask.recall_ids(batch)
        outcomes = yield from ask.read_records(batch)
        found, batch_gone = _sorted_out(outcomes)
        gone |= batch_gone
        differing = yield from ask.differing(tuple(each.record for each in found))
        bookmark, events = _judge(found, differing, known, bookmark)
        yield from ask.commit(Commit(records=found, bookmark=bookmark, events=events))
    if is_absent:
        guard.held |= gone
    allowed = guard.release() if is_absent else guard.let_through(gone)
    held = dict.fromkeys(gone.keys() - allowed.keys(), "gone")
    yield from ask.commit(Commit(gone=allowed, enqueue=held))
    return Examined(bookmark, frozenset(allowed))


def later(bookmark: Bookmark, seconds: float) -> Bookmark:
    """The bookmark with room for a write that became visible `seconds` late, within the bound.

    The floor moves down with it, which claims less and so is never wrong.
    """
    lateness = max(bookmark.lateness_seconds, min(LATENESS_SECONDS_MAX, 2 * seconds))
    seen = max(bookmark.late_seconds_seen, seconds)
    return replace(bookmark, lateness_seconds=lateness, late_seconds_seen=seen)


def _sorted_out(outcomes: dict[str, Outcome]) -> tuple[tuple[Found, ...], dict[str, Gone]]:
    """What was found, and what the API says is gone."""
    found = tuple(each for each in outcomes.values() if isinstance(each, Found))
    gone = {id: each for id, each in outcomes.items() if isinstance(each, Gone)}
    return found, gone


def _judge(
    found: tuple[Found, ...],
    differing: frozenset[str],
    known: dict[str, Known],
    bookmark: Bookmark,
) -> tuple[Bookmark, tuple[Event, ...]]:
    """The anomalies among the differences: changes at or below a floor that says there are none."""
    if bookmark.proven_at is None:
        return bookmark, ()
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    events: list[Event] = []
    for each in found:
        id, updated_at = each.record.id, each.record.updated_at
        if id not in differing or updated_at is None or updated_at > floor:
            continue
        if known[id].is_queued and known[id].read_at is None:
            continue
        if updated_at == known[id].updated_at:
            events.append(Event("silent", "changed, and its updated_at did not move", id))
            continue
        bookmark = _with_room_for(bookmark, updated_at, known[id].read_at)
        events.append(Event("late", f"became visible late: updated_at is {updated_at}", id))
    return bookmark, tuple(events)


def _with_room_for(bookmark: Bookmark, updated_at: datetime, read_at: datetime | None) -> Bookmark:
    """The bookmark with more lateness, after a change was found that it should have covered.

    How late the change was is known only if the row was read after it was dated; otherwise it is
    known only that it was later than allowed for, and the allowance is doubled.
    """
    assert bookmark.proven_at is not None
    seen_late = (read_at - updated_at).total_seconds() if read_at is not None else 0.0
    seconds = max(seen_late, bookmark.lateness_seconds)
    return later(bookmark, min(seconds, (bookmark.proven_at - updated_at).total_seconds()))
