"""A process is killed at every step of a pull. The next pull completes it at a low cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from connector.pulls import pull as pulls
from tests.simulation.checkers import check_commit, find_differences
from tests.simulation.mirror import KillPoint, Mirror
from tests.simulation.scenario import PullScenario, get_scenario
from tests.simulation.world import PullWorld

BATCH = 7
"""Records of one batch, so that small pulls have several."""

POINTS = 6
"""Steps of a pull at which it is killed."""

_QUIET = PullScenario("nothing happens", {"create": 1}, records=33)
_CHURN = {"update": 10.0, "create": 3.0, "delete": 3.0}


@contextmanager
def small_batches() -> Iterator[None]:
    """Let the engine commit often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulls, "BATCH_RECORDS_MAX", BATCH)
        yield


def _build_mirror(kind: str, seed: int) -> Mirror:
    """Return an empty mirror, or for "... changes" a loaded one with twelve changes to read."""
    resource = "content_items" if kind.startswith("content") else "candidates"
    world = PullWorld(seed, replace(_QUIET, resource=resource, churn=_CHURN, lateness_seconds=10.0))
    mirror = Mirror(world, check_commit=check_commit)
    if kind.endswith("changes"):
        mirror.copy_server()
        world.pass_time(60)
        for _ in range(12):
            world.pass_time(1)
            world.changes.mutate()
        world.pass_time(60)
    return mirror


def _count_steps_and_requests(kind: str, seed: int) -> tuple[int, int]:
    """Return the steps and the requests of a pull that is not killed."""
    mirror = _build_mirror(kind, seed)
    mirror.pull()
    assert {} == find_differences(mirror)
    return mirror.steps, mirror.world.requests


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("kind", ["load", "changes", "content load", "content changes"])
def test_a_kill_at_any_step_costs_at_most_one_batch_and_five_requests(
    kind: str, is_after: bool
) -> None:
    with small_batches():
        steps, least = _count_steps_and_requests(kind, 0)
        dear = {}
        for step in range(1, steps + 1, max(1, steps // POINTS)):
            mirror = _build_mirror(kind, 0)
            mirror.kill = KillPoint(step, is_after)
            assert mirror.pull().pulled is None
            mirror.kill = None
            mirror.pull()
            assert {} == find_differences(mirror), f"killed at step {step}"
            extra = mirror.world.requests - least
            if extra > BATCH + 5:
                dear[step] = extra

        assert {} == dear


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("F", 0), ("content", 1)])
def test_a_kill_at_any_step_of_a_busy_pull_loses_nothing(name: str, seed: int) -> None:
    scenario = replace(get_scenario(name), records=15)
    wrong, step, is_over = {}, 0, False
    with small_batches():
        while not is_over:
            step += 3
            world = PullWorld(seed, scenario)
            mirror = Mirror(world, check_commit=check_commit)
            world.is_busy = True
            mirror.kill = KillPoint(step)
            is_over = mirror.pull().pulled is not None
            mirror.kill = None
            world.pass_time(10)
            mirror.pull()
            world.become_quiet()
            mirror.pull()
            if found := find_differences(mirror):
                wrong[step] = found

    assert {} == wrong
