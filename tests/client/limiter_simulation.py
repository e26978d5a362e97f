"""Simulated workers, a counting server and a network, for the rate limiter.

The simulation does not wait in real time. A seed determines every delay and loss, so a failure can
be repeated. Each step is checked: waits are positive, no worker waits for a response while no
request is in flight, and the number of requested tickets is limited.
"""

from __future__ import annotations

import heapq
import math
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from connector.client.limiter import QuotaExhausted, RateHeaders, RateLimiter, Ticket, Wait

MINUTE = 60.0


class Counter(ABC):
    """Rate limit in requests per minute. `busiest` is the most that a window counted."""

    def __init__(self, limit: int) -> None:
        self.limit, self.busiest = limit, 0
        self._counted = deque[float]()

    @abstractmethod
    def begin(self, now: float) -> float:
        """Return the time of the first request that counts now."""

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""
        if self.remaining(now) <= 0:
            return False
        self._counted.append(now)
        self.busiest = max(self.busiest, len(self._counted))
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        begin = self.begin(now)
        while self._counted and self._counted[0] < begin:
            self._counted.popleft()
        return self.limit - len(self._counted)

    def reset_at(self, now: float) -> float:
        """Return the time of the reset, as the server shows it."""
        return self.begin(now) + MINUTE


class FixedWindow(Counter):
    """Counter per minute; windows start `phase` seconds after the full minute."""

    def __init__(self, limit: int, phase: float = 0.0) -> None:
        super().__init__(limit)
        self.phase = phase

    def begin(self, now: float) -> float:
        return math.floor((now - self.phase) / MINUTE) * MINUTE + self.phase


class FirstRequestWindow(Counter):
    """Counter per minute; a window starts with the first request after the end of the last one."""

    def begin(self, now: float) -> float:
        return self._counted[0] if self._counted and now < self._counted[0] + MINUTE else now


class SlidingWindow(Counter):
    """Counter of the last 60 seconds. The reset shown is the time when the oldest request leaves
    the window ("one") or the newest ("all").
    """

    def __init__(self, limit: int, reset: Literal["one", "all"] = "one") -> None:
        super().__init__(limit)
        self.reset = reset

    def begin(self, now: float) -> float:
        return math.nextafter(now - MINUTE, math.inf)

    def reset_at(self, now: float) -> float:
        if self.remaining(now) == self.limit:
            return now + MINUTE
        return self._counted[0 if self.reset == "one" else -1] + MINUTE


class MonthlyLimit(FixedWindow):
    """Counter with a limit per minute, and with `month_limit` requests until `month_ends_at`. Once
    the month is used up, the reset shown is that of the month.
    """

    def __init__(self, limit: int, month_limit: int, month_ends_at: float) -> None:
        super().__init__(limit)
        self.month_limit, self.month_ends_at, self._spent = month_limit, month_ends_at, 0

    def _is_month_used_up(self, now: float) -> bool:
        return self._spent >= self.month_limit and now < self.month_ends_at

    def count_request(self, now: float) -> bool:
        is_counted = super().count_request(now)
        self._spent += is_counted
        return is_counted

    def remaining(self, now: float) -> int:
        return 0 if self._is_month_used_up(now) else super().remaining(now)

    def reset_at(self, now: float) -> float:
        return self.month_ends_at if self._is_month_used_up(now) else super().reset_at(now)


TICKETS_PER_REQUEST_MAX = 400
"""Maximum number of tickets that all workers together request for one request."""

EPOCH = 1_700_000_000.0
"""The server's Unix time at second 0 of the simulation, which is 20 s into a minute."""


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
class RateHeaderStyle:
    """How a server writes its rate headers: the rounding of the reset, its unit (seconds or a
    timestamp), the server's clock, and whether and when it writes a `Date`. `change` alters the
    headers.
    """

    rounding: Callable[[float], float] = math.floor
    is_in_seconds: bool = False
    has_date: bool = True
    is_stamped_on_arrival: bool = True
    clock: Callable[[float], float] = lambda now: EPOCH + now
    """The server's clock, which may be wrong and may step, by the steady time."""
    change: Callable[[RateHeaders], RateHeaders] = lambda rate: rate

    def make_headers(self, counter: Counter, now: float) -> RateHeaders:
        """Return the rate headers for the state of the counter."""
        seconds = counter.reset_at(EPOCH + now) - (EPOCH + now)
        reset = seconds if self.is_in_seconds else self.clock(now) + seconds
        left = counter.remaining(EPOCH + now)
        return self.change(RateHeaders(counter.limit, left, self.rounding(reset)))

    def make_date(self, now: float) -> float | None:
        """Return the `Date` header in whole seconds; None if the server sends none."""
        return float(math.floor(self.clock(now))) if self.has_date else None


@dataclass
class SimulationResult:
    """Counts and times of a simulation. Times are seconds of the client's clock."""

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


