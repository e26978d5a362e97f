"""Each reason to hold back deletions, and which records are loaded anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.catalog.resource import Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.resource_pull import PullOptions, PullResult
from connector.warehouse.pull_commands import DeletionProof, Outcome
from tests.simulation.checkers import check_commit, find_differences, find_not_deleted
from tests.simulation.harness import START
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

_QUIET = PullScenario("nothing happens of itself", ORDINARY, accepts_deletes=False)


def _load_records(records: int = 120) -> Mirror:
    """Return a mirror of a new server after its first pull."""
    mirror = Mirror(PullWorld(0, replace(_QUIET, records=records)), check_commit=check_commit)
    _pull_an_hour_later(mirror)
    return mirror


def _pull_an_hour_later(mirror: Mirror) -> PullResult:
    """Let an hour pass, pull, and return the result."""
    mirror.world.pass_time(3600)
    ended = mirror.pull()
    assert ended.pulled is not None, ended.error
    return ended.pulled


def _change_records(mirror: Mirror, count: int = 1) -> None:
    """Update `count` records and create one."""
    for id in sorted(mirror.world.server.created_at)[-count:]:
        mirror.world.changes.update_record(id, is_late_allowed=False)
    mirror.world.changes.create_record(is_late_allowed=False)


def _pull_accepting_deletions(mirror: Mirror) -> PullResult:
    """Pull with `--accept-deletes`, and return the result."""
    mirror.options = PullOptions(accepts_deletes=True)
    return _pull_an_hour_later(mirror)


def test_a_list_that_shrank_holds_back_only_its_deletions() -> None:
    """New and changed records are loaded. The bookmark stays until the user accepts the deletions,
    because records that are no longer listed may have changed.
    """
    mirror = _load_records()
    before = mirror.bookmark.proven_at
    gone = set(sorted(mirror.world.server.created_at)[:40])
    for id in gone:
        mirror.world.server.remove(id)
    _change_records(mirror)

    assert "list_shrank" == _pull_an_hour_later(mirror).code
    assert {"ghosts": gone} == find_differences(mirror)
    assert before == mirror.bookmark.proven_at
    assert _pull_accepting_deletions(mirror).is_proven
    assert {} == find_differences(mirror)


@pytest.mark.parametrize("sweeps", [True, False])
def test_a_list_with_few_loaded_records_counts_as_another_list(sweeps: bool) -> None:
    mirror = _load_records()
    gone = set(mirror.world.server.created_at)
    for id in gone:
        mirror.world.server.remove(id)
    # With an unchanged total, only a sweep detects the other list.
    for _ in range(len(gone) + (not sweeps)):
        mirror.world.changes.create_record(is_late_allowed=False)
    mirror.options = PullOptions(sweeps=sweeps)

    assert "list_unfamiliar" == _pull_an_hour_later(mirror).code
    assert {"ghosts": gone} == find_differences(mirror)
    assert _pull_accepting_deletions(mirror).is_proven
    assert {} == find_differences(mirror)


def test_many_records_listed_but_reported_deleted_are_held_back() -> None:
    mirror = _load_records()
    _change_records(mirror, 40)
    hidden, whole = set(mirror.rows), mirror.world.read_detail

    def read(id: str) -> Outcome:
        return DeletionProof(mirror.world.now) if id in hidden else whole(id)

    mirror.world.read_detail = read  # type: ignore[method-assign]
    pulled = _pull_an_hour_later(mirror)

    assert ("details_gone", set()) == (pulled.code, find_not_deleted(mirror))
    assert not any(row.is_deleted for row in mirror.rows.values())
    assert find_differences(mirror).keys() == {"stale"}
    mirror.world.read_detail = whole  # type: ignore[method-assign]
    assert _pull_an_hour_later(mirror).is_proven
    assert {} == find_differences(mirror)


def test_many_deletions_wait_until_the_records_leave_the_list() -> None:
    guard = MassDeletionGuard(100, 100)
    gone = {f"{number}": DeletionProof(START) for number in range(30)}

    assert {} == guard.release_if_few(gone)
    guard.defer()
    assert guard.refusal is not None
    assert "deletions_waiting" == guard.refusal.code
    guard.held |= gone
    assert gone == guard.release_all()
    assert guard.refusal is None


def test_an_empty_list_of_a_broken_server_deletes_nothing() -> None:
    mirror = _load_records(2)
    whole = mirror.world.list_page

    def empty(page: int, sort: str | None, order: str) -> Page[Resource]:
        return replace(whole(page, sort, order), items=(), total=0)

    mirror.world.list_page = empty  # type: ignore[method-assign]
    pulled = _pull_an_hour_later(mirror)

    assert not pulled.is_proven
    assert not any(row.is_deleted for row in mirror.rows.values())
    mirror.world.list_page = whole  # type: ignore[method-assign]
    assert _pull_an_hour_later(mirror).is_proven
    assert {} == find_differences(mirror)


def test_a_list_becomes_empty_only_after_deletions_are_accepted() -> None:
    mirror = _load_records(6)
    for id in sorted(mirror.world.server.created_at):
        mirror.world.server.remove(id)

    assert "list_shrank" == _pull_an_hour_later(mirror).code
    assert _pull_accepting_deletions(mirror).is_proven
    assert {} == find_differences(mirror)
