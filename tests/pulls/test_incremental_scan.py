"""Properties of the incremental scan, each in a small simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Literal

import pytest

from connector.warehouse.stream import Bookmark, Commit
from tests.simulation.checkers import find_differences
from tests.simulation.mirror import KillPoint, Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

QUIET = PullScenario(
    "nothing happens by itself", ORDINARY, records=12, per_page_max=5, tied_share=0.0
)


def make_synced_mirror(scenario: PullScenario = QUIET) -> Mirror:
    """Return a mirror equal to its server, with the bookmark of a pull that just ended."""
    mirror = Mirror(PullWorld(0, scenario))
    copy_server(mirror)
    return mirror


def copy_server(mirror: Mirror) -> datetime:
    """Copy everything from the server, and return the time of the new bookmark."""
    mirror.bookmark = Bookmark()
    mirror.copy_server()
    assert mirror.bookmark.proven_at is not None
    return mirror.bookmark.proven_at


def list_newest(mirror: Mirror) -> list[str]:
    """Return the server's ids, the last changed first."""
    dated = mirror.world.server.updated_at
    return sorted(dated, key=lambda each: dated[each] or "", reverse=True)


def change_hidden_field(mirror: Mirror, ids: Sequence[str], at: datetime) -> None:
    """Change a field that lists do not show, dated `at` by the server."""
    mirror.world.server.change(ids, {"notes": f"changed at {at}"}, at)


def pull_and_count_requests(mirror: Mirror) -> int:
    """Pull, assert that the result is verified, and return the number of requests."""
    before = mirror.world.requests
    ended = mirror.pull()
    assert ended.pulled is not None, ended.error
    assert ended.pulled.is_proven, ended.pulled.reason
    return mirror.world.requests - before


# -- the bookmark ----------------------------------------------------------------------------------


def test_a_bookmark_is_committed_with_the_rows_that_it_covers() -> None:
    commits = list[Commit]()
    mirror = Mirror(PullWorld(0, QUIET), check_commit=lambda _, what: commits.append(what))
    copy_server(mirror)
    world = mirror.world
    world.pass_time(600)
    changed = list_newest(mirror)[:3]
    change_hidden_field(mirror, changed, world.server_now())
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
            mirror = Mirror(PullWorld(0, QUIET)) if is_first_load else make_synced_mirror()
            world = mirror.world
            change_hidden_field(mirror, list_newest(mirror)[3:9], world.server_now())
            world.pass_time(600)
            mirror.kill = KillPoint(step, is_after)
            was_killed = mirror.pull().pulled is None
            mirror.kill = None
            world.pass_time(600)
            mirror.pull()

            assert {} == find_differences(mirror), f"killed at step {step}, {is_after = }"
        if not was_killed:
            break


# -- the lateness ----------------------------------------------------------------------------------


def test_a_change_that_becomes_visible_two_minutes_late_is_read() -> None:
    mirror = Mirror(PullWorld(0, QUIET))
    world = mirror.world
    first, second = list_newest(mirror)[:2]
    world.pass_time(600)
    now = world.server_now().replace(microsecond=0)
    change_hidden_field(mirror, [first], now - timedelta(seconds=91))
    proven_at = copy_server(mirror)
    # In the list it is below a record that has not changed since the last pull.
    change_hidden_field(mirror, [second], proven_at - timedelta(seconds=119))
    pull_and_count_requests(mirror)

    assert [first, second] == list_newest(mirror)[:2]
    assert {} == find_differences(mirror)


# -- records of one date ---------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["stable", "random"])
def test_changed_records_with_equal_dates_are_all_read_once(
    ties: Literal["stable", "random"],
) -> None:
    mirror = make_synced_mirror(replace(QUIET, records=40, ties=ties))
    world = mirror.world
    edited = list_newest(mirror)[10:36]
    world.pass_time(600)
    change_hidden_field(mirror, edited, world.server_now().replace(microsecond=0))
    world.pass_time(600)
    pull_and_count_requests(mirror)
    assert {} == find_differences(mirror)

    for _ in range(3):
        world.pass_time(600)
        # One page of the list, and the detail of a record that ends the scan.
        assert 2 == pull_and_count_requests(mirror)


@pytest.mark.parametrize(("seconds", "requests"), [(-1, 2), (0, 2), (1, 3)])
def test_a_record_older_than_the_overlap_ends_the_scan(seconds: int, requests: int) -> None:
    mirror = Mirror(PullWorld(0, QUIET))
    world = mirror.world
    world.pass_time(600)
    floor = world.server_now().replace(microsecond=0) - timedelta(seconds=1 + 120)
    change_hidden_field(mirror, list_newest(mirror)[:1], floor + timedelta(seconds=seconds))
    copy_server(mirror)
    world.pass_time(5)

    assert requests == pull_and_count_requests(mirror)
