"""Rate limiter: when the next request may leave within the minute's limit.

The server counts requests in windows of a minute and shows the count in three headers (API 8.3).
Two numbers bound the requests that may leave now:

-   the lowest `Remaining` of the current window, less the requests that it may not include: those
    in flight, and requests that ended without a `Remaining`;
-   `Limit` less our own requests of the last 60 seconds.

For a sole client neither number is ever more than what is really left, in a fixed window as in a
sliding one, so the larger one counts. If another client uses the key too, the second number is too
large. So once a response shows more requests than ours, only the first one counts for some minutes.

A window is over at `Reset` less `Date`, both of the server's clock, and at most a minute after the
response. Then one request leaves alone, the probe; its response shows what the new window holds.

A 429 stops all requests until its reset or `Retry-After`. Only if that is too far away to be the
minute's, the API has reported that the month is used up (API 8.2). A 429 without a time never means
the month: all requests wait, longer each time.

Pure: the caller's monotonic clock and random number are arguments.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

WINDOW_SECONDS = 60.0  # Of the limit "per minute" (API 8.2).
RESOLUTION_SECONDS = 1.0  # `Reset` and `Date` may be cut to whole seconds.
MINUTE_SECONDS = WINDOW_SECONDS + 0.05  # The server's minute may be a little longer than ours.
RESET_SECONDS_MAX = 120.0  # A later reset is not the minute's. No wait is longer either.
TIMESTAMP_MIN = 1e9  # A smaller `Reset` is, as some servers send it, in seconds from now.
SHARED_SECONDS = 300.0  # How long another client is expected after its last sign.
BACKOFF_SECONDS_MIN = 15.0  # First wait after a 429 without a reset. It doubles, up to a window.
JITTER_SECONDS_MAX = 3.0  # So that several processes do not return together after a 429.
PROBES_WITHOUT_FIGURES_MAX = 3  # After these in a window, requests leave without a limit.
WAIT_SECONDS_MIN = 0.001  # So that a caller's clock moves on.
UNCOUNTED_MAX = 10_000  # Only a server that sends no figures has more ends without figures.
OWN_SECONDS = 180.0  # A minute, and as long as a response may take.


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """Rate limit headers of one answer (API 8.3); each is None if missing or invalid.

    `reset` and `retry_after` are as sent: a Unix timestamp, or seconds from now.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to send one request now. The caller reports its end to the rate limiter."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait `seconds`, or until a request has ended; None: only until a request has ended.

    `reason` is "window" (nothing is left), "probe" (a request is under way to learn what is left)
    or "backoff" (after a 429).
    """

    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class QuotaExhausted:
    """The API reported that the month is used up until `resets_at`, a Unix time, None if unknown.

    After that time, `acquire` permits one request again.
    """

    resets_at: float | None


@dataclass(slots=True)
class _Window:
    """Window that began at `opened_at`, and the figures that responses reported for it.

    Until a response reported a figure (`is_known`), `remaining` is the rest of the window before,
    because a reset only increases it. `is_late` is True if the server's figures do not include the
    request that they answer. `reset` identifies the server's window, None if it cannot.
    """

    opened_at: float
    remaining: int | None = None
    is_known: bool = False
    is_late: bool = False
    ends_at: float = math.inf
    reset: float | None = None
    responses_without_figures: int = 0
    is_probe_out: bool = False

    def update(
        self, remaining: int, limit: int | None, ends_at: float, reset: float | None
    ) -> None:
        """Apply the figures of a response."""
        if self.remaining is None or not self.is_known:
            self.is_known, self.is_late = True, remaining == limit
            self.remaining, self.ends_at, self.reset = remaining, ends_at, reset
        elif reset is not None and reset == self.reset:
            self.remaining = min(self.remaining, remaining)
            self.ends_at = min(self.ends_at, ends_at)
        elif remaining <= self.remaining:
            # The server has begun another window, which has less left: its end counts.
            self.remaining = remaining
            if ends_at >= self.ends_at:
                self.ends_at, self.reset = ends_at, reset


class RateLimiter:
    """Rate limiter of one API key, shared by all requests of a process.

    The end of each ticket is reported exactly once: to `record_response`, `record_refusal`,
    `record_lost` (also a cancelled request) or `record_unsent`.

    Args:
        reserve: Requests of each window that are left for other users of the key, except by the
            probe.

    Attributes:
        limit: Requests per minute by the last response that showed it; None before that.
    """

    def __init__(self, *, reserve: int = 0) -> None:
        assert reserve >= 0, reserve
        self.limit: int | None = None
        self._reserve = reserve
        self._window = _Window(opened_at=-math.inf)
        self._in_flight = 0
        # Ends of requests that the lowest figure may not include.
        self._uncounted: deque[float] = deque(maxlen=UNCOUNTED_MAX)
        # Ends of our requests, in order: each was counted before that, if at all.
        self._own: list[float] = []
        self._first_response_at = math.inf
        self._shared_until = -math.inf
        # Since a 429: when requests may leave again, and how often it came.
        self._blocked_until = self._refused_at = -math.inf
        self._refusals = 0
        self._exhausted: QuotaExhausted | None = None

    @property
    def remaining(self) -> int | None:
        """Lowest `Remaining` of the current window; None before the first response."""
        return self._window.remaining

    def resets_in(self, now: float) -> float | None:
        """Return the seconds until the current window is certainly over; None if unknown."""
        ends_at = self._window.ends_at
        return max(0.0, ends_at - now) if math.isfinite(ends_at) else None

    def acquire(self, now: float) -> Ticket | Wait | QuotaExhausted:
        """Return a ticket if a request may leave now, which counts it as in flight.

        Args:
            now: Seconds of a monotonic clock, as in every method.
        """
        if self._exhausted is not None:
            if now < self._blocked_until:
                return self._exhausted
            self._exhausted, self._refusals = None, 0
        if now >= self._window.ends_at:
            self._window = _Window(now, self._window.remaining)
        if (wait := self._required_wait(now)) is not None:
            return wait
        self._in_flight += 1
        self._window.is_probe_out |= not self._window.is_known
        return Ticket(now)

    def record_response(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None
    ) -> None:
        """Record an answer other than a 429; `server_now` is its `Date` as a Unix time."""
        self._record_end(now, ticket)
        sent_at, window = ticket.sent_at, self._window
        if sent_at >= self._refused_at and self._exhausted is None:
            self._refusals = 0
        if sent_at < window.opened_at:
            # Its figures are of the window before, but this one may have counted the request.
            self._uncounted.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self.limit = rate.limit
        if rate.remaining is None:
            window.responses_without_figures += not window.is_known
            self._uncounted.append(now)
            return
        while self._uncounted and self._uncounted[0] <= sent_at:
            self._uncounted.popleft()
        ends_at, reset = _end_of_window(now, sent_at, rate, server_now)
        window.update(max(0, rate.remaining), self.limit, ends_at, reset)
        self._detect_other_clients(now, sent_at, rate.remaining)

    def record_refusal(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None, jitter: float
    ) -> None:
        """Record a 429; `jitter` is a random number in [0, 1)."""
        assert 0 <= jitter < 1, jitter
        self._release_ticket(now, ticket)
        sent_at, window = ticket.sent_at, self._window
        ends = [
            (seconds, moment)
            for moment in (rate.reset, rate.retry_after)
            if (seconds := seconds_until(moment, now - sent_at, server_now)) is not None
        ]
        # No request may leave before either of them, so the later one counts.
        seconds, moment = max(ends, default=(None, None))
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            is_timestamp = moment is not None and moment >= TIMESTAMP_MIN
            self._exhausted = QuotaExhausted(
                moment if is_timestamp else server_now and server_now + seconds
            )
            self._blocked_until = now + seconds
        elif sent_at >= window.opened_at:
            if self.limit is not None:
                # Ours alone stay below the limit, so another client used the rest.
                self._shared_until = now + SHARED_SECONDS
            if seconds is None and now >= self._blocked_until and now < window.ends_at < math.inf:
                # Only successes have headers on this server: the end that they showed still holds.
                seconds = window.ends_at - now
            self._back_off(now, sent_at, seconds, jitter)
        else:
            # Refused in an earlier window, which says nothing about this one.
            return
        window.is_known, window.remaining, window.reset = True, 0, None
        window.ends_at = self._blocked_until

    def record_lost(self, now: float, ticket: Ticket) -> None:
        """Record the end of a request without a response, which the server may have counted."""
        self._record_end(now, ticket)
        self._uncounted.append(now)

    def record_unsent(self, now: float, ticket: Ticket) -> None:
        """Record that a request was not sent, so that the server did not count it."""
        self._release_ticket(now, ticket)

    def _back_off(self, now: float, sent_at: float, seconds: float | None, jitter: float) -> None:
        """Let all requests wait after a 429 whose reset is `seconds` away; None if it has none."""
        # Requests that were under way together are refused together, which is one refusal.
        is_echo = self._refusals > 0 and sent_at < self._refused_at
        self._refused_at = now
        if is_echo and seconds is None:
            return
        self._refusals += not is_echo
        if seconds is None:
            wait = max(_backoff_seconds(self._refusals - 1), self._freed_at(now) - now)
        else:
            wait = max(0.0, seconds) + RESOLUTION_SECONDS
            # Refused again after the wait that the server requested: it is too short.
            wait = wait if self._refusals < 2 else max(wait, _backoff_seconds(self._refusals - 2))
        self._blocked_until = max(self._blocked_until, now + wait + jitter * JITTER_SECONDS_MAX)

    def _record_end(self, now: float, ticket: Ticket) -> None:
        """Record the end of a request that the server may have counted."""
        self._own.append(now)
        if self._own[0] < now - 2 * OWN_SECONDS:
            # Many are removed together, so that it costs little on average.
            del self._own[: bisect_right(self._own, now - OWN_SECONDS)]
        self._release_ticket(now, ticket)

    def _release_ticket(self, now: float, ticket: Ticket) -> None:
        """Subtract the request from those in flight."""
        assert ticket.sent_at <= now, f"sent at {ticket.sent_at}, after {now}"
        assert self._in_flight > 0, "more requests ended than were sent"
        self._in_flight -= 1
        if ticket.sent_at >= self._window.opened_at:
            self._window.is_probe_out = False

    def _own_count(self, now: float) -> int:
        """Return the number of our requests that ended in the minute before `now`."""
        return len(self._own) - bisect_right(self._own, now - MINUTE_SECONDS)

    def _freed_at(self, now: float, count: int = 1) -> float:
        """Return the time when `count` own requests are older than a minute; `-inf` without any."""
        ours = self._own_count(now)
        if count < 1 or not ours:
            return -math.inf
        return self._own[len(self._own) - ours + min(count, ours) - 1] + MINUTE_SECONDS

    def _detect_other_clients(self, now: float, sent_at: float, remaining: int) -> None:
        """Assume another client for some minutes if the server counted more requests than ours."""
        self._first_response_at = min(self._first_response_at, now)
        # A process before this one may have sent requests of the first minute.
        if self.limit is None or sent_at < self._first_response_at + WINDOW_SECONDS:
            return
        # Whatever of ours was under way when the figure was made may be included in it.
        if self.limit - remaining > self._own_count(sent_at) + self._in_flight:
            self._shared_until = now + SHARED_SECONDS

    def _left_by_headers(self) -> int | None:
        """Return the lowest `Remaining`, less requests that it may not include; None if unknown."""
        if self._window.remaining is None:
            return None
        uncounted = len(self._uncounted) + self._in_flight + self._window.is_late
        return self._window.remaining - uncounted

    def _left_by_own_count(self, now: float) -> int | None:
        """Return the limit less our requests of the last minute; None if others may use the key."""
        is_unsure = now < self._first_response_at + WINDOW_SECONDS or now < self._shared_until
        if self.limit is None or is_unsure:
            return None
        return self.limit - self._own_count(now) - self._in_flight

    def _own_room_at(self, now: float) -> float:
        """Return the time when our own count permits one more request; `inf` if unknown."""
        if self.limit is None:
            return math.inf
        left = self.limit - self._own_count(now) - self._in_flight
        return self._freed_at(now, 1 + self._reserve - left)

    def _required_wait(self, now: float) -> Wait | None:
        """Return the wait before the next request; None if it may be sent now."""
        if now < self._blocked_until:
            return _create_wait(self._blocked_until - now, "backoff")
        by_count = self._left_by_own_count(now)
        left = max((n for n in (self._left_by_headers(), by_count) if n is not None), default=0)
        if left - self._reserve >= 1:
            return None
        if not self._window.is_known:
            return self._wait_for_probe(now)
        room_at = math.inf if by_count is None else self._own_room_at(now)
        return _create_wait(min(self._window.ends_at, room_at) - now, "window")

    def _wait_for_probe(self, now: float) -> Wait | None:
        """Return the wait before a probe, a request without known figures; None: send it now."""
        if self._window.responses_without_figures < PROBES_WITHOUT_FIGURES_MAX:
            if self._window.is_probe_out:
                return Wait(None, "probe")
            if (self._left_by_headers() or 0) >= 0:
                return None
            # Requests of the window before may have used what the reset added.
            if self._in_flight > 0:
                return Wait(None, "probe")
        room_at = self._own_room_at(now)
        return _create_wait(room_at - now, "window") if now < room_at < math.inf else None


def _backoff_seconds(earlier_refusals: int) -> float:
    """Return the wait in seconds after this number of earlier 429s without a reset."""
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(earlier_refusals, 2), WINDOW_SECONDS)


def _create_wait(seconds: float, reason: str) -> Wait:
    """Return the wait in seconds, limited to the allowed range."""
    return Wait(min(max(seconds, WAIT_SECONDS_MIN), RESET_SECONDS_MAX), reason)


def seconds_until(
    moment: float | None, round_trip_seconds: float, server_now: float | None
) -> float | None:
    """Return the seconds from a response to a time in its headers; None if that is not credible.

    Args:
        moment: A Unix time, or seconds from now.
        round_trip_seconds: How much older than its `Date` the response may be.
        server_now: `Date` as a Unix time; None if the response has none.
    """
    if moment is None or not math.isfinite(moment):
        return None
    origin = 0.0 if moment < TIMESTAMP_MIN else server_now
    if origin is None:
        return None
    # A reset that lies further back than the round trip is stale.
    seconds = moment - origin
    return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


def _end_of_window(
    now: float, sent_at: float, rate: RateHeaders, server_now: float | None
) -> tuple[float, float | None]:
    """Return the latest end of the window by a response, and the `Reset` that identifies it."""
    seconds = seconds_until(rate.reset, now - sent_at, server_now)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_name, seconds = is_timestamp and server_now is None, WINDOW_SECONDS
    else:
        is_name = is_timestamp and seconds <= RESET_SECONDS_MAX
    ends_at = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    return ends_at, rate.reset if is_name else None
