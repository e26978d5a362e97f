"""The pull against worlds that change while they are read: thousands of seeds, one promise."""

from __future__ import annotations

import os

import pytest

from tests.simulation.checkers import falsely_deleted, ghosts, missing, stale, unproven
from tests.simulation.world import Mirror, Scenario, World

SEEDS = int(os.environ.get("SIMULATE", "25"))
PULLS = 4

ORDINARY = {"create": 3.0, "update": 10.0, "touch_top": 3.0}
WILD = {**ORDINARY, "batch": 0.4, "bulk": 0.3}
SECONDS = {"timestamp_precision": "seconds"}
TIES = {**SECONDS, "ties": "random"}

SCENARIOS = {
    "ordinary": Scenario(ORDINARY),
    "batches and bulk edits": Scenario(WILD),
    "whole seconds": Scenario(WILD, SECONDS),
    "late commits": Scenario(WILD, late_seconds_max=5.0, late_share=0.2),
    "random ties": Scenario(WILD, TIES),
    "all of it": Scenario(WILD, TIES, late_seconds_max=5.0, late_share=0.2),
    "killed": Scenario(WILD, TIES, late_seconds_max=5.0, late_share=0.2, kill_share=0.02),
    "deletions": Scenario({**WILD, "delete": 2.0}, TIES, kill_share=0.01),
}


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_one_quiet_pull_makes_the_landing_exact(name: str) -> None:
    """Whatever changes between any two requests, the bookmark never says more than is true, and
    one pull in quiet times gives every record as it is.
    """
    for seed in range(SEEDS):
        world = World(seed, SCENARIOS[name])
        mirror = Mirror(world)
        for _ in range(PULLS):
            world.is_busy = True
            world.pass_time(world.chance.random() * 60)
            mirror.pull()
            assert set() == unproven(world, mirror), f"{name}, seed {seed}"
        world.settle()
        pulled = mirror.pull()

        assert pulled is not None
        assert pulled.is_proven, f"{name}, seed {seed}: {pulled.reason}"
        assert set() == missing(world, mirror), f"{name}, seed {seed}"
        assert set() == stale(world, mirror), f"{name}, seed {seed}"
        assert set() == ghosts(world, mirror), f"{name}, seed {seed}"
        assert set() == falsely_deleted(world, mirror), f"{name}, seed {seed}"


def test_a_quiet_pull_of_a_proven_landing_costs_two_requests() -> None:
    """Nothing changed is one list and one detail, whatever the ties."""
    for seed in range(SEEDS):
        world = World(seed, Scenario(ORDINARY, TIES))
        mirror = Mirror(world)
        mirror.pull()
        before = world.requests
        mirror.pull()

        assert 2 == world.requests - before, f"seed {seed}"


def test_what_changes_right_after_a_pull_is_landed_by_the_next() -> None:
    """A record read by one pull and changed within the second is read again by the next, although
    every clock that both could compare is cut to seconds.
    """
    for seed in range(SEEDS):
        world = World(seed, Scenario(ORDINARY))
        mirror = Mirror(world)
        mirror.pull()
        for _ in range(5):
            newest = max(mirror.rows, key=lambda each: mirror.rows[each].updated_at or world.now)
            world.store.update("candidates", newest, {"notes": f"at {world.now}"})
            mirror.pull()

            assert set() == stale(world, mirror), f"seed {seed}"
