"""The production engine and journal in worlds that lose, delay, hide and imitate: every obligation
of the push, held against the server's own log.

A failure says which command replays it; `python -m tests.simulation.push --runs 10000` plays as
many as asked.
"""

from __future__ import annotations

import pytest

from tests.seeds import seeds
from tests.simulation.push.run import run
from tests.simulation.push.scenario import SCENARIOS
from tests.tiers import only_fast

SEEDS = {"fast": seeds(3), "slow": seeds(15, first=3)}


def _wrong(name: str, tier: str) -> list[str]:
    verdicts = [run(name, seed) for seed in SEEDS[tier]]
    return [str(each) for each in verdicts if each.wrong]


@pytest.mark.parametrize("tier", only_fast([*SEEDS], ["fast"]))
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_row_is_written_once_or_held(name: str, tier: str) -> None:
    assert [] == _wrong(name, tier)


def test_a_play_with_the_same_seed_is_reproducible() -> None:
    first, second = list[str](), list[str]()
    run("worst", 3, trace=first.append)
    run("worst", 3, trace=second.append)

    assert first == second
    assert first


def test_the_worst_scenario_contains_kills_and_held_rows() -> None:
    verdicts = [run("worst", seed) for seed in range(20)]

    assert sum(each.figures["deaths"] for each in verdicts) > 5
    assert sum(each.figures["held"] for each in verdicts) > 2
    assert sum(each.figures["created"] for each in verdicts) > 5
