"""Reasons to hold back deletions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.pulls.ports import PullOptions, PullResult
from connector.warehouse.stream import DeletionProof, Outcome
from tests.simulation.checkers import check_commit, find_differences, find_not_deleted
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


def _loaded(mirror: Mirror) -> dict[str, bool]:
    """Return for each loaded record whether it is deleted."""
    return {id: row.is_deleted for id, row in mirror.rows.items()}


def _pull_accepting_deletions(mirror: Mirror) -> PullResult:
    """Pull with `--accept-deletes`, and return the result."""
    mirror.options = PullOptions(accepts_deletes=True)
    return _pull_an_hour_later(mirror)


@pytest.mark.parametrize(
    ("loaded", "deleted", "created", "sweeps"),
    [(60, 60, 60, True), (60, 50, 40, False), (6, 6, 0, True)],
)
def test_another_list_is_held_however_many_records_it_has(
    loaded: int, deleted: int, sweeps: bool, created: int
) -> None:
    mirror = _load_records(loaded)
    for id in sorted(mirror.world.server.created_at)[:deleted]:
        mirror.world.server.remove(id)
    for _ in range(created):
        mirror.world.changes.create_record(is_late_allowed=False)
    mirror.options = PullOptions(sweeps=sweeps)
    before = _loaded(mirror)

    for _ in range(3):
        assert "deletions_held" == _pull_an_hour_later(mirror).code
        assert before == _loaded(mirror)
    assert _pull_accepting_deletions(mirror).is_proven
    assert {} == find_differences(mirror)


def test_deletions_are_counted_over_pulls_that_verify_nothing() -> None:
    mirror = _load_records(60)
    mirror.bookmark = replace(mirror.bookmark, deletions=15)
    for id in sorted(mirror.world.server.created_at)[:15]:
        mirror.world.server.remove(id)

    assert "deletions_held" == _pull_an_hour_later(mirror).code


def test_many_records_listed_but_reported_deleted_are_held_back() -> None:
    mirror = _load_records()
    _change_records(mirror, 40)
    hidden, whole = set(mirror.rows), mirror.world.read_detail

    def read(id: str) -> Outcome:
        return DeletionProof(mirror.world.now) if id in hidden else whole(id)

    mirror.world.read_detail = read  # type: ignore[method-assign]
    pulled = _pull_an_hour_later(mirror)

    assert ("deletions_held", set()) == (pulled.code, find_not_deleted(mirror))
    assert not any(row.is_deleted for row in mirror.rows.values())
    assert find_differences(mirror).keys() == {"stale"}
    mirror.world.read_detail = whole  # type: ignore[method-assign]
    assert _pull_an_hour_later(mirror).is_proven
    assert {} == find_differences(mirror)
