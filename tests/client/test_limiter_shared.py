"""Rate limiter beside another client of the key that uses half of the limit."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from connector.client.limiter import RateLimiter
from tests.client.limiter_simulation import KINDS, LimiterSimulation
from tests.client.request_counters import MINUTE

LIMIT = 600
HALF = LIMIT // 2
REQUESTS = 5_000


def spread_evenly(chance: random.Random, minutes: int) -> list[float]:
    """Return times of single requests at equal intervals."""
    begins_at, gap = chance.random(), MINUTE / HALF
    return [begins_at + number * gap for number in range(minutes * HALF)]


def spread_randomly(chance: random.Random, minutes: int) -> list[float]:
    """Return independent random times of single requests."""
    moments = [0.0]
    while moments[-1] < minutes * MINUTE:
        moments.append(moments[-1] + chance.expovariate(HALF / MINUTE))
    return moments[1:]


def spread_in_bursts(
    chance: random.Random, minutes: int, bursts_per_minute: int, burst_seconds: float
) -> list[float]:
    """Return times of requests in bursts of `burst_seconds`, which start at equal intervals."""
    begins_at, gap = chance.uniform(0, MINUTE / bursts_per_minute), MINUTE / bursts_per_minute
    return sorted(
        begins_at + burst * gap + chance.random() * burst_seconds
        for burst in range(minutes * bursts_per_minute)
        for _ in range(HALF // bursts_per_minute)
    )


OTHERS: dict[str, Callable[[random.Random, int], list[float]]] = {
    "steady": spread_evenly,
    "random": spread_randomly,
    "six bursts a minute": lambda chance, minutes: spread_in_bursts(chance, minutes, 6, 0.2),
    "one burst a minute": lambda chance, minutes: spread_in_bursts(chance, minutes, 1, 0.5),
}


@pytest.mark.parametrize(("kind", "others"), [*zip(KINDS, OTHERS, strict=True)])
def test_few_requests_get_429_beside_another_client(kind: str, others: str) -> None:
    chance = random.Random(f"{kind} {others}")
    counter = KINDS[kind](LIMIT, chance.uniform(0, MINUTE))
    moments = OTHERS[others](chance, 4 * REQUESTS // LIMIT + 10)

    outcome = LimiterSimulation(
        RateLimiter(), counter, requests=REQUESTS, seed=0, other_client_times=moments
    ).run()

    sent = len(outcome.sent_at)
    assert REQUESTS == outcome.answered
    assert len(outcome.refused_at) <= 0.05 * sent


@pytest.mark.parametrize("kind", KINDS)
def test_the_full_rate_is_used_after_the_other_client_stops(kind: str) -> None:
    chance = random.Random(kind)
    counter = KINDS[kind](LIMIT, chance.uniform(0, MINUTE))
    moments = spread_in_bursts(chance, 5, 6, 0.2)

    outcome = LimiterSimulation(
        RateLimiter(), counter, requests=9_000, seed=1, other_client_times=moments
    ).run()

    late = [at for at in outcome.sent_at if 12 * MINUTE <= at < 15 * MINUTE]
    assert len(late) >= 0.94 * 3 * LIMIT
