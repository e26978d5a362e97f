"""Unusual loads: all records have one date, or records change all the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from connector.pulls.pull import ATTEMPTS_MAX
from tests.simulation.checkers import check_commit, find_differences
from tests.simulation.mirror import Mirror, PullKilled
from tests.simulation.run import run
from tests.simulation.scenario import ORDINARY, PullScenario, get_scenario
from tests.simulation.world import PullWorld
from tests.tiers import first_fast

EDITED = 5_000

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


@pytest.mark.parametrize("cut_at", [3, 11, 600])
@pytest.mark.parametrize("seed", range(3))
def test_an_interrupted_load_with_equal_dates_needs_one_quiet_pull(cut_at: int, seed: int) -> None:
    world = _make_tied_world(600, seed)
    mirror = Mirror(world, check_commit=check_commit)

    def cut() -> None:
        if world.requests == cut_at:
            raise PullKilled

    mirror.before_request = cut
    mirror.pull()
    mirror.before_request = None
    for id in sorted(world.server.created_at)[::3]:
        world.server.remove(id)
    world.pass_time(3600)
    before = world.requests
    ended = mirror.pull()

    assert ended.pulled is not None
    assert ended.pulled.is_proven
    assert {} == find_differences(mirror)
    # Each detail once, details of records that tied pages hide again, and the lists.
    assert world.requests - before <= 600 + 600 // 2 + 2 * 6 * ATTEMPTS_MAX


@pytest.mark.parametrize(("name", "seed"), [("E", 656), ("flaky-small", 259), ("flaky-small", 579)])
def test_a_load_is_exact_although_records_are_created_and_deleted_during_it(
    name: str, seed: int
) -> None:
    """Tied pages hide a record while another is deleted and a third is created, so that every total
    is right. The second sweep is repeated until the bookmark covers no hidden record.
    """
    scenario = get_scenario(name)
    if name == "E":
        scenario = replace(scenario, records=60, per_page_max=5)

    assert [] == run(name, seed, scenario=scenario).wrong


@pytest.mark.slow
def test_a_pull_ends_although_records_change_faster_than_it_reads() -> None:
    churn = {"update": 10.0, "touch_top": 3.0, "create": 0.1, "delete": 0.1}
    scenario = PullScenario("a storm", churn, records=120, mutations_per_second=10.0)
    world = PullWorld(0, scenario)
    mirror = Mirror(world, check_commit=check_commit)
    world.is_busy = True
    ends_at = world.now + timedelta(minutes=60)
    pulls = 0
    while world.now < ends_at:
        mirror.requests_max = 12 * (len(world.server.created_at) + 60)
        ended = mirror.pull()
        assert ended.pulled is not None
        assert ended.pulled.is_proven or ended.pulled.reason
        pulls += 1
    world.become_quiet()
    mirror.requests_max = 12 * len(world.server.created_at)
    mirror.pull()

    assert pulls > 1
    assert {} == find_differences(mirror)
