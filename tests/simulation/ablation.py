"""The engine without one of its parts, to see that the simulator misses it.

Each function takes a part out, for as long as the patch lasts. Where the engine has moved on and
the part is no longer there, the patch raises, so that no ablation is one in name only.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from connector.engine import ask, load
from connector.engine.ask import Commit, Gone, Steps
from connector.engine.bookmark import Bookmark
from connector.engine.listing import Listing
from connector.engine.walk import Walk, Walked
from tests.simulation.world import START


def no_lookback(patch: pytest.MonkeyPatch) -> None:
    """The floor is R itself: what becomes visible late lies below it."""
    whole = Walk.__init__

    def init(self: Walk, *arguments: Any) -> None:
        whole(self, *arguments)
        self._floor += self._lateness
        self._lateness = timedelta(0)

    patch.setattr(Walk, "__init__", init)


def no_coverage_certificate(patch: pytest.MonkeyPatch) -> None:
    """Several pages are taken for one instant."""

    def certify(self: Walk, listing: Listing) -> Steps[bool]:
        yield from ()
        return True

    def is_short(self: Walk, listing: Listing, boundary: int) -> bool:
        return False

    patch.setattr(Walk, "_certify", certify)
    patch.setattr(Walk, "_is_short", is_short)


def no_verify_sweep(patch: pytest.MonkeyPatch) -> None:
    """A first load is believed without a second look."""

    def verify(bookmark: Bookmark, *_: Any, **__: Any) -> Steps[tuple[Bookmark, str | None]]:
        bookmark = replace(bookmark, verify_page=None)
        if bookmark.proven_at is None:
            bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None)
        yield from ask.commit(Commit(bookmark=bookmark))
        return bookmark, None

    patch.setattr(load, "verify", verify)


def bookmark_from_data(patch: pytest.MonkeyPatch) -> None:
    """R is the newest `updated_at` that was read, as most connectors have it."""
    whole = Walk._close

    def close(self: Walk, *arguments: Any, **named: Any) -> Steps[Walked]:
        readings = self._readings
        dates = [each.updated_at for each in readings.by_id.values() if each.updated_at]
        readings.bookmark = replace(readings.bookmark, opened_at=max(dates, default=START))
        return (yield from whole(self, *arguments, **named))

    patch.setattr(Walk, "_close", close)


def tombstones_without_evidence(patch: pytest.MonkeyPatch) -> None:
    """What a list does not show is deleted, without asking for it."""
    whole = ask.commit

    def commit(what: Commit) -> Steps[None]:
        absent = {id: Gone(START) for id, why in what.enqueue.items() if why == "absent"}
        yield from whole(replace(what, gone={**what.gone, **absent}))

    patch.setattr(ask, "commit", commit)
