"""The pull engine with a planted fault: a part is removed, or one of its lines is changed.

Each function plants one fault for as long as the patch lasts. `SHOWN_IN` names the scenario in
which it is found, and `HARMLESS` the faults that no scenario can find; docs/CORRECTNESS.md explains
why. The patch raises if the engine no longer contains the part, so that no fault is planted in name
only.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from connector.client.limiter import RateLimiter
from connector.pulls import pull as pulls
from connector.pulls.pull import Pull, Scan
from connector.warehouse.stream import Bookmark, Commit, DeletionProof
from tests.simulation import world
from tests.simulation.harness import START
from tests.simulation.mirror import Mirror, PullEnd


def patch_source(patch: pytest.MonkeyPatch, owner: Any, name: str, *edits: tuple[str, str]) -> None:
    """Replace a function of a class or module by a copy with edited source text.

    Each edit is a pair of texts: one that occurs exactly once in the source, and its replacement.

    Raises:
        AssertionError: A text does not occur exactly once.
    """
    whole = vars(owner)[name]
    source = "from __future__ import annotations\n" + textwrap.dedent(inspect.getsource(whole))
    for was, becomes in edits:
        assert source.count(was) == 1, f"{name} has {was!r} {source.count(was)} times, not once"
        source = source.replace(was, becomes)
    scope: dict[str, Any] = {}
    exec(source, whole.__globals__, scope)  # noqa: S102 # our own source, with our own edits
    patch.setattr(owner, name, scope[name])


# -- the floor and the bookmark -------------------------------------------------------------------


def _multiply_lateness(patch: pytest.MonkeyPatch, factor: str) -> None:
    """Multiply the allowance for late writes by a factor, given as source text."""
    whole = "timedelta(seconds=mark.lateness_seconds)"
    patch_source(patch, pulls, "floor_of", (whole, f"{whole} * {factor}"))


def no_lookback(patch: pytest.MonkeyPatch) -> None:
    """The floor is the bookmark itself, so changes that become visible late are missed."""
    _multiply_lateness(patch, "0")


def half_the_lateness(patch: pytest.MonkeyPatch) -> None:
    """The floor allows only half of the time by which writes may be late."""
    _multiply_lateness(patch, "0.5")


def _raise_floor(patch: pytest.MonkeyPatch, seconds: int) -> None:
    """Raise the floor of every scan by some seconds."""
    higher = f"return floor + timedelta(seconds={seconds})"
    patch_source(patch, pulls, "floor_of", ("return floor", higher))


def floor_a_second_high(patch: pytest.MonkeyPatch) -> None:
    """The floor of a scan is one second too high."""
    _raise_floor(patch, 1)


def floor_three_seconds_high(patch: pytest.MonkeyPatch) -> None:
    """The floor of a scan is three seconds too high."""
    _raise_floor(patch, 3)


def clock_set_back_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The floor does not change when the server's clock is set back."""
    condition = "before - ahead <= CLOCK_SLACK_SECONDS"
    patch_source(patch, pulls, "with_clock_change", (condition, "True"))


def clock_set_forward_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A clock that is set forward is not remembered, so setting it right again is not seen."""
    condition = "before is None or ahead - before > CLOCK_SLACK_SECONDS"
    patch_source(patch, pulls, "with_clock_change", (condition, "before is None"))


def bookmark_from_data(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is the newest `updated_at` that was read, as in most connectors."""
    whole = Scan.verified

    def verified(self: Scan) -> Bookmark:
        dates = [at for at, _ in self.pull.reads.values() if at]
        self.pull.mark = replace(self.pull.mark, opened_at=max(dates, default=START))
        return whole(self)

    patch.setattr(Scan, "verified", verified)


def _replace_commits(
    patch: pytest.MonkeyPatch, change: Callable[[Commit], Iterable[Commit]]
) -> None:
    """Perform other commits than the engine wants, whichever engine it is."""
    whole = Mirror.commit

    async def commit(self: Mirror, wanted: Commit) -> None:
        for each in change(wanted):
            await whole(self, each)

    patch.setattr(Mirror, "commit", commit)


def bookmark_before_its_rows(patch: pytest.MonkeyPatch) -> None:
    """The end of a scan is committed before the rows that the scan reads."""

    def commit(what: Commit) -> Iterable[Commit]:
        mark = what.bookmark
        if what.records and mark is not None and mark.opened_at is not None:
            yield Commit(bookmark=replace(mark, proven_at=mark.opened_at, opened_at=None))
            what = _without_bookmark(what)
        yield what

    _replace_commits(patch, commit)


