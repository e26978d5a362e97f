"""The pace beside another client of the key that asks for half of the limit.

It is steady, random, or comes in bursts. Bounds are of simulated worlds, drawn from seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

import pytest

from connector.client.rate_limiter import Pace, Pacing
from tests.engine.pace_counters import MINUTE, Begun, Counter, Fixed, Sliding
from tests.engine.pace_world import Outcome, World

LIMIT = 600
HALF = LIMIT // 2
REQUESTS = 5_000

KINDS: dict[str, Callable[[float], Counter]] = {
    "fixed": lambda phase: Fixed(LIMIT, phase),
    "begun": lambda phase: Begun(LIMIT),
    "sliding to the oldest": lambda phase: Sliding(LIMIT, "one"),
    "sliding to the newest": lambda phase: Sliding(LIMIT, "all"),
}


def steady(chance: random.Random, minutes: int) -> list[float]:
    """One at a time, evenly."""
    begins_at, gap = chance.random(), MINUTE / HALF
    return [begins_at + number * gap for number in range(minutes * HALF)]


def at_random(chance: random.Random, minutes: int) -> list[float]:
    """One at a time, at moments that know nothing of each other."""
    moments = [0.0]
    while moments[-1] < minutes * MINUTE:
        moments.append(moments[-1] + chance.expovariate(HALF / MINUTE))
    return moments[1:]


def bursts(chance: random.Random, minutes: int, a_minute: int, jitter: float) -> list[float]:
    """Many at once, so many times a minute."""
    begins_at, gap = chance.uniform(0, MINUTE / a_minute), MINUTE / a_minute
    return sorted(
        begins_at + burst * gap + chance.random() * jitter
        for burst in range(minutes * a_minute)
        for _ in range(HALF // a_minute)
    )


OTHERS: dict[str, Callable[[random.Random, int], list[float]]] = {
    "steady": steady,
    "random": at_random,
    "six bursts a minute": lambda chance, minutes: bursts(chance, minutes, 6, 0.2),
    "one burst a minute": lambda chance, minutes: bursts(chance, minutes, 1, 0.5),
}


def run(kind: str, mode: Pacing, others: str, seed: int) -> Outcome:
    """Half of the limit is ours to use, for as long as our requests take."""
    chance = random.Random(f"{kind} {mode} {others} {seed}")
    counter = KINDS[kind](chance.uniform(0, MINUTE))
    moments = OTHERS[others](chance, 4 * REQUESTS // LIMIT + 10)
    pace = Pace(mode=mode)
    return World(pace, counter, requests=REQUESTS, seed=seed, others=moments).run()


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("mode", get_args(Pacing))
@pytest.mark.parametrize("kind", KINDS)
def test_others_are_given_way(kind: str, mode: Pacing, others: str) -> None:
    outcome = run(kind, mode, others, seed=0)

    refused_max, share_min = (1, 0.75) if others != "one burst a minute" else (2, 0.5)
    # A burst of half the limit is met before it is known, and may overlap the one before.
    assert len(outcome.refused_at) <= refused_max
    assert REQUESTS == outcome.answered
    assert outcome.answered / (outcome.ended_at / MINUTE) >= share_min * HALF


@pytest.mark.parametrize("mode", get_args(Pacing))
@pytest.mark.parametrize("kind", KINDS)
def test_a_steady_other_is_not_starved(kind: str, mode: Pacing) -> None:
    outcome = run(kind, mode, "steady", 0)

    total = outcome.others_answered + outcome.others_refused
    assert outcome.others_answered >= 0.9 * total


@pytest.mark.parametrize("kind", KINDS)
def test_once_others_have_gone_all_is_ours(kind: str) -> None:
    chance = random.Random(kind)
    counter = KINDS[kind](chance.uniform(0, MINUTE))
    moments = bursts(chance, 5, 6, 0.2)

    outcome = World(Pace(), counter, requests=9_000, seed=1, others=moments).run()

    late = [at for at in outcome.sent_at if 12 * MINUTE <= at < 15 * MINUTE]
    assert len(late) >= 0.97 * 3 * LIMIT
