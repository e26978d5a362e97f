"""The limiter played by hand, for tests of single rules."""

from __future__ import annotations

from connector.client.rate_limiter import Go, RateHeaders, RateLimiter, Ticket, Wait

NOW = 1_700_000_000.0
"""The server's Unix time at our moment 0."""


class ManualLimiter:
    """A limiter that a test calls at given times; the server's clock runs with ours."""

    def __init__(self, *, reserve: int = 0, limit: int = 10) -> None:
        self.limiter = RateLimiter(reserve=reserve)
        self._limit = limit

    def seconds(self, now: float) -> float:
        """Ask for one that must wait for a while."""
        seconds = self.wait(now).seconds
        assert seconds is not None
        return seconds

    def go(self, now: float) -> Ticket:
        """Send one that must be let go."""
        went = self.limiter.acquire(now)
        assert isinstance(went, Go), went
        return went.ticket

    def go_all(self, now: float) -> list[Ticket]:
        """Send all that are let go."""
        tickets = []
        while isinstance(went := self.limiter.acquire(now), Go):
            tickets.append(went.ticket)
        return tickets

    def wait(self, now: float) -> Wait:
        """Ask for one that must wait."""
        wait = self.limiter.acquire(now)
        assert isinstance(wait, Wait), wait
        return wait

    def heard(
        self, now: float, ticket: Ticket, remaining: int | None, reset: float | None = 50, /
    ) -> None:
        """Answer with this `Remaining`; `reset` is in seconds of our clock."""
        moment = None if reset is None else NOW + reset
        rate = RateHeaders(None if remaining is None else self._limit, remaining, moment)
        self.limiter.record_response(now, ticket, rate, NOW + now)

    def refused(
        self, now: float, ticket: Ticket, reset: float | None = None, /, *, jitter: float = 0
    ) -> None:
        """Answer with a 429; without a `reset`, it has no figures."""
        rate = RateHeaders() if reset is None else RateHeaders(self._limit, 0, NOW + reset)
        self.limiter.record_refusal(now, ticket, rate, NOW + now, jitter)