class LimiterSimulation:
    """Simulation of `workers` that share one limiter. It ends when `requests` have responses or the
    month is used up. Rejected and lost requests are sent again. `other_client_times` are the
    times at which another client of the key sends a request.
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
        style: RateHeaderStyle | None = None,
        other_client_times: Sequence[float] = (),
    ) -> None:
        self.limiter, self.counter, self.requests = limiter, counter, requests
        self.network, self.style = network or Network(), style or RateHeaderStyle()
        self.outcome = SimulationResult()
        self._chance = random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._events = self._tickets_requested = self._in_flight = 0
        self._waiting: dict[int, int] = {}
        for moment in other_client_times:
            self._schedule(moment, self._count_other_client)
        for worker in range(workers):
            self._schedule(0.0, partial(self._request_ticket, worker=worker))

    def run(self) -> SimulationResult:
        """Process all events in the order of their times."""
        while self._queue and not self._is_over():
            moment, _, act = heapq.heappop(self._queue)
            act(moment)
        assert self._is_over(), "all workers wait and no event is scheduled"
        return self.outcome

    def _is_over(self) -> bool:
        if self.outcome.spent is not None:
            return self._in_flight == 0
        return self.outcome.answered == self.requests

    def _schedule(self, at: float, act: Callable[[float], None]) -> None:
        self._events += 1
        heapq.heappush(self._queue, (at, self._events, act))

    def _count_other_client(self, now: float) -> None:
        is_accepted = self.counter.count_request(EPOCH + now)
        self.outcome.others_answered += is_accepted
        self.outcome.others_refused += not is_accepted

    def _request_ticket(self, now: float, worker: int) -> None:
        self._waiting.pop(worker, None)
        if self.outcome.answered + self._in_flight >= self.requests:
            # All remaining requests are in flight. If one is lost, this worker is needed again.
            self._waiting[worker] = self._events
            return
        self._tickets_requested += 1
        assert self._tickets_requested <= TICKETS_PER_REQUEST_MAX * self.requests, (
            "too many tickets requested"
        )
        match self.limiter.acquire(now):
            case Ticket() as ticket:
                self._send(now, worker, ticket)
            case Wait(seconds):
                self._schedule_retry(now, worker, seconds)
            case QuotaExhausted() as spent:
                self.outcome.spent = spent
                self.outcome.spent_at = min(self.outcome.spent_at, now)

    def _schedule_retry(self, now: float, worker: int, seconds: float | None) -> None:
        assert seconds is not None or self._in_flight > 0, (
            "waits for a response while no request is in flight"
        )
        self._waiting[worker] = mark = self._events
        if seconds is None:
            return
        assert 0 < seconds <= 120, seconds
        assert now + seconds > now, "the wait is shorter than the resolution of the clock"

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
            self._schedule(gives_up_at, lambda then: self._give_up(then, worker, ticket))
            lands_at = math.inf
        if not is_request_lost:
            self._schedule(
                arrives_at, lambda then: self._arrive_at_server(then, lands_at, worker, ticket)
            )

    def _arrive_at_server(
        self, now: float, responds_at: float, worker: int, ticket: Ticket
    ) -> None:
        is_accepted = self.counter.count_request(EPOCH + now)
        if math.isinf(responds_at):
            return
        arrived = self.style.make_headers(self.counter, now)
        date = self.style.make_date(now)

        def act(then: float) -> None:
            self._receive_response(then, worker, ticket, is_accepted, (arrived, date))

        if self.style.is_stamped_on_arrival:
            self._schedule(responds_at, act)
            return
        # The server takes its time after counting, and writes the headers at the end.
        leaves_at = now + (responds_at - now) / 2

        def leave(then: float) -> None:
            nonlocal arrived, date
            arrived, date = self.style.make_headers(self.counter, then), self.style.make_date(then)
            self._schedule(responds_at, act)

        self._schedule(leaves_at, leave)

    def _receive_response(
        self,
        now: float,
        worker: int,
        ticket: Ticket,
        is_accepted: bool,
        headers_and_date: tuple[RateHeaders, float | None],
    ) -> None:
        self._in_flight -= 1
        rate, date = headers_and_date
        if is_accepted:
            self.outcome.answered += 1
            self.outcome.ended_at = now
            self.limiter.record_response(now, ticket, replace(rate, date=date))
        else:
            self.outcome.refused_at.append(now)
            self.limiter.record_refusal(
                now, ticket, replace(rate, date=date), self._chance.random()
            )
        self._request_all_tickets(now, worker)

    def _give_up(self, now: float, worker: int, ticket: Ticket) -> None:
        self._in_flight -= 1
        self.outcome.lost += 1
        self.limiter.record_lost(now, ticket)
        self._request_all_tickets(now, worker)

    def _request_all_tickets(self, now: float, worker: int) -> None:
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


def run_single_client(kind: str, seed: int) -> SimulationResult:
    """Simulate 180 requests of a key's only client, with four workers and a limit of 60 per minute.
    `kind` is a name in `KINDS`.
    """
    chance = random.Random(f"{kind} {seed}")
    counter = KINDS[kind](60, chance.uniform(0, MINUTE))
    return LimiterSimulation(RateLimiter(), counter, requests=180, seed=seed).run()
