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

from connector.client.rate_limiter import RateLimiter
from connector.pulls import first_load, incremental_scan, verification_pass
from connector.pulls import resource_pull as pulls
from connector.pulls.incremental_scan import IncrementalScan, ScanResult
from connector.pulls.listing import Listing
from connector.warehouse import pull_commands
from connector.warehouse.pull_commands import Bookmark, Commit, DeletionProof, PullCommand, Steps
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
    whole = "timedelta(seconds=bookmark.lateness_seconds)"
    for owner, name in ((incremental_scan, "floor_of"), (IncrementalScan, "__init__")):
        patch_source(patch, owner, name, (whole, f"{whole} * {factor}"))


def no_lookback(patch: pytest.MonkeyPatch) -> None:
    """The floor is the bookmark itself, so changes that become visible late are missed."""
    _multiply_lateness(patch, "0")


def half_the_lateness(patch: pytest.MonkeyPatch) -> None:
    """The floor allows only half of the time by which writes may be late."""
    _multiply_lateness(patch, "0.5")


def _raise_floor(patch: pytest.MonkeyPatch, seconds: int) -> None:
    """Raise the floor of every scan by some seconds."""
    higher = f"return floor + timedelta(seconds={seconds})"
    patch_source(patch, incremental_scan, "floor_of", ("return floor", higher))


def floor_a_second_high(patch: pytest.MonkeyPatch) -> None:
    """The floor of a scan is one second too high."""
    _raise_floor(patch, 1)


def floor_three_seconds_high(patch: pytest.MonkeyPatch) -> None:
    """The floor of a scan is three seconds too high."""
    _raise_floor(patch, 3)


def clock_set_back_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The floor does not change when the server's clock is set back."""
    for owner in (incremental_scan, verification_pass, pull_commands):
        patch_source(
            patch, owner, "with_clock_change", ("before - ahead <= CLOCK_SLACK_SECONDS", "True")
        )


