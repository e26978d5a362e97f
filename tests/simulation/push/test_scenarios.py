"""The production engine and journal against servers that lose, delay, hide and imitate writes. The
server's own log shows whether the promises of the push are kept.

A failure names the command that replays it. `python -m tests.simulation.push --runs 10000` plays
more runs.
"""

from __future__ import annotations

import pytest

from tests.seeds import seeds
from tests.simulation.push.run import run
from tests.simulation.push.scenario import SCENARIOS
from tests.tiers import only_fast

SEEDS = {"fast": seeds(3), "slow": seeds(5, first=3)}


def _find_wrong_runs(name: str, tier: str) -> list[str]:
    """Play the tier's seeds, and return a line for each run that breaks a promise."""
    verdicts = [run(name, seed) for seed in SEEDS[tier]]
    return [str(each) for each in verdicts if each.wrong]


@pytest.mark.parametrize("tier", only_fast([*SEEDS], ["fast"]))
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_row_is_written_once_or_held(name: str, tier: str) -> None:
    assert [] == _find_wrong_runs(name, tier)


def test_a_play_with_the_same_seed_is_reproducible() -> None:
    first, second = list[str](), list[str]()
    run("worst", 3, trace=first.append)
    run("worst", 3, trace=second.append)

    assert first == second
    assert first


def test_the_worst_scenario_contains_kills_and_held_rows() -> None:
    verdicts = [run("worst", seed) for seed in range(20)]

    assert sum(each.figures["kills"] for each in verdicts) > 5
    assert sum(each.figures["held"] for each in verdicts) > 2
    assert sum(each.figures["created"] for each in verdicts) > 5
