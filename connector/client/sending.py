"""Sending at the common pace, and again where that is safe: what lies between a call and the wire.

It knows no resource and no socket. What was not applied for certain may be repeated, within
bounds of count and time; every other end is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from connector.client.answer import Answer, rate_headers, served_at
from connector.client.connection import Connections
from connector.client.endpoint import Exchange
from connector.client.envelope import error_of
from connector.client.rate_limiter import Go, Pace, RateHeaders, Spent, Ticket, Wait
from connector.client.request import Request
from connector.errors import Misused
from connector.errors_api import QuotaSpent, RateLimited, TryAgain, Unreachable

CONNECT_ATTEMPTS_MAX = 3
"""Attempts at a connection that cannot be made."""

TURN_SECONDS = 1.0
"""How long to wait for an answer before asking the pace again: another client may have had it."""

BACKOFF_SECONDS_MIN = 0.5
BACKOFF_SECONDS_MAX = 20.0


class Observer(Protocol):
    """Told of everything that leaves and is waited for; called from the event loop, so it must
    not block.
    """

    def before_send(self, request: Request) -> None:
        """An attempt is about to leave; raising here (a budget) stops it."""

    def answered(self, request: Request, status: int | None, seconds: float) -> None:
        """An attempt ended with a status, or with None where no answer came."""

    def waited(self, seconds: float, why: str) -> None:
        """A request was held back."""


class Unobserved:
    """Nobody observes."""

    def before_send(self, request: Request) -> None:
        """Ignore it."""

    def answered(self, request: Request, status: int | None, seconds: float) -> None:
        """Ignore it."""

    def waited(self, seconds: float, why: str) -> None:
        """Ignore it."""


class Toll(Protocol):
    """Paid for every attempt that is about to leave, by whoever counts the month's requests."""

    async def pay(self, request: Request) -> None:
        """The attempt may leave once this returns; raising (a budget, a quota) keeps it here."""

    def heard(self, status: int, served_at: datetime | None) -> None:
        """An answer came; `served_at` is the server's clock, None where it told no time."""

    def spent(self, request: Request, resets_at: float | None) -> QuotaSpent:
        """The API said that the month is spent, until a Unix time where it told one; returns the
        error to raise.
        """