def bookmark_from_data(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is the newest `updated_at` that was read, as in most connectors."""
    whole = IncrementalScan._commit_end

    def close(self: IncrementalScan, *arguments: Any, **named: Any) -> Steps[ScanResult]:
        details = self._details
        dates = [each.updated_at for each in details.by_id.values() if each.updated_at]
        details.bookmark = replace(details.bookmark, opened_at=max(dates, default=START))
        return (yield from whole(self, *arguments, **named))

    patch.setattr(IncrementalScan, "_commit_end", close)


def _replace_commits(
    patch: pytest.MonkeyPatch, change: Callable[[Commit], Iterable[Commit]]
) -> None:
    """Perform other commits than the engine wants, whichever engine it is."""
    whole = Mirror._execute

    def execute(self: Mirror, wanted: PullCommand[Any]) -> Any:
        for each in change(wanted) if isinstance(wanted, Commit) else (wanted,):
            answer = whole(self, each)
        return answer

    patch.setattr(Mirror, "_execute", execute)


def bookmark_before_its_rows(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is committed separately, before its rows."""
    _replace_commits(patch, lambda what: [Commit(bookmark=what.bookmark), _without_bookmark(what)])


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
    patch_source(
        patch,
        IncrementalScan,
        "_verified_bookmark",
        ("closing.id if closing is not None", "None if True"),
    )


def closing_floor_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A scan soon after another one keeps only its own floor."""
    patch_source(
        patch,
        IncrementalScan,
        "_verified_bookmark",
        ("floor = min(floor, bookmark.closed_floor)", "pass"),
    )


def resumed_pull_is_dated_by_its_last_list(patch: pytest.MonkeyPatch) -> None:
    """The bookmark is the time of the last list, although records were read before the kill."""
    patch_source(
        patch,
        IncrementalScan,
        "_verified_bookmark",
        (
            "max(before, opened_at)",
            "max(before, with_pass_start(listing.pages[0], Bookmark()).opened_at)",
        ),
    )


# -- complete lists and other proofs --------------------------------------------------------------


def lists_count_as_complete(patch: pytest.MonkeyPatch) -> None:
    """List pages of different times are treated as one consistent list."""

    def certify(self: IncrementalScan, listing: Listing) -> Steps[bool]:
        yield from ()
        return True

    def is_short(self: IncrementalScan, listing: Listing) -> bool:
        return False

    patch.setattr(IncrementalScan, "_verify_completeness", certify)
    patch.setattr(IncrementalScan, "_has_too_few_ids", is_short)


def no_second_sweep(patch: pytest.MonkeyPatch) -> None:
    """A first load does not read the pages a second time."""

    def second_look(bookmark: Bookmark, *_: Any, **__: Any) -> Steps[tuple[Bookmark, str | None]]:
        bookmark = replace(bookmark, verify_page=None)
        if bookmark.proven_at is None:
            bookmark = replace(bookmark, proven_at=bookmark.opened_at, opened_at=None)
        yield from Commit(bookmark=bookmark)
        return bookmark, None

    patch.setattr(pulls, "second_sweep", second_look)


def one_record_may_be_missing(patch: pytest.MonkeyPatch) -> None:
    """A consistent list is assumed although one record above the boundary may be missing."""
    patch_source(
        patch,
        IncrementalScan,
        "_verify_completeness",
        ("if len(live) < need", "if len(live) < need - 1"),
    )


def unread_records_count_as_existing(patch: pytest.MonkeyPatch) -> None:
    """A record that could not be read counts as existing, even if it was listed long ago."""
    patch_source(
        patch, IncrementalScan, "_verify_completeness", ("if len(live) >= need:", "if False:")
    )


def unlisted_records_are_deleted(patch: pytest.MonkeyPatch) -> None:
    """Records that a list does not contain are deleted without a request."""

    def commit(what: Commit) -> list[Commit]:
        absent = {id: DeletionProof(START) for id, why in what.enqueue.items() if why == "absent"}
        return [replace(what, gone={**what.gone, **absent})]

    _replace_commits(patch, commit)


def any_detail_is_accepted(patch: pytest.MonkeyPatch) -> None:
    """A response with another record is accepted."""
    patch.setattr(world, "misfit_of_id", lambda *_: None)


def huge_totals_are_remembered(patch: pytest.MonkeyPatch) -> None:
    """A list's total is used and saved without a check."""

    def unchecked(steps: Steps[Any], *_: Any) -> Steps[Any]:
        return (yield from steps)

    patch.setattr(pulls, "with_checked_totals", unchecked)
    for owner in (incremental_scan, first_load):
        patch.setattr(owner, "capped_total", lambda total, *_: total)


# -- the rate limiter ------------------------------------------------------------------------------


def requests_in_flight_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """The rate limiter ignores the requests that are under way."""
    patch_source(patch, RateLimiter, "_left_by_headers", ("+ self._in_flight", ""))


SHOWN_IN: Mapping[str, str] = {
    "no_lookback": "edge",
    "half_the_lateness": "content-edge",
    "floor_three_seconds_high": "content-edge",
    "clock_set_back_is_ignored": "clock",
    "bookmark_from_data": "D",
    "bookmark_before_its_rows": "B",
    "queue_is_forgotten_after_a_kill": "killed-load",
    "closing_id_is_forgotten": "lag-details",
    "closing_floor_is_forgotten": "lag-details",
    "resumed_pull_is_dated_by_its_last_list": "killed",
    "lists_count_as_complete": "E",
    "one_record_may_be_missing": "tied-updates",
    "unread_records_count_as_existing": "flaky",
    "no_second_sweep": "E",
    "unlisted_records_are_deleted": "B",
    "any_detail_is_accepted": "crossed",
    "huge_totals_are_remembered": "total-huge-guarded",
}
"""Faults planted in the pull, each with the scenario that finds it."""

HARMLESS: Mapping[str, str] = {
    "floor_a_second_high": "content-edge",
    "bookmark_after_its_rows": "killed-late",
}
"""Faults that break no promise, each with the scenario most likely to show one."""
