"""Totals that are always wrong by one: they cancel out with nothing that is landed wrongly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checkers import differences, judge
from tests.simulation.mirror import Mirror
from tests.simulation.run import run
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

_QUIET = PullScenario("nothing happens of itself", ORDINARY, per_page_max=10, tied_share=0.0)


def _mirror(records: int, total_offset: int) -> Mirror:
    """A landing of a server with so many records, whose totals are wrong by so much."""
    scenario = replace(_QUIET, records=records, total_offset=total_offset)
    return Mirror(PullWorld(0, scenario), judge=judge)


def test_total_one_too_high_does_not_vouch_for_a_ghost() -> None:
    """A record is deleted at the last moment of a first load, so that as many rows are landed as
    the total says: the same pull finds it all the same, and the next one costs two requests.
    """
    mirror = _mirror(25, total_offset=1)
    world = mirror.world
    # The sweep's three pages and 25 details, and then two pages of the second look.
    mirror.before_request = lambda: (
        world.server.remove(min(world.server.born)) if world.requests == 30 else None
    )
    ended = mirror.pull()

    assert ended.pulled is not None
    assert ended.pulled.is_proven
    assert {} == differences(mirror)
    before = world.requests
    world.pass_time(3600)
    mirror.pull()
    assert 2 == world.requests - before


@pytest.mark.parametrize("total_offset", [-1, 0, 1])
@pytest.mark.parametrize("records", [9, 10, 11, 40, 41])
def test_list_ends_where_its_rows_do(records: int, total_offset: int) -> None:
    mirror = _mirror(records, total_offset)
    world = mirror.world
    ended = mirror.pull()

    assert {} == differences(mirror)
    if total_offset == 0:
        pages, is_full = -(-records // 10), records % 10 == 0
        assert world.requests <= records + 2 * pages + 2 + is_full
    world.pass_time(3600)
    world.server.change(sorted(world.server.born), {"notes": "migrated"}, world.server_now())
    world.pass_time(3600)
    ended = mirror.pull()
    assert {} == differences(mirror)
    assert ended.pulled is not None
    if total_offset >= 0:
        assert ended.pulled.is_proven


@pytest.mark.parametrize(
    ("name", "seed"),
    [("total-high", 81), ("total-high", 149), ("total-low-small", 59), ("total-low-small", 251)],
)
def test_seeds_in_which_a_wrong_total_was_believed(name: str, seed: int) -> None:
    assert [] == run(name, seed).wrong


@pytest.mark.slow
def test_one_deletion_costs_eight_requests() -> None:
    mirror = Mirror(PullWorld(0, replace(_QUIET, records=0, per_page_max=100)), judge=judge)
    world, server = mirror.world, mirror.world.server
    for number in range(2_000):
        world.churn.create(is_late_allowed=False)
        if not (380 <= number < 520 or 1_390 <= number < 1_520):
            world.pass_time(1)
    world.pass_time(3600)
    mirror.adopt()
    spent = []
    for number in range(60):
        order = sorted(server.born, key=lambda each: (server.born[each], each))
        server.remove(order[number * 32])
        world.pass_time(3600)
        before = world.requests
        mirror.pull()
        spent.append(world.requests - before)

    assert {} == differences(mirror)
    assert 8 == max(spent), spent
