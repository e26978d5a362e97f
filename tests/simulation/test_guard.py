"""Each reason for which deletions are kept back, and what lands all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.catalog.resource import Page, Resource
from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.resource_pull import PullOptions, PullResult
from connector.warehouse.pull_commands import DeletionProof, Outcome
from tests.simulation.checkers import differences, ghosts, judge
from tests.simulation.harness import START
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

_QUIET = PullScenario("nothing happens of itself", ORDINARY, accepts_deletes=False)


def _loaded(records: int = 120) -> Mirror:
    """A landing of so many records, proven, and an hour later."""
    mirror = Mirror(PullWorld(0, replace(_QUIET, records=records)), judge=judge)
    _pulled(mirror)
    return mirror


def _pulled(mirror: Mirror) -> PullResult:
    mirror.world.pass_time(3600)
    ended = mirror.pull()
    assert ended.pulled is not None, ended.error
    return ended.pulled


def _work(mirror: Mirror, count: int = 1) -> None:
    """Change so many records, and create one."""
    for id in sorted(mirror.world.server.born)[-count:]:
        mirror.world.churn.write(id, is_late_allowed=False)
    mirror.world.churn.create(is_late_allowed=False)


def _accepted(mirror: Mirror) -> PullResult:
    mirror.options = PullOptions(accepts_deletes=True)
    return _pulled(mirror)


def test_a_list_that_shrank_holds_back_only_its_deletions() -> None:
    """A third is gone: what is new or changed lands, and the bookmark stays, since what is out of
    sight may have changed. A person's word mends it.
    """
    mirror = _loaded()
    before = mirror.bookmark.proven_at
    gone = set(sorted(mirror.world.server.born)[:40])
    for id in gone:
        mirror.world.server.remove(id)
    _work(mirror)

    assert "list_shrank" == _pulled(mirror).code
    assert {"ghosts": gone} == differences(mirror)
    assert before == mirror.bookmark.proven_at
    assert _accepted(mirror).is_proven
    assert {} == differences(mirror)


@pytest.mark.parametrize("sweeps", [True, False])
def test_a_list_with_few_loaded_records_counts_as_another_list(sweeps: bool) -> None:
    mirror = _loaded()
    gone = set(mirror.world.server.born)
    for id in gone:
        mirror.world.server.remove(id)
    # A total that is the same is compared by a sweep alone.
    for _ in range(len(gone) + (not sweeps)):
        mirror.world.churn.create(is_late_allowed=False)
    mirror.options = PullOptions(sweeps=sweeps)

    assert "list_unfamiliar" == _pulled(mirror).code
    assert {"ghosts": gone} == differences(mirror)
    assert _accepted(mirror).is_proven
    assert {} == differences(mirror)


def test_many_records_listed_but_reported_deleted_are_held_back() -> None:
    mirror = _loaded()
    _work(mirror, 40)
    hidden, whole = set(mirror.rows), mirror.world.read

    def read(id: str) -> Outcome:
        return DeletionProof(mirror.world.now) if id in hidden else whole(id)

    mirror.world.read = read  # type: ignore[method-assign]
    pulled = _pulled(mirror)

    assert ("details_gone", set()) == (pulled.code, ghosts(mirror))
    assert not any(row.is_deleted for row in mirror.rows.values())
    assert differences(mirror).keys() == {"stale"}
    mirror.world.read = whole  # type: ignore[method-assign]
    assert _pulled(mirror).is_proven
    assert {} == differences(mirror)


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
    mirror = _loaded(2)
    whole = mirror.world.list

    def empty(page: int, sort: str | None, order: str) -> Page[Resource]:
        return replace(whole(page, sort, order), items=(), total=0)

    mirror.world.list = empty  # type: ignore[method-assign]
    pulled = _pulled(mirror)

    assert not pulled.is_proven
    assert not any(row.is_deleted for row in mirror.rows.values())
    mirror.world.list = whole  # type: ignore[method-assign]
    assert _pulled(mirror).is_proven
    assert {} == differences(mirror)


def test_a_list_becomes_empty_only_after_deletions_are_accepted() -> None:
    mirror = _loaded(6)
    for id in sorted(mirror.world.server.born):
        mirror.world.server.remove(id)

    assert "list_shrank" == _pulled(mirror).code
    assert _accepted(mirror).is_proven
    assert {} == differences(mirror)
