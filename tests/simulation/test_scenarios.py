"""The production engine in worlds that change while they are read: thousands of seeds.

Scenarios A to H are those of the reliability tests 2 and 3; the others are one fault each. A
failure says which command replays it. Block 0 is fast, the other blocks are slow; `FAULTS=all`
plays twice as many blocks, and `make simulate RUNS=10000` that many runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet

from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.warehouse.pull_commands import Outcome, Unread
from tests.repository import ROOT
from tests.seeds import seeds
from tests.simulation.checkers import differences, judge
from tests.simulation.mirror import Mirror
from tests.simulation.run import run
from tests.simulation.scenario import SCENARIOS, SMALL, Scenario, scenario_of
from tests.simulation.world import World
from tests.support.kill_points import IS_ALL
from tests.tiers import only_fast

BLOCKS = 4 if IS_ALL else 2
FULL_SEEDS = 1
FAST_SEEDS = 1
SMALL_SEEDS = 8


def _wrong(name: str, seeds: range) -> list[str]:
    verdicts = [run(name, seed) for seed in seeds]
    return [str(each) for each in verdicts if each.wrong]


def _blocks(names: str | list[str]) -> list[ParameterSet]:
    every = [(name, block) for name in names for block in range(BLOCKS)]
    return only_fast(every, [(name, 0) for name in names])


def _play(name: str, block: int) -> list[str]:
    full = seeds(FULL_SEEDS, first=block * FULL_SEEDS)
    small = seeds(FAST_SEEDS)
    if block:
        small = seeds(SMALL_SEEDS, first=FAST_SEEDS + (block - 1) * SMALL_SEEDS)
    return _wrong(name, full) + _wrong(name + SMALL, small)


@pytest.mark.parametrize(("name", "block"), _blocks("ABCDEF"))
def test_one_quiet_pull_makes_the_landing_exact(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["edge", "content-edge", "tied-updates"]))
def test_writes_as_late_as_allowed_lose_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks("GH"))
def test_what_no_list_shows_is_found_by_the_scrub(name: str, block: int) -> None:
    assert [] == _play(name, block)


def test_what_breaks_the_assumptions_is_reported() -> None:
    told = {name: sum(run(name + SMALL, seed).anomalies for seed in range(5)) for name in "BGH"}

    assert told["G"] > 0
    assert told["H"] > 0
    assert 0 == told["B"]


@pytest.mark.parametrize(("name", "block"), _blocks(["bulk"]))
def test_an_edit_of_half_of_all_records_is_landed_or_the_bookmark_stands(
    name: str, block: int
) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(
    ("name", "block"), _blocks(["killed", "killed-late", "killed-load", "content-killed"])
)
def test_a_pull_killed_anywhere_loses_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["flaky"]))
def test_lost_answers_and_errors_lose_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["lying", "content-lying", "lying-killed"]))
def test_false_404s_are_taken_back_and_history_runs_forward(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["crossed"]))
def test_details_of_other_records_change_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["clock", "no-date", "no-date-behind"]))
def test_wrong_clocks_lose_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["blind-empty", "blind-half", "blind-details"]))
def test_a_key_that_loses_sight_makes_no_tombstones(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(
    ("name", "block"), _blocks(["lag", "lag-ties", "content-lag", "lag-details"])
)
def test_replicas_that_lag_lose_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


def test_an_old_detail_that_closes_two_walks_hides_nothing() -> None:
    world = World(0, replace(scenario_of("lag-details"), records=10, lag_seconds_max=7.0))
    mirror = Mirror(world, judge=judge)
    mirror.adopt()
    dated = world.server.dated
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
    assert {} == differences(mirror)


def test_a_reading_older_than_the_list_closes_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = Scenario("nothing happens by itself", {"create": 1}, records=12, per_page_max=5)
    world = World(0, quiet)
    mirror = Mirror(world, judge=judge)
    mirror.adopt()
    server, lists, lost = world.server, list[int](), list[str]()
    newest = sorted(server.dated, key=lambda each: server.dated[each] or "", reverse=True)
    world.pass_time(60)
    for id in reversed(newest[1:7]):
        world.pass_time(1)
        server.change((id,), {"notes": "changed"}, world.server_now())
    world.pass_time(60)
    list_page, read = world.list, world.read

    def listing(page: int, sort: str | None, order: str) -> Page[Resource]:
        lists.append(page)
        if len(lists) == 2:
            server.remove(newest[2])  # The list shifts, and is read once more.
        elif len(lists) == 3:
            server.change((newest[0],), {"notes": "changed"}, world.server_now())
            lost.append(newest[0])
        return list_page(page, sort, order)

    def reading(id: str) -> Outcome:
        return Unread("no_answer") if id in lost else read(id)

    monkeypatch.setattr(world, "list", listing)
    monkeypatch.setattr(world, "read", reading)
    mirror.pull()
    assert [1, 2, 1] == lists[:3]
    lost.clear()
    world.settle()
    mirror.pull()

    assert {} == differences(mirror)


@pytest.mark.parametrize(
    ("name", "block"),
    _blocks(["unsorted", "unsorted-updated", "capped", "total-high", "total-low"]),
)
def test_a_list_that_is_not_as_asked_makes_no_wrong_bookmark(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(
    ("name", "block"),
    _blocks(["total-huge", "total-huge-guarded", "total-huge-types", "total-always-huge"]),
)
def test_huge_totals_change_nothing(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["null-dates", "future-dates"]))
def test_records_with_odd_dates_are_read_each_time(name: str, block: int) -> None:
    assert [] == _play(name, block)


@pytest.mark.parametrize(("name", "block"), _blocks(["content", "types", "types-undated"]))
def test_content_is_landed_as_other_resources_are(name: str, block: int) -> None:
    assert [] == _play(name, block)


def test_every_scenario_is_played() -> None:
    played = {
        argument.values[0]
        for test in globals().values()
        for mark in getattr(test, "pytestmark", ())
        if mark.name == "parametrize"
        for argument in mark.args[1]
    }

    assert set(SCENARIOS) == played


@pytest.mark.slow
def test_a_run_is_the_same_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--scenario", f"content-lag{SMALL}"]
    first, second = (
        subprocess.run(
            [*command, "--seed", "3", "--trace"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashes in ("1", "2")
    )

    assert "commit" in first
    assert first == second