def bookmark_after_its_rows(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is committed separately, after its rows."""
    _replace_commits(patch, lambda what: [_without_bookmark(what), Commit(bookmark=what.bookmark)])


def _without_bookmark(what: Commit) -> Commit:
    return replace(what, bookmark=None)


# -- what a pull leaves to the next one -----------------------------------------------------------


def queue_is_forgotten_after_a_kill(patch: pytest.MonkeyPatch) -> None:
    """The queue is only in memory, not in the work file."""
    whole = Mirror.pull

    def pull(self: Mirror) -> PullEnd:
        ended = whole(self)
        if ended.pulled is None:
            self.queue.clear()
        return ended

    patch.setattr(Mirror, "pull", pull)


def closing_id_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The record that ended the last scan is forgotten, so an old version of it is not noticed."""
    patch_source(patch, Scan, "verified", ("self.listing.closing", "None"))


def closing_floor_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A scan soon after another one keeps only its own floor."""
    condition = " or (is_soon and mark.closed_by is not None)"
    patch_source(patch, Scan, "verified", (condition, ""))


def resumed_pull_is_dated_by_its_last_list(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is the time of the last list, although records were read before the kill."""
    opening = "max(proven_at, mark.opened_at)"
    last = "max(proven_at, with_pass_start(self.listing.pages[0], Bookmark()).opened_at)"
    patch_source(patch, Scan, "verified", (opening, last))


# -- complete lists and other proofs --------------------------------------------------------------


def lists_count_as_complete(patch: pytest.MonkeyPatch) -> None:
    """List pages of different times are treated as one consistent list."""
    noted = Scan.lacks_ids

    async def is_complete(self: Scan) -> bool:
        return True

    def lacks_ids(self: Scan, boundary: int) -> bool:
        return noted(self, boundary) and False

    patch.setattr(Scan, "is_complete", is_complete)
    patch.setattr(Scan, "lacks_ids", lacks_ids)


def no_second_sweep(patch: pytest.MonkeyPatch) -> None:
    """A first load does not read the pages a second time."""

    async def compare_all(pull: Pull, **_: Any) -> str | None:
        return None

    patch.setattr(pulls, "compare_all", compare_all)


def one_record_may_be_missing(patch: pytest.MonkeyPatch) -> None:
    """A consistent list is assumed although one record above the boundary may be missing."""
    patch_source(
        patch,
        Scan,
        "is_complete",
        ("len(alive) < need or", "len(alive) < need - 1 or"),
        ("len(alive) >= need", "len(alive) >= need - 1"),
    )


def unread_records_count_as_existing(patch: pytest.MonkeyPatch) -> None:
    """A record that could not be read counts as existing, even if it was listed long ago."""
    condition = "unread := unread & pull.unread.keys()"
    patch_source(patch, Scan, "is_complete", (condition, "False"))


def unlisted_records_are_deleted(patch: pytest.MonkeyPatch) -> None:
    """Records that a list does not contain are deleted without a request."""

    def commit(what: Commit) -> list[Commit]:
        absent = {id: DeletionProof(START) for id, why in what.enqueue.items() if why == "absent"}
        return [replace(what, gone={**what.gone, **absent})]

    _replace_commits(patch, commit)


def wrong_totals_are_trusted(patch: pytest.MonkeyPatch) -> None:
    """A total that the rows of the list contradict still proves that nothing was deleted."""
    condition = "strangers or not pull.mark.is_total_exact"
    patch_source(patch, pulls, "audit", (condition, "strangers"))


def held_deletions_pass_at_the_next_pull(patch: pytest.MonkeyPatch) -> None:
    """Deletions are only held once."""
    whole = Pull.check

    def check(self: Pull, deleted: int, why: str, ids: Iterable[str] = ()) -> bool:
        return whole(self, min(deleted, 20), why, ids)

    patch.setattr(Pull, "check", check)


def any_detail_is_accepted(patch: pytest.MonkeyPatch) -> None:
    """A response with another record is accepted."""
    patch.setattr(world, "misfit_of_id", lambda *_: None)


# -- the rate limiter ------------------------------------------------------------------------------


def requests_in_flight_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """The rate limiter ignores the requests that are under way."""
    patch_source(patch, RateLimiter, "_left", ("+ self._in_flight", ""))


SHOWN_IN: Mapping[str, str] = {
    "no_lookback": "edge",
    "half_the_lateness": "content-edge",
    "floor_three_seconds_high": "content-edge",
    "clock_set_back_is_ignored": "clock",
    "clock_set_forward_is_forgotten": "clock",
    "bookmark_from_data": "D",
    "bookmark_before_its_rows": "B",
    "queue_is_forgotten_after_a_kill": "killed-load",
    "closing_id_is_forgotten": "lag-details",
    "closing_floor_is_forgotten": "lag-details",
    "resumed_pull_is_dated_by_its_last_list": "killed",
    "lists_count_as_complete": "E",
    "one_record_may_be_missing": "tied-updates",
    "no_second_sweep": "E",
    "unlisted_records_are_deleted": "B",
    "any_detail_is_accepted": "crossed",
    "wrong_totals_are_trusted": "total-high",
    "held_deletions_pass_at_the_next_pull": "blind-half",
}
"""Faults planted in the pull, each with the scenario that finds it."""

HARMLESS: Mapping[str, str] = {
    "unread_records_count_as_existing": "flaky",
    "floor_a_second_high": "content-edge",
    "bookmark_after_its_rows": "killed-late",
}
"""Faults that break no promise, each with the scenario most likely to show one."""
