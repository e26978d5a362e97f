"""Simulated workers, a counting server and a network, for the rate limiter.

Nothing here waits. One seed draws every delay and every loss, so that a failure is replayed by its
number. The world checks what must hold at every step: a wait is longer than nothing, nobody waits
for an answer while none is on its way, and asking comes to an end.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from connector.client.rate_limiter import Go, QuotaExhausted, RateHeaders, RateLimiter, Ticket, Wait
from tests.client.rate_limiter_counters import (
    MINUTE,
    Counter,
    FirstRequestWindow,
    FixedWindow,
    SlidingWindow,
)

ASKS_PER_REQUEST_MAX = 400
"""No request needs so many asks, of all workers together."""

EPOCH = 1_700_000_000.0
"""The server's Unix time at our moment 0, which lies 20 s into a minute."""


@dataclass
class Network:
    """Network in which each direction takes `seconds` on average, and in one of twenty cases ten
    times as long. A `loss` share of the requests and of the responses is lost. The client gives
    up after `deadline_seconds`.
    """

    seconds: float = 0.05
    loss: float = 0.0
    deadline_seconds: float = 10.0

    def draw_one_way_seconds(self, chance: random.Random) -> float:
        """Return a random duration of one direction."""
        slow = 10 if chance.random() < 0.05 else 1
        return slow * self.seconds * chance.uniform(0.3, 1.7) / 1.45


@dataclass
class ShownRate:
    """Way in which a server shows its count."""

    rounding: Callable[[float], float] = math.floor
    is_in_seconds: bool = False
    has_date: bool = True
    is_stamped_on_arrival: bool = True
    clock: Callable[[float], float] = lambda now: EPOCH + now
    """The server's clock, which may be wrong and may step, by the steady time."""
    change: Callable[[RateHeaders], RateHeaders] = lambda rate: rate

    def show(self, counter: Counter, now: float) -> RateHeaders:
        """Return the three figures."""
        seconds = counter.reset_at(EPOCH + now) - (EPOCH + now)
        reset = seconds if self.is_in_seconds else self.clock(now) + seconds
        left = counter.left(EPOCH + now)
        return self.change(RateHeaders(counter.limit, left, self.rounding(reset)))

    def date(self, now: float) -> float | None:
        """Return the `Date` in whole seconds."""
        return float(math.floor(self.clock(now))) if self.has_date else None


@dataclass
class LimiterRun:
    """Result of a run, with times of the client's clock."""

    answered: int = 0
    refused_at: list[float] = field(default_factory=list)
    lost: int = 0
    sent_at: list[float] = field(default_factory=list)
    in_flight_max: int = 0
    ended_at: float = 0.0
    others_answered: int = 0
    others_refused: int = 0
    spent: QuotaExhausted | None = None
    spent_at: float = math.inf


