"""Rate limiter with manually recorded responses, for tests of single rules."""

from __future__ import annotations

from connector.client.rate_limiter import Go, RateHeaders, RateLimiter, Ticket, Wait

NOW = 1_700_000_000.0
"""The server's Unix time at second 0 of the client's clock."""


class ManualLimiter:
    """Limiter that a test calls at times in seconds. The server's clock equals the client's."""

    def __init__(self, *, reserve: int = 0, limit: int = 10) -> None:
        self.limiter = RateLimiter(reserve=reserve)
        self._limit = limit

    def expect_wait_seconds(self, now: float) -> float:
        """Request a ticket that must wait. Returns the seconds to wait."""
        seconds = self.expect_wait(now).seconds
        assert seconds is not None
        return seconds

    def acquire(self, now: float) -> Ticket:
        """Request a ticket that must be granted immediately."""
        went = self.limiter.acquire(now)
        assert isinstance(went, Go), went
        return went.ticket

    def acquire_all(self, now: float) -> list[Ticket]:
        """Request tickets until one must wait. Returns the granted tickets."""
        tickets = []
        while isinstance(went := self.limiter.acquire(now), Go):
            tickets.append(went.ticket)
        return tickets

    def expect_wait(self, now: float) -> Wait:
        """Request a ticket that must not be granted yet."""
        wait = self.limiter.acquire(now)
        assert isinstance(wait, Wait), wait
        return wait

    def record_success(
        self, now: float, ticket: Ticket, remaining: int | None, reset: float | None = 50, /
    ) -> None:
        """Record a successful response with this `Remaining`; `reset` is in seconds of the client's
        clock.
        """
        moment = None if reset is None else NOW + reset
        rate = RateHeaders(None if remaining is None else self._limit, remaining, moment)
        self.limiter.record_response(now, ticket, rate, NOW + now)

    def record_429(
        self, now: float, ticket: Ticket, reset: float | None = None, /, *, jitter: float = 0
    ) -> None:
        """Record a 429 response. Without a `reset`, it has no figures."""
        rate = RateHeaders() if reset is None else RateHeaders(self._limit, 0, NOW + reset)
        self.limiter.record_refusal(now, ticket, rate, NOW + now, jitter)
