"""Unusual loads: all records have one date."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.simulation.checkers import check_commit, find_differences
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld
from tests.tiers import first_fast

EDITED = 1_200

_TIED = PullScenario(
    "one stamp", ORDINARY, records=0, per_page_max=100, precision="seconds", ties="random"
)


def _make_tied_world(count: int, seed: int = 0) -> PullWorld:
    """Return a world with `count` records of the same timestamps, an hour old."""
    world = PullWorld(seed, _TIED)
    for _ in range(count):
        world.changes.create_record()
    world.now += timedelta(hours=1)
    return world


def test_a_quiet_pull_of_50000_records_with_one_date_costs_two_requests() -> None:
    world = _make_tied_world(50_000)
    mirror = Mirror(world)
    mirror.copy_server()
    world.pass_time(60)
    mirror.pull()

    assert 2 == world.requests


@pytest.mark.parametrize(("at_request", "count"), first_fast([(40, EDITED), (0, EDITED)]))
def test_a_large_bulk_edit_is_loaded_or_the_bookmark_does_not_move(
    at_request: int, count: int
) -> None:
    world = _make_tied_world(count * 6 // 5)
    mirror = Mirror(world, check_commit=check_commit)
    mirror.copy_server()
    world.pass_time(60)
    edited = sorted(world.server.created_at)[:count]
    for id in edited[:300]:
        world.changes.update_record(id)
    mirror.before_request = lambda: (
        world.server.change(edited, {"notes": "migrated"}, world.server_now())
        if world.requests == at_request
        else None
    )
    ended = mirror.pull()

    assert ended.pulled is not None
    if at_request == 0 and ended.pulled.is_proven:
        assert {} == find_differences(mirror)
    mirror.before_request = None
    world.pass_time(60)
    assert mirror.pull().pulled is not None
    assert {} == find_differences(mirror)