class Untolled:
    """Nobody counts the month's requests."""

    async def pay(self, request: Request) -> None:
        """Let it go."""

    def heard(self, status: int, served_at: datetime | None) -> None:
        """Ignore it."""

    def spent(self, request: Request, resets_at: float | None) -> QuotaSpent:
        """The error as the answer alone words it."""
        return QuotaSpent(
            f"{request.where} was not sent: the month's allowance is spent",
            resets_at=_shown(resets_at),
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The client's own bounds: `deadline_seconds` for one attempt from first byte to last,
    `attempts_max` and `retry_seconds_max` for the repeats of one request, `body_bytes_max` for an
    answer unpacked.
    """

    deadline_seconds: float = 60.0
    attempts_max: int = 5
    retry_seconds_max: float = 300.0
    body_bytes_max: int = 32 * 1024 * 1024


@dataclass(slots=True)
class _Course:
    """One request's course: its attempts so far, and when the first of them began."""

    request: Request
    attempts: int = 0
    begun_at: float = 0.0


class Sending:
    """Sends requests over `connections`, of which `count` may be under way at once.

    `clock` gives seconds and never goes back; `chance` draws from [0, 1).
    """

    def __init__(
        self,
        connections: Connections,
        *,
        count: int,
        pace: Pace,
        limits: Limits,
        observer: Observer,
        toll: Toll,
        clock: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]],
        chance: Callable[[], float],
    ) -> None:
        self.rate: RateHeaders | None = None
        self._connections, self._slots = connections, asyncio.Semaphore(count)
        self._pace, self._limits, self._observer = pace, limits, observer
        self._toll = toll
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._answered = asyncio.Event()

    async def send(self, request: Request) -> Exchange:
        """Send one request and return the answer of a success; every other end is raised.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        course = _Course(request)
        while True:
            try:
                return await self._attempt(course)
            except TryAgain as error:
                seconds = self._seconds_to_repeat(course, error)
                spent = self._clock() - course.begun_at
                if seconds is None or spent + seconds >= self._limits.retry_seconds_max:
                    raise
            await self._sleep(seconds)

    def _seconds_to_repeat(self, course: _Course, error: TryAgain) -> float | None:
        """How long to wait before the next attempt; None: there is to be none."""
        # Whatever else befalls a write leaves it in doubt, and is never `TryAgain`.
        assert course.request.is_read or isinstance(error, RateLimited | Unreachable), error
        attempts_max = self._limits.attempts_max
        if isinstance(error, Unreachable):
            # Nobody there now is seldom somebody there in ten seconds.
            attempts_max = min(attempts_max, CONNECT_ATTEMPTS_MAX)
        if course.attempts >= attempts_max:
            return None
        if isinstance(error, RateLimited):
            return 0.0  # The pace holds everything back after a 429.
        backoff = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** (course.attempts - 1))
        return backoff * (1 + self._chance() / 2)  # Chance only ever lengthens it.

    async def _attempt(self, course: _Course) -> Exchange:
        request = course.request
        async with self._slots:
            ticket = await self._leave_to_go(request)
            answer: Answer | None = None
            has_left = False
            try:
                await self._toll.pay(request)
                sent_at = self._clock()
                # What was spent in the queue before the first attempt forbids no second one.
                course.begun_at = sent_at if course.attempts == 0 else course.begun_at
                course.attempts += 1
                self._observer.before_send(request)
                has_left = True
                try:
                    answer = await self._connections.exchange(request)
                except (Unreachable, Misused):
                    has_left = False
                    raise
                finally:
                    status = answer.status if answer is not None else None
                    self._observer.answered(request, status, self._clock() - sent_at)
            finally:
                self._give_back(ticket, answer, has_left)
        if not 200 <= answer.status < 300:
            reset_in_seconds = self._pace.resets_in(self._clock())
            raise error_of(request, answer, reset_in_seconds=reset_in_seconds)
        return Exchange(answer, self._clock() - sent_at)

    def _give_back(self, ticket: Ticket, answer: Answer | None, has_left: bool) -> None:
        """Tell the pace what became of a request, and what the answer says of the limit."""
        now = self._clock()
        if answer is None:
            fate = self._pace.lost if has_left else self._pace.unsent
            fate(now, ticket)
        else:
            moment = served_at(answer)
            self._toll.heard(answer.status, moment)
            server_now = moment.timestamp() if moment is not None else None
            rate = rate_headers(answer)
            if rate != RateHeaders():
                self.rate = rate
            if answer.status == 429:
                self._pace.refused(now, ticket, rate, server_now, self._chance())
            else:
                self._pace.heard(now, ticket, rate, server_now)
        # Whoever waits may ask again.
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()

    async def _leave_to_go(self, request: Request) -> Ticket:
        """Wait until the pace lets the request leave. Raises `QuotaSpent`."""
        while True:
            match self._pace.ask(self._clock()):
                case Go(ticket):
                    return ticket
                case Spent(resets_at):
                    raise self._toll.spent(request, resets_at)
                case Wait(seconds, reason):
                    await self._wait(seconds, reason)

    async def _wait(self, seconds: float | None, reason: str) -> None:
        """Wait for the pace, or less: any answer may change what it says. None: for an answer,
        which may be that of another client.
        """
        since = self._clock()
        waits = {asyncio.ensure_future(self._answered.wait())}
        if seconds is not None:
            waits.add(asyncio.ensure_future(self._slept(seconds)))
        try:
            turn = TURN_SECONDS if seconds is None else None
            await asyncio.wait(waits, timeout=turn, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            self._observer.waited(self._clock() - since, reason)

    async def _slept(self, seconds: float) -> Literal[True]:
        await self._sleep(seconds)
        return True


def _shown(moment: float | None) -> str | None:
    """A Unix time as ISO 8601; None where it is none that a calendar has."""
    try:
        return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None
