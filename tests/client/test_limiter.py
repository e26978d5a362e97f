"""Rate limiter in simulations: alone, and beside another client of the key."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable

import pytest

from connector.client.limiter import QuotaExhausted, RateHeaders, RateLimiter, Ticket
from tests.client.limiter_simulation import (
    EPOCH,
    KINDS,
    MINUTE,
    Counter,
    FixedWindow,
    LimiterSimulation,
    MonthlyLimit,
    Network,
    RateHeaderStyle,
    SimulationResult,
)
from tests.seeds import seeds

ROUNDINGS: tuple[Callable[[float], float], ...] = (math.floor, math.ceil, round, float)


def draw_header_style(chance: random.Random, *, has_date: bool | None = None) -> RateHeaderStyle:
    """Return a random style of rate headers, with a wrong server clock."""
    skew, step, step_at = (chance.uniform(-600, 600) for _ in range(3))
    return RateHeaderStyle(
        rounding=chance.choice(ROUNDINGS),
        is_in_seconds=chance.random() < 0.3,
        has_date=chance.random() < 0.8 if has_date is None else has_date,
        is_stamped_on_arrival=chance.random() < 0.5,
        clock=lambda now: EPOCH + now + skew + (step if now > step_at else 0),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_client_never_receives_a_429(kind: str) -> None:
    for seed in seeds(40):
        chance = random.Random(f"{kind} {seed}")
        limit = chance.choice([1, 2, 7, 60, 300])
        counter = KINDS[kind](limit, chance.uniform(0, MINUTE))
        # With fewer, two lost answers to the first requests may already have spent the window.
        loss = chance.choice([0, 0, 0.02, 0.2]) if limit >= 7 else 0
        simulation = LimiterSimulation(
            RateLimiter(),
            counter,
            requests=int(limit * chance.uniform(2, 4)) + 1,
            seed=seed,
            workers=chance.choice([1, 2, 4, 16]),
            network=Network(chance.choice([0.001, 0.02, 0.1, 1.0]), loss, deadline_seconds=30),
            style=draw_header_style(chance),
        )

        outcome = simulation.run()

        assert [] == outcome.refused_at, seed
        assert None is outcome.spent, seed
        assert simulation.requests == outcome.answered, seed
        assert counter.busiest <= limit, seed


def compute_ideal_seconds(
    counter: Counter, requests: int, workers: int, round_trip: float
) -> float:
    """Return the earliest possible time of the last response."""
    first = counter.reset_at(EPOCH) - EPOCH if isinstance(counter, FixedWindow) else MINUTE
    windows = math.ceil((requests - counter.limit) / counter.limit)
    last = requests - windows * counter.limit
    return first + (windows - 1) * MINUTE + round_trip * max(1, last / workers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_in_seconds", [False, True])
def test_a_client_uses_every_request_of_each_window(kind: str, is_in_seconds: bool) -> None:
    for seed in range(6):
        chance = random.Random(f"{kind} {is_in_seconds} {seed}")
        limit, workers = chance.choice([60, 300]), chance.choice([4, 16])
        # What is left of the first window is long enough to spend its limit in.
        counter = KINDS[kind](limit, (EPOCH + chance.uniform(20, MINUTE)) % MINUTE)
        requests = int(limit * chance.uniform(5, 7))
        style = RateHeaderStyle(
            chance.choice(ROUNDINGS), is_in_seconds, clock=lambda now: EPOCH + now + 432.1
        )
        network = Network(chance.choice([0.01, 0.05]))

        outcome = LimiterSimulation(
            RateLimiter(),
            counter,
            requests=requests,
            seed=seed,
            workers=workers,
            network=network,
            style=style,
        ).run()

        ideal = compute_ideal_seconds(counter, requests, workers, 2 * network.seconds)
        assert [] == outcome.refused_at
        # A reset that moves with each request makes the client wait longer than necessary.
        share = 1.15 if kind == "sliding to the newest" else 1.06
        assert outcome.ended_at <= share * ideal, (seed, ideal, outcome.ended_at)


def run_with_headers(
    change: Callable[[RateHeaders], RateHeaders], *, workers: int = 4
) -> SimulationResult:
    """Simulate five windows of 60 requests with a server that changes its headers."""
    style = RateHeaderStyle(change=change)
    return LimiterSimulation(
        RateLimiter(), FixedWindow(60), requests=300, seed=3, workers=workers, style=style
    ).run()


def test_without_rate_headers_only_429s_slow_requests_down() -> None:
    outcome = run_with_headers(lambda rate: RateHeaders(), workers=4)

    assert 300 == outcome.answered
    assert 4 == outcome.in_flight_max
    assert 4 <= len(outcome.refused_at) <= 4 * 5


@pytest.mark.parametrize(
    "change",
    [
        lambda rate: RateHeaders(rate.limit, rate.remaining, None),
        lambda rate: RateHeaders(None, rate.remaining, rate.reset),
        lambda rate: RateHeaders(rate.limit, rate.remaining, rate.reset - 3600),
        lambda rate: RateHeaders(rate.limit, min(60, rate.remaining + 1), rate.reset),
    ],
    ids=["no reset", "no limit", "reset long past", "own request not counted"],
)
def test_remaining_is_enough_to_avoid_429s(change: Callable[[RateHeaders], RateHeaders]) -> None:
    outcome = run_with_headers(change)

    assert [] == outcome.refused_at
    assert 300 == outcome.answered


def test_invalid_rate_headers_do_not_stop_requests() -> None:
    numbers = [-1, 0, 1, 59, 60, 61, 10**9, 10**15]
    moments = [*numbers, -math.inf, math.inf, math.nan, 1e300, EPOCH, EPOCH + 9, EPOCH - 1e6]

    def make_headers_invalid(rate: RateHeaders) -> RateHeaders:
        if chance.random() < 0.5:
            return rate
        limit, remaining = (chance.choice([None, *numbers]) for _ in range(2))
        return RateHeaders(limit, remaining, chance.choice([None, *moments]))

    for seed in seeds(40):
        chance = random.Random(seed)
        style = RateHeaderStyle(change=make_headers_invalid, has_date=chance.random() < 0.5)
        simulation = LimiterSimulation(
            RateLimiter(), FixedWindow(60), requests=200, seed=seed, style=style
        )

        outcome = simulation.run()

        assert 200 == outcome.answered or outcome.spent is not None, seed


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_a_used_up_month_stops_every_worker(workers: int) -> None:
    ends_at = EPOCH + 86_400
    month = MonthlyLimit(60, 150, ends_at)
    simulation = LimiterSimulation(RateLimiter(), month, requests=1_000, seed=5, workers=workers)

    outcome = simulation.run()

    assert 150 == outcome.answered
    assert QuotaExhausted(ends_at) == outcome.spent
    # Those on their way are refused together.
    assert len(outcome.refused_at) <= workers + 2
    assert outcome.spent_at - outcome.ended_at <= 61
    assert isinstance(simulation.limiter.acquire(86_399), QuotaExhausted)
    assert isinstance(simulation.limiter.acquire(86_402), Ticket)


@pytest.mark.parametrize("rate", [RateHeaders(), RateHeaders(10**6, 10**6 - 1, 30.0)])
def test_the_memory_of_the_rate_limiter_is_bounded(rate: RateHeaders) -> None:
    limiter, sizes = RateLimiter(), []
    for number in range(100_001):
        now = number / 100
        went = limiter.acquire(now)
        assert isinstance(went, Ticket)
        limiter.record_response(now, went, rate)
        if number % 50_000 == 0:
            sizes.append(len(pickle.dumps(limiter)))

    assert sizes[2] <= 1.5 * sizes[1]


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