class LimiterWorld:
    """Simulation in which `workers` send `requests` under one limiter, until all have responses or
    the month is used up. Other clients of the key send requests at the times in `others`.
    Rejected and lost requests are sent again.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        counter: Counter,
        *,
        requests: int,
        seed: int,
        workers: int = 4,
        network: Network | None = None,
        face: ShownRate | None = None,
        others: Sequence[float] = (),
    ) -> None:
        self.limiter, self.counter, self.requests = limiter, counter, requests
        self.network, self.face = network or Network(), face or ShownRate()
        self.outcome = LimiterRun()
        self._chance = random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._events = self._asks = self._in_flight = self._under_way = 0
        self._waiting: dict[int, int] = {}
        for moment in others:
            self._schedule(moment, self._send_of_other_client)
        for worker in range(workers):
            self._schedule(0.0, partial(self._request_ticket, worker=worker))

    def run(self) -> LimiterRun:
        """Process all events in the order of their times."""
        while self._queue and not self._is_over():
            moment, _, act = heapq.heappop(self._queue)
            act(moment)
        assert self._is_over(), "everybody waits and nothing will happen"
        return self.outcome

    def _is_over(self) -> bool:
        if self.outcome.spent is not None:
            return self._in_flight == 0
        return self.outcome.answered == self.requests

    def _schedule(self, moment: float, act: Callable[[float], None]) -> None:
        self._events += 1
        heapq.heappush(self._queue, (moment, self._events, act))

    def _send_of_other_client(self, now: float) -> None:
        is_let = self.counter.spend(EPOCH + now)
        self.outcome.others_answered += is_let
        self.outcome.others_refused += not is_let

    def _request_ticket(self, now: float, worker: int) -> None:
        self._waiting.pop(worker, None)
        if self.outcome.answered + self._in_flight >= self.requests:
            # The rest is on its way; if some of it comes to nothing, this one is needed again.
            self._waiting[worker] = self._events
            return
        self._asks += 1
        assert self._asks <= ASKS_PER_REQUEST_MAX * self.requests, "asking comes to no end"
        match self.limiter.acquire(now):
            case Go(ticket):
                self._send(now, worker, ticket)
            case Wait(seconds, _):
                self._wait(now, worker, seconds)
            case QuotaExhausted() as spent:
                self.outcome.spent = spent
                self.outcome.spent_at = min(self.outcome.spent_at, now)

    def _wait(self, now: float, worker: int, seconds: float | None) -> None:
        assert seconds is not None or self._in_flight > 0, "waits for an answer that cannot come"
        self._waiting[worker] = mark = self._events
        if seconds is None:
            return
        assert 0 < seconds <= 120, seconds
        assert now + seconds > now, "the wait is shorter than the clock can tell"

        def act(then: float) -> None:
            if self._waiting.get(worker) == mark:
                self._request_ticket(then, worker)

        self._schedule(now + seconds, act)

    def _send(self, now: float, worker: int, ticket: Ticket) -> None:
        outcome, network, chance = self.outcome, self.network, self._chance
        outcome.sent_at.append(now)
        self._in_flight += 1
        outcome.in_flight_max = max(outcome.in_flight_max, self._in_flight)
        arrives_at = now + network.draw_one_way_seconds(chance)
        lands_at = arrives_at + network.draw_one_way_seconds(chance)
        is_request_lost, is_answer_lost = (chance.random() < network.loss for _ in range(2))
        gives_up_at = now + network.deadline_seconds
        if is_request_lost or is_answer_lost or lands_at > gives_up_at:
            self._schedule(gives_up_at, lambda then: self._lose_request(then, worker, ticket))
            lands_at = math.inf
        if not is_request_lost:
            self._schedule(arrives_at, lambda then: self._count(then, lands_at, worker, ticket))

    def _count(self, now: float, lands_at: float, worker: int, ticket: Ticket) -> None:
        is_let = self.counter.spend(EPOCH + now)
        if math.isinf(lands_at):
            return
        arrived = self.face.show(self.counter, now)
        date = self.face.date(now)

        def act(then: float) -> None:
            self._receive_response(then, worker, ticket, is_let, (arrived, date))

        if self.face.is_stamped_on_arrival:
            self._schedule(lands_at, act)
            return
        # The server takes its time after counting, and writes the headers at the end.
        leaves_at = now + (lands_at - now) / 2

        def leave(then: float) -> None:
            nonlocal arrived, date
            arrived, date = self.face.show(self.counter, then), self.face.date(then)
            self._schedule(lands_at, act)

        self._schedule(leaves_at, leave)

    def _receive_response(
        self,
        now: float,
        worker: int,
        ticket: Ticket,
        is_let: bool,
        shown: tuple[RateHeaders, float | None],
    ) -> None:
        self._in_flight -= 1
        rate, date = shown
        if is_let:
            self.outcome.answered += 1
            self.outcome.ended_at = now
            self.limiter.record_response(now, ticket, rate, date)
        else:
            self.outcome.refused_at.append(now)
            self.limiter.record_refusal(now, ticket, rate, date, self._chance.random())
        self._wake_all(now, worker)

    def _lose_request(self, now: float, worker: int, ticket: Ticket) -> None:
        self._in_flight -= 1
        self.outcome.lost += 1
        self.limiter.record_lost(now, ticket)
        self._wake_all(now, worker)

    def _wake_all(self, now: float, worker: int) -> None:
        self._request_ticket(now, worker)
        for each in sorted(self._waiting.keys() - {worker}):
            self._request_ticket(now, each)


KINDS: dict[str, Callable[[int, float], Counter]] = {
    "fixed": FixedWindow,
    "begun": lambda limit, phase: FirstRequestWindow(limit),
    "sliding to the oldest": lambda limit, phase: SlidingWindow(limit, "one"),
    "sliding to the newest": lambda limit, phase: SlidingWindow(limit, "all"),
}
"""Counters by name, made of a limit and the phase of their windows in seconds."""


def run_single_client(kind: str, seed: int) -> LimiterRun:
    """Run three windows of 60 requests with four workers of the only client of a key."""
    chance = random.Random(f"{kind} {seed}")
    counter = KINDS[kind](60, chance.uniform(0, MINUTE))
    return LimiterWorld(RateLimiter(), counter, requests=180, seed=seed).run()
