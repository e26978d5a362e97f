"""Promises of a walk, each in a small world in which nothing else happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Literal

import pytest

from connector.pulls.listing import predicted_boundary
from connector.warehouse.bookmark import Bookmark
from connector.warehouse.pull_commands import Commit, LandedRow
from tests.simulation.checkers import differences
from tests.simulation.harness import START
from tests.simulation.mirror import KillPoint, Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

QUIET = PullScenario(
    "nothing happens by itself", ORDINARY, records=12, per_page_max=5, tied_share=0.0
)


def adopted(scenario: PullScenario = QUIET) -> Mirror:
    """A landing that equals its server, with the bookmark that a pull of this moment leaves."""
    mirror = Mirror(PullWorld(0, scenario))
    adopt(mirror)
    return mirror


def adopt(mirror: Mirror) -> datetime:
    """Take everything as landed; returns R."""
    mirror.bookmark = Bookmark()
    mirror.adopt()
    assert mirror.bookmark.proven_at is not None
    return mirror.bookmark.proven_at


def newest(mirror: Mirror) -> list[str]:
    """The server's ids, the last changed first."""
    dated = mirror.world.server.dated
    return sorted(dated, key=lambda each: dated[each] or "", reverse=True)


def change(mirror: Mirror, ids: Sequence[str], at: datetime) -> None:
    """Change a field that lists do not show; the server dates the change `at`."""
    mirror.world.server.change(ids, {"notes": f"changed at {at}"}, at)


def requests_of_a_pull(mirror: Mirror) -> int:
    """Pull, which must be proven; returns the number of requests."""
    before = mirror.world.requests
    ended = mirror.pull()
    assert ended.pulled is not None, ended.error
    assert ended.pulled.is_proven, ended.pulled.reason
    return mirror.world.requests - before


# -- the bookmark ----------------------------------------------------------------------------------


def test_a_bookmark_is_committed_with_the_rows_that_it_covers() -> None:
    commits = list[Commit]()
    mirror = Mirror(PullWorld(0, QUIET), judge=lambda _, what: commits.append(what))
    adopt(mirror)
    world = mirror.world
    world.pass_time(600)
    changed = newest(mirror)[:3]
    change(mirror, changed, world.server_now())
    world.pass_time(600)
    before = mirror.bookmark.proven_at
    mirror.pull()
    moves = [
        n
        for n, each in enumerate(commits)
        if each.bookmark is not None and each.bookmark.proven_at != before
    ]
    landed = {found.record.id for each in commits[: moves[0] + 1] for found in each.records}

    assert set(changed) <= landed


@pytest.mark.parametrize("is_first_load", [False, True])
def test_a_pull_that_is_killed_at_any_step_leaves_nothing_unread(is_first_load: bool) -> None:
    for step in count(1):
        for is_after in (False, True):
            mirror = Mirror(PullWorld(0, QUIET)) if is_first_load else adopted()
            world = mirror.world
            change(mirror, newest(mirror)[3:9], world.server_now())
            world.pass_time(600)
            mirror.kill = KillPoint(step, is_after)
            was_killed = mirror.pull().pulled is None
            mirror.kill = None
            world.pass_time(600)
            mirror.pull()

            assert {} == differences(mirror), f"killed at step {step}, {is_after = }"
        if not was_killed:
            break


# -- the lateness ----------------------------------------------------------------------------------


def test_a_change_that_becomes_visible_two_minutes_late_is_read() -> None:
    mirror = Mirror(PullWorld(0, QUIET))
    world = mirror.world
    first, second = newest(mirror)[:2]
    world.pass_time(600)
    now = world.server_now().replace(microsecond=0)
    change(mirror, [first], now - timedelta(seconds=91))
    proven_at = adopt(mirror)
    # In the list it is below a record that has not changed since the last pull.
    change(mirror, [second], proven_at - timedelta(seconds=119))
    requests_of_a_pull(mirror)

    assert [first, second] == newest(mirror)[:2]
    assert {} == differences(mirror)


# -- records of one date ---------------------------------------------------------------------------


def test_landed_records_of_one_date_are_in_order() -> None:
    row, older = LandedRow(START), LandedRow(START - timedelta(days=1))
    floor, future = START + timedelta(seconds=1), START + timedelta(days=1)

    assert 0 == predicted_boundary([row, row, row, older, older], floor, future)
    assert 2 == predicted_boundary([row, older, row, older, older], floor, future)


@pytest.mark.parametrize("ties", ["stable", "random"])
def test_records_of_one_date_are_all_read_and_cost_nothing_afterwards(
    ties: Literal["stable", "random"],
) -> None:
    mirror = adopted(replace(QUIET, records=40, ties=ties))
    world = mirror.world
    edited = newest(mirror)[10:36]
    world.pass_time(600)
    change(mirror, edited, world.server_now().replace(microsecond=0))
    world.pass_time(600)
    requests_of_a_pull(mirror)
    assert {} == differences(mirror)

    for _ in range(3):
        world.pass_time(600)
        # One page of the list, and the detail of a record that ends the walk.
        assert 2 == requests_of_a_pull(mirror)


@pytest.mark.parametrize(("seconds", "requests"), [(-1, 2), (0, 2), (1, 3)])
def test_a_record_dated_at_the_floor_ends_the_walk(seconds: int, requests: int) -> None:
    mirror = Mirror(PullWorld(0, QUIET))
    world = mirror.world
    world.pass_time(600)
    floor = world.server_now().replace(microsecond=0) - timedelta(seconds=1 + 120)
    change(mirror, newest(mirror)[:1], floor + timedelta(seconds=seconds))
    adopt(mirror)
    world.pass_time(5)

    assert requests == requests_of_a_pull(mirror)
