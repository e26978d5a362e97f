"""Pull: what to read of one stream, and in which order. A stream is a resource, or one content
type's items.

    never loaded   sweep, drain, look once more, then walk
    loaded         drain what is still queued, walk, and look at all pages if the total differs
    unsortable     read whole

A generator that asks (`ask.py`); the first load is in `load.py`, the walk in `walk.py`. Whoever
drives it may stop at any ask: all that was committed stays, and the next pull goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.engine import ask, load
from connector.engine.ask import Bookmark, Commit, Steps
from connector.engine.walk import Walk, Walked, gone_max
from connector.resource import Declaration


@dataclass(frozen=True, slots=True)
class Pulled:
    """How the pull of a stream ended: whether the landing is proven up to the new R, or why not.

    `total` is the API's own count in the last list that was read.
    """

    is_proven: bool
    reason: str | None
    total: int


def pull(resource: Declaration, bookmark: Bookmark) -> Steps[Pulled]:
    """Bring one stream up to date with the fewest requests that prove it."""
    if not resource.sortable:
        return (yield from _pull_whole(resource, bookmark))
    if bookmark.proven_at is None and bookmark.verify_page is None:
        swept = yield from load.sweep(bookmark)
        bookmark = swept.bookmark
        yield from load.drain()
        if swept.is_short:
            return Pulled(False, "the list shows fewer records than its total", swept.total)
        if not bookmark.is_sorted:
            yield from ask.commit(Commit(events=(load.unsorted_event(resource),)))
        elif swept.is_one_instant and resource.lists_cursor:
            # Its only page showed every id and `updated_at` at one instant: that is a walk.
            return Pulled(True, None, swept.total)
    yield from load.drain()
    if bookmark.verify_page is not None:
        bookmark, doubt = yield from load.verify(bookmark)
        if doubt is not None:
            return Pulled(False, doubt, (yield from ask.count_live()))
    if not bookmark.is_sorted:
        return (yield from _pull_whole(resource, bookmark))
    is_resumed = bookmark.opened_at is not None
    walked = yield from Walk(resource, bookmark).run()
    if is_resumed and walked.is_proven:
        # The pass cut short is proven as of its own opening; what changed since needs another.
        walked = yield from Walk(resource, walked.bookmark).run()
    return (yield from _audit(walked))


def _audit(walked: Walked) -> Steps[Pulled]:
    """Hold the live rows against the total of the walk's own list; if they differ, look at all
    pages.

    Records that were found gone after that list are in its total and no longer live.
    """
    doubt = walked.reason
    live = yield from ask.count_live()
    is_believable = live - walked.total <= gone_max(live)
    if live + walked.gone != walked.total and is_believable:
        _, found = yield from load.verify(walked.bookmark)
        doubt = doubt or found
    return Pulled(doubt is None, doubt, walked.total)


def _pull_whole(resource: Declaration, bookmark: Bookmark) -> Steps[Pulled]:
    """Read the list whole; content that cannot be sorted is never proven by its list alone."""
    bookmark, is_whole, total = yield from load.read_whole(resource, bookmark)
    if not is_whole:
        return Pulled(False, "the list changed while it was read", total)
    if resource.sortable:
        return Pulled(False, "the server does not sort, so changes may be unseen for a day", total)
    return Pulled(True, None, total)
