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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
        """Return the rate headers and the `Date`, in whole seconds, by the counter's state."""
        seconds = counter.reset_at(EPOCH + now) - (EPOCH + now)
        reset = seconds if self.is_in_seconds else self.clock(now) + seconds
        left = counter.remaining(EPOCH + now)
        rate = self.change(RateHeaders(counter.limit, left, self.rounding(reset)))
        return replace(rate, date=float(math.floor(self.clock(now))) if self.has_date else None)


@dataclass
class SimulationResult:
    """Counts and times of a simulation. Times are seconds of the client's clock."""

    answered: int = 0
    refused_at: list[float] = field(default_factory=list)
    lost: int = 0
    sent_at: list[float] = field(default_factory=list)
    in_flight_max: int = 0
    ended_at: float = 0.0
    spent: QuotaExhausted | None = None
    spent_at: float = math.inf


class LimiterSimulation:
    """Simulation of `workers` that share one limiter. It ends when `requests` have responses or the
    month is used up. Rejected and lost requests are sent again. `other_client_times` are the
    times at which another client of the key sends a request.

    Workers are generators. They yield the time at which they continue, or a `Wait`.
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
        self._chance, self._now = random.Random(seed), 0.0
        self._tickets_requested = self._in_flight = 0
        self._tasks = [self._count_other_client(other_client_times)]
        self._tasks += [self._work() for _ in range(workers)]
        # Each task continues at its last entry in the queue; a waiting one also at any response.
        self._queue: list[tuple[float, int, int]] = []
        self._entries, self._waiting = dict[int, int](), set[int]()
        self._number = 0
        for task in range(len(self._tasks)):
            self._schedule(task, 0.0)

    def run(self) -> SimulationResult:
        """Process all events in the order of their times."""
        while self._queue and not self._is_over():
            self._now, number, task = heapq.heappop(self._queue)
            if self._entries[task] != number:
                continue
            self._waiting.discard(task)
            pause = next(self._tasks[task], None)
            if isinstance(pause, Wait):
                self._waiting.add(task)
                pause = None if pause.seconds is None else self._now + pause.seconds
            if pause is not None:
                self._schedule(task, pause)
        assert self._is_over(), "all workers wait and no event is scheduled"
        return self.outcome

    def _is_over(self) -> bool:
        if self.outcome.spent is not None:
            return self._in_flight == 0
        return self.outcome.answered == self.requests

    def _schedule(self, task: int, at: float) -> None:
        self._number += 1
        self._entries[task] = self._number
        heapq.heappush(self._queue, (at, self._number, task))

    def _count_other_client(self, times: Sequence[float]) -> Iterator[float | Wait]:
        for moment in times:
            yield moment
            self.counter.count_request(EPOCH + moment)

    def _work(self) -> Iterator[float | Wait]:
        while True:
            if self.outcome.answered + self._in_flight >= self.requests:
                # All remaining requests are in flight. If one is lost, this worker is needed again.
                yield Wait(None)
                continue
            self._tickets_requested += 1
            assert self._tickets_requested <= TICKETS_PER_REQUEST_MAX * self.requests
            match self.limiter.acquire(self._now):
                case Ticket() as ticket:
                    yield from self._send(ticket)
                case Wait(seconds) as wait:
                    assert seconds is not None or self._in_flight > 0, "waits for no response"
                    assert seconds is None or 0 < seconds <= 120, seconds
                    assert seconds is None or self._now + seconds > self._now, "is too short"
                    yield wait
                case QuotaExhausted() as spent:
                    self.outcome.spent = spent
                    self.outcome.spent_at = min(self.outcome.spent_at, self._now)
                    return

    def _send(self, ticket: Ticket) -> Iterator[float]:
        """Send a request to the server, which may be lost, and report its end to the limiter."""
        outcome, network, chance = self.outcome, self.network, self._chance
        outcome.sent_at.append(self._now)
        self._in_flight += 1
        outcome.in_flight_max = max(outcome.in_flight_max, self._in_flight)
        arrives_at = self._now + network.draw_one_way_seconds(chance)
        lands_at = arrives_at + network.draw_one_way_seconds(chance)
        gives_up_at = self._now + network.deadline_seconds
        is_request_lost, is_answer_lost = (chance.random() < network.loss for _ in range(2))
        is_accepted = False
        if not is_request_lost:
            yield arrives_at
            is_accepted = self.counter.count_request(EPOCH + self._now)
        is_lost = is_request_lost or is_answer_lost or lands_at > gives_up_at
        if not is_lost and not self.style.is_stamped_on_arrival:
            # The server takes its time after counting, and writes the headers at the end.
            yield (arrives_at + lands_at) / 2
        rate = self.style.make_headers(self.counter, self._now)
        yield gives_up_at if is_lost else lands_at
        self._in_flight -= 1
        if is_lost:
            outcome.lost += 1
            self.limiter.record_lost(self._now, ticket)
        elif is_accepted:
            outcome.answered, outcome.ended_at = outcome.answered + 1, self._now
            self.limiter.record_response(self._now, ticket, rate)
        else:
            outcome.refused_at.append(self._now)
            self.limiter.record_refusal(self._now, ticket, rate, chance.random())
        for task in sorted(self._waiting):
            self._schedule(task, self._now)


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
