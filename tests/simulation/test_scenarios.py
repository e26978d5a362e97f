"""The pull in worlds that change during it, with thousands of seeds.

Block 0 is fast, the other blocks are slow. `FAULTS=all` plays twice as many blocks, and `make
simulate RUNS=10000` that many runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from operator import itemgetter

import pytest

from connector.catalog.resource import Page, Resource
from connector.warehouse.stream import Outcome, UnreadableDetail
from tests.repository import ROOT
from tests.seeds import seeds
from tests.simulation.checkers import check_commit, find_differences
from tests.simulation.mirror import Mirror
from tests.simulation.run import run
from tests.simulation.scenario import SCENARIOS, SMALL, PullScenario, get_scenario
from tests.simulation.world import PullWorld
from tests.support.kill_points import IS_ALL
from tests.tiers import first_fast

BLOCKS = 4 if IS_ALL else 2
FULL_SEEDS = 1
FAST_SEEDS = 1
SMALL_SEEDS = 3


def play(name: str, block: int) -> list[str]:
    """Run the scenario with the seeds of a block; returns the wrong runs."""
    runs = [(name, seed) for seed in seeds(FULL_SEEDS, first=block * FULL_SEEDS)]
    small = seeds(FAST_SEEDS)
    if block:
        small = seeds(SMALL_SEEDS, first=FAST_SEEDS + (block - 1) * SMALL_SEEDS)
    runs += [(name + SMALL, seed) for seed in small]
    return [str(each) for each in (run(*each) for each in runs) if each.wrong]


@pytest.mark.parametrize(
    ("name", "block"),
    first_fast(sorted(product(SCENARIOS, range(BLOCKS)), key=itemgetter(1)), len(SCENARIOS)),
)
def test_pulls_keep_their_promises_in_every_scenario(name: str, block: int) -> None:
    """The promise and the faults of each world are in `scenario.py`."""
    assert [] == play(name, block)


def test_later_commits_than_assumed_are_reported_as_anomalies() -> None:
    counts = {
        name: sum(run(name + SMALL, seed).figures["anomalies"] for seed in range(5))
        for name in "BG"
    }

    assert counts["G"] > 0
    assert 0 == counts["B"]


def test_an_outdated_detail_that_ends_two_scans_hides_no_change() -> None:
    world = PullWorld(0, replace(get_scenario("lag-details"), records=10, lag_seconds_max=7.0))
    mirror = Mirror(world, check_commit=check_commit)
    mirror.copy_server()
    dated = world.server.updated_at
    newest = sorted(dated, key=lambda each: dated[each] or "", reverse=True)
    world.pass_time(60)
    for id in (newest[2], newest[1], newest[0]):
        world.pass_time(20)
        world.server.change((id,), {"notes": "changed"}, world.server_now())
    world.pass_time(1)
    closed_by = []
    for pause in (0, 0, 60):
        world.pass_time(pause)
        mirror.pull()
        closed_by.append(mirror.bookmark.closed_by)

    assert [newest[0], newest[0]] == closed_by[:2]
    assert {} == find_differences(mirror)


def test_a_detail_older_than_the_list_does_not_end_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = PullScenario("nothing happens by itself", {"create": 1}, records=12, per_page_max=5)
    world = PullWorld(0, quiet)
    mirror = Mirror(world, check_commit=check_commit)
    mirror.copy_server()
    server, lists, lost = world.server, list[int](), list[str]()
    newest = sorted(server.updated_at, key=lambda each: server.updated_at[each] or "", reverse=True)
    world.pass_time(60)
    for id in reversed(newest[1:7]):
        world.pass_time(1)
        server.change((id,), {"notes": "changed"}, world.server_now())
    world.pass_time(60)
    list_page, read = world.list_page, world.read_detail

    def listing(page: int, sort: str | None, order: str) -> Page[Resource]:
        lists.append(page)
        if len(lists) == 2:
            server.remove(newest[2])  # The list shifts and is read again.
        elif len(lists) == 3:
            server.change((newest[0],), {"notes": "changed"}, world.server_now())
            lost.append(newest[0])
        return list_page(page, sort, order)

    def reading(id: str) -> Outcome:
        return UnreadableDetail("no_answer") if id in lost else read(id)

    monkeypatch.setattr(world, "list_page", listing)
    monkeypatch.setattr(world, "read_detail", reading)
    mirror.pull()
    assert [1, 2, 1] == lists[:3]
    lost.clear()
    world.become_quiet()
    mirror.pull()

    assert {} == find_differences(mirror)


@pytest.mark.slow
def test_a_run_is_reproducible_in_every_process() -> None:
    name, lines = f"content-lag{SMALL}", list[str]()
    run(name, 3, trace=lines.append)
    printed = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--scenario", name, "--seed", "3", "--trace"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert any("commit" in each for each in lines)
    assert lines == printed[:-1]
