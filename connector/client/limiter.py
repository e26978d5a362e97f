"""Rate limiter: when the next request may leave within the minute's limit.

The server counts the requests of all clients of the key in windows of a minute, and shows the
count in three headers (API 8.3). The requests that may leave now are the lowest `Remaining` of the
current window, less the requests that it may not include: those in flight, and requests that ended
without a `Remaining`. So a sole client sees no 429.

A window is over at `Reset` less `Date`, both of the server's clock, and at most a minute after the
response. Then one request leaves alone, the probe; its response shows what the new window holds.

A 429 stops all requests until its reset or `Retry-After`. Only if that is too far away to be the
minute's, the API has reported that the month is used up (API 8.2). A 429 without a time never means
the month: all requests wait, longer each time.

Pure: the caller's monotonic clock, in seconds, and random number are arguments.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

WINDOW_SECONDS = 60.0  # Of the limit "per minute" (API 8.2).
RESOLUTION_SECONDS = 1.0  # `Reset` and `Date` may be cut to whole seconds.
RESET_SECONDS_MAX = 120.0  # A later reset is not the minute's. No wait is longer either.
TIMESTAMP_MIN = 1e9  # A smaller `Reset` is, as some servers send it, in seconds from now.
BACKOFF_SECONDS_MIN = 15.0  # First wait after a 429 without a reset. It doubles, up to a window.
JITTER_SECONDS_MAX = 3.0  # So that several processes do not return together after a 429.
WAIT_SECONDS_MIN = 0.001  # So that a caller's clock moves on.
UNCOUNTED_MAX = 10_000  # Only a server that sends no figures has more ends without figures.


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """Rate limit headers of one answer (API 8.3); each is None if missing or invalid.

    `reset` and `retry_after` are as sent: a Unix timestamp, or seconds from now. `date` is the
    server's time as a Unix timestamp.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    retry_after: float | None = None
    date: float | None = None

    def seconds_until(self, moment: float | None, round_trip_seconds: float) -> float | None:
        """Return the seconds to `reset` or `retry_after`; None if unknown or not credible."""
        if moment is None or not math.isfinite(moment):
            return None
        origin = 0.0 if moment < TIMESTAMP_MIN else self.date
        if origin is None:
            return None
        # A reset that lies further back than the round trip is stale.
        seconds = moment - origin
        return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to send one request now. The caller reports its end to the rate limiter."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait `seconds`, or until a request has ended; None: only until a request has ended."""

    seconds: float | None


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
    because a reset only increases it; it is infinite if responses have no figures. `is_late` is
    True if the figures do not include the request that they answer. `reset` identifies the server's
    window, None if it cannot.
    """

    opened_at: float
    remaining: float = 0
    is_known: bool = False
    is_late: bool = False
    is_probe_out: bool = False
    ends_at: float = math.inf
    reset: float | None = None


class RateLimiter:
    """Rate limiter of one API key, shared by all requests of a process.

    The end of each ticket is reported exactly once: to `record_response`, `record_refusal`,
    `record_lost` (also a cancelled request) or `record_unsent`.
    """

    def __init__(self) -> None:
        self.limit: int | None = None  # Per minute, by the last response that showed it.
        self._window = _Window(opened_at=-math.inf)
        self._in_flight = 0
        # Ends of requests that the lowest figure may not include.
        self._uncounted: deque[float] = deque(maxlen=UNCOUNTED_MAX)
        # Since a 429: when requests may leave again, and how often it came.
        self._blocked_until = self._refused_at = -math.inf
        self._refusals = 0
        self._exhausted: QuotaExhausted | None = None

    def acquire(self, now: float) -> Ticket | Wait | QuotaExhausted:
        """Return a ticket if a request may leave now, which counts it as in flight."""
        if now < self._blocked_until:
            return self._exhausted or _create_wait(self._blocked_until - now)
        self._exhausted = None
        if now >= self._window.ends_at:
            self._window = _Window(now, self._window.remaining)
        window, left = self._window, self._left()
        if left < 1:
            if window.is_known:
                return _create_wait(window.ends_at - now)
            # Requests of the window before may have used what the reset added.
            if window.is_probe_out or left < 0 < self._in_flight:
                return Wait(None)
        self._in_flight += 1
        window.is_probe_out |= not window.is_known
        return Ticket(now)

    def record_response(self, now: float, ticket: Ticket, rate: RateHeaders) -> None:
        """Record an answer other than a 429."""
        sent_at, window = ticket.sent_at, self._window
        self.record_unsent(now, ticket)
        if sent_at >= self._refused_at:
            self._refusals = 0
        if sent_at < window.opened_at:
            # Its figures are of the window before, but this one may have counted the request.
            self._uncounted.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self.limit = rate.limit
        if rate.remaining is None:
            if not window.is_known:
                window.remaining = math.inf
            self._uncounted.append(now)
            return
        while self._uncounted and self._uncounted[0] <= sent_at:
            self._uncounted.popleft()
        remaining = max(0, rate.remaining)
        ends_at, reset = _end_of_window(now, sent_at, rate)
        if not window.is_known:
            window.is_known, window.is_late = True, remaining == self.limit
        elif remaining > window.remaining:
            return
        else:
            # Another reset is of another window of the server, which has less left.
            is_same = reset is not None and reset == window.reset
            ends_at = (min if is_same else max)(window.ends_at, ends_at)
        window.remaining, window.ends_at, window.reset = remaining, ends_at, reset

    def record_refusal(self, now: float, ticket: Ticket, rate: RateHeaders, jitter: float) -> None:
        """Record a 429; `jitter` is a random number in [0, 1)."""
        sent_at, window = ticket.sent_at, self._window
        self.record_unsent(now, ticket)
        known = (rate.seconds_until(each, now - sent_at) for each in (rate.reset, rate.retry_after))
        # No request may leave before either of them, so the later one counts.
        seconds = max((each for each in known if each is not None), default=None)
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            self._exhausted = QuotaExhausted(None if rate.date is None else rate.date + seconds)
            self._blocked_until = now + seconds
        elif sent_at < window.opened_at:
            return  # Refused in an earlier window, which says nothing about this one.
        else:
            self._back_off(now, sent_at, seconds, jitter)
        window.is_known, window.remaining, window.reset = True, 0, None
        window.ends_at = self._blocked_until

    def record_lost(self, now: float, ticket: Ticket) -> None:
        """Record the end of a request without a response, which the server may have counted."""
        self.record_unsent(now, ticket)
        self._uncounted.append(now)

    def record_unsent(self, now: float, ticket: Ticket) -> None:
        """Record that a request was not sent, so that the server did not count it."""
        assert self._in_flight > 0, "more requests ended than were sent"
        self._in_flight -= 1
        if ticket.sent_at >= self._window.opened_at:
            self._window.is_probe_out = False

    def _back_off(self, now: float, sent_at: float, seconds: float | None, jitter: float) -> None:
        """Let all requests wait after a 429 whose reset is `seconds` away; None if it has none."""
        # Requests that were under way together are refused together, which is one refusal.
        is_echo = sent_at < self._refused_at
        self._refused_at = now
        self._refusals += not is_echo
        # The first wait that the server requests is trusted. Refused after it, it is too short.
        doublings = self._refusals - (1 if seconds is None else 2)
        wait = 0.0
        if doublings >= 0 and not (is_echo and seconds is None):
            wait = min(BACKOFF_SECONDS_MIN * 2.0 ** min(doublings, 2), WINDOW_SECONDS)
        if seconds is not None:
            wait = max(wait, seconds + RESOLUTION_SECONDS)
        self._blocked_until = max(self._blocked_until, now + wait + jitter * JITTER_SECONDS_MAX)

    def _left(self) -> float:
        """Return the lowest `Remaining`, less requests that it may not include."""
        uncounted = len(self._uncounted) + self._in_flight + self._window.is_late
        return self._window.remaining - uncounted


def _create_wait(seconds: float) -> Wait:
    return Wait(min(max(seconds, WAIT_SECONDS_MIN), RESET_SECONDS_MAX))


def _end_of_window(now: float, sent_at: float, rate: RateHeaders) -> tuple[float, float | None]:
    """Return the latest end of the window by a response, and the `Reset` that identifies it."""
    seconds = rate.seconds_until(rate.reset, now - sent_at)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_name, seconds = is_timestamp and rate.date is None, WINDOW_SECONDS
    else:
        is_name = is_timestamp and seconds <= RESET_SECONDS_MAX
    ends_at = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    return ends_at, rate.reset if is_name else None
