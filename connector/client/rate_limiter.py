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

A 429 stops all requests until its reset or `Retry-After`. If that is too far away to be the
minute's, or if only 429s came for longer than a window, then the month is spent (API 8.2).

Pure: the caller's monotonic clock and random number are arguments. `ledger/quota.py` counts the
month's requests.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
"""Length of a window of the limit "per minute" (API 8.2)."""

RESOLUTION_SECONDS = 1.0
"""`Reset` may be cut to whole seconds. `Date` is too, but that only lengthens a wait."""

SLACK_SECONDS = 0.05
"""How much longer the server's minute may be than ours."""

RESET_SECONDS_MAX = 120.0
"""A reset further away than this is not the minute's. No wait is longer either."""

TIMESTAMP_MIN = 1e9
"""A smaller `Reset` is no Unix timestamp but, as some servers send it, seconds from now."""

SHARED_SECONDS = 300.0
"""How long another client is expected again after its last sign."""

BACKOFF_SECONDS_MIN = 15.0
"""First wait after a 429 without a reset. It doubles, up to a window."""

JITTER_SECONDS_MAX = 3.0
"""Random part of a wait after a 429, so that several processes do not return together."""

RAMP_MAX = 32
"""Requests in flight from which a past 429 no longer restricts them."""

PROBES_WITHOUT_FIGURES_MAX = 3
"""Responses without figures in a window, after which requests leave without a limit."""

WAIT_SECONDS_MIN = 0.001
"""Shortest wait, so that a caller's clock moves on."""

UNCOUNTED_MAX = 10_000
"""Ends without figures that are remembered; only a server that sends none has more."""

OWN_SECONDS = 180.0
"""How long our own requests are remembered: a minute, and as long as a response may take."""


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
    """Permission to send one request. The caller reports its end to the rate limiter."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Go:
    """The request may leave now; it is counted as in flight."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait `seconds`, or until a request has ended; None: only until a request has ended.

    `reason` is "window" (nothing is left), "probe" (a request is under way to learn what is left),
    "backoff" (after a 429) or "ramp" (few at a time after a 429).
    """

    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class QuotaExhausted:
    """The monthly quota is used up until `resets_at`, a Unix time; None if that is unknown.

    After that time, `acquire` permits one request again; without it, never.
    """

    resets_at: float | None


@dataclass(slots=True)
class Window:
    """Window that began at `opened_at`, and the figures that responses reported for it.

    Until a response reported a figure (`is_known`), `remaining` is the rest of the window before,
    because a reset only increases it. `is_late` is True if the server's figures do not include the
    request that they answer.
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
        """Apply the figures of a response; `reset` identifies the server's window, None if it
        cannot.
        """
        remaining = max(0, remaining)
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


class Backoff:
    """Wait of all requests after a 429 (API 7.2, 8.4).

    No request is sent before `ends_at`. Then one request may be in flight, and one more with each
    response. If only 429s come for a whole window, the monthly quota is used up (API 8.2).
    """

    def __init__(self) -> None:
        self.ends_at = -math.inf
        self.in_flight_max = RAMP_MAX
        self.is_month_spent = False
        self.month_resets_at: float | None = None
        self._first_at: float | None = None
        self._last_at = -math.inf
        self._refusals = 0

    def is_full(self, in_flight: int) -> bool:
        """Return True if, after a recent 429, this number of requests in flight is the maximum."""
        return self.in_flight_max < RAMP_MAX and in_flight >= self.in_flight_max

    def stop_for_month(self, ends_at: float, month_resets_at: float | None) -> None:
        """Send no request until `ends_at`, because the monthly quota is used up.

        `month_resets_at` is the time of the reset, if the API returned it.
        """
        self.ends_at, self.in_flight_max = ends_at, 1
        self.is_month_spent, self.month_resets_at = True, month_resets_at

    def clear_month(self) -> None:
        """Permit requests again after the quota was used up."""
        self.is_month_spent, self.month_resets_at = False, None
        self._first_at, self._refusals = None, 0

    def record_refusal(
        self, now: float, sent_at: float, seconds: float | None, freed_seconds: float, jitter: float
    ) -> None:
        """Record a 429 whose reset is `seconds` away; None if it has none.

        In `freed_seconds` the oldest of our requests will be more than a minute old.
        """
        self.in_flight_max = 1
        # Requests that were under way together are refused together, which is one refusal.
        is_echo = self._first_at is not None and sent_at < self._last_at
        self._last_at = now
        if is_echo and seconds is None:
            return
        if self._first_at is None:
            self._first_at = now
        elif sent_at - self._first_at >= WINDOW_SECONDS:
            self.stop_for_month(math.inf, None)
            return
        self._refusals += not is_echo
        if seconds is None:
            wait = max(_backoff_seconds(self._refusals - 1), freed_seconds)
        else:
            wait = max(0.0, seconds) + RESOLUTION_SECONDS
            # Refused again after the wait that the server requested: it is too short.
            wait = wait if self._refusals < 2 else max(wait, _backoff_seconds(self._refusals - 2))
        self.ends_at = max(self.ends_at, now + wait + jitter * JITTER_SECONDS_MAX)

    def record_success(self, sent_at: float) -> None:
        """Record an answer other than 429 to a request that was sent at `sent_at`."""
        if sent_at >= self._last_at and not self.is_month_spent:
            self._first_at, self._refusals = None, 0
            self.in_flight_max = min(self.in_flight_max + 1, RAMP_MAX)


def _backoff_seconds(earlier_refusals: int) -> float:
    """Return the wait in seconds after this number of earlier 429s without a reset."""
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(earlier_refusals, 2), WINDOW_SECONDS)


class RateLimiter:
    """Rate limiter of one API key, shared by all requests of a process.

    The end of each ticket is reported exactly once: to `record_response`, `record_refusal`,
    `record_lost` (also a cancelled request) or `record_unsent`. Times are seconds of a monotonic
    clock. `reserve` requests of each window are left for other users of the key, except by the
    probe.
    """

    def __init__(self, *, reserve: int = 0) -> None:
        assert reserve >= 0, reserve
        self._reserve = reserve
        self._window = Window(opened_at=-math.inf)
        self._backoff = Backoff()
        self._limit: int | None = None
        self._in_flight = 0
        # Ends of requests that the lowest figure may not include.
        self._uncounted: deque[float] = deque(maxlen=UNCOUNTED_MAX)
        # Ends of our requests, in order: each was counted before that, if at all.
        self._own: list[float] = []
        self._first_response_at = math.inf
        self._shared_until = -math.inf

    @property
    def limit(self) -> int | None:
        """Requests per minute by the last response that showed it; None before that."""
        return self._limit

    @property
    def remaining(self) -> int | None:
        """Lowest `Remaining` of the current window; None before the first response."""
        return self._window.remaining

    def resets_in(self, now: float) -> float | None:
        """Return the seconds until the current window is certainly over; None if unknown."""
        ends_at = self._window.ends_at
        return max(0.0, ends_at - now) if math.isfinite(ends_at) else None

    def acquire(self, now: float) -> Go | Wait | QuotaExhausted:
        """Permit one more request now, or return the wait. `Go` counts it as in flight."""
        if self._backoff.is_month_spent:
            if now < self._backoff.ends_at:
                return QuotaExhausted(self._backoff.month_resets_at)
            self._backoff.clear_month()
        if now >= self._window.ends_at:
            self._window = Window(now, self._window.remaining)
        if (wait := self._required_wait(now)) is not None:
            return wait
        self._in_flight += 1
        self._window.is_probe_out |= not self._window.is_known
        return Go(Ticket(now))

    def record_response(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None
    ) -> None:
        """Record an answer other than a 429; `server_now` is its `Date` as a Unix time."""
        sent_at = self._record_end(now, ticket)
        self._backoff.record_success(sent_at)
        window = self._window
        if sent_at < window.opened_at:
            # Its figures are of the window before, but this one may have counted the request.
            self._uncounted.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self._limit = rate.limit
        if rate.remaining is None:
            window.responses_without_figures += not window.is_known
            self._uncounted.append(now)
            return
        while self._uncounted and self._uncounted[0] <= sent_at:
            self._uncounted.popleft()
        window.update(rate.remaining, self._limit, *_end_of_window(now, sent_at, rate, server_now))
        self._detect_other_clients(now, sent_at, rate.remaining)

    def record_refusal(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None, jitter: float
    ) -> None:
        """Record a 429; `jitter` is a random number in [0, 1)."""
        assert 0 <= jitter < 1, jitter
        sent_at = self._release_ticket(now, ticket)
        window, backoff = self._window, self._backoff
        ends = [
            (seconds, moment)
            for moment in (rate.reset, rate.retry_after)
            if (seconds := seconds_until(moment, now - sent_at, server_now)) is not None
        ]
        # No request may leave before either of them, so the later one counts.
        seconds, moment = max(ends, default=(None, None))
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            is_timestamp = moment is not None and moment >= TIMESTAMP_MIN
            resets_at = moment if is_timestamp else server_now and server_now + seconds
            backoff.stop_for_month(now + seconds, resets_at)
        elif sent_at >= window.opened_at:
            if self._limit is not None:
                # Ours alone stay below the limit, so another client used the rest.
                self._shared_until = now + SHARED_SECONDS
            if seconds is None and now >= backoff.ends_at and now < window.ends_at < math.inf:
                # Only successes have headers on this server: the end that they showed still holds.
                seconds = window.ends_at - now
            backoff.record_refusal(now, sent_at, seconds, self._freed_at(now) - now, jitter)
        else:
            # Refused in an earlier window, which says nothing about this one.
            return
        window.is_known, window.remaining, window.reset = True, 0, None
        window.ends_at = backoff.ends_at

    def record_lost(self, now: float, ticket: Ticket) -> None:
        """Record the end of a request without a response, which the server may have counted."""
        self._record_end(now, ticket)
        self._uncounted.append(now)

    def record_unsent(self, now: float, ticket: Ticket) -> None:
        """Record that a request was not sent, so that the server did not count it."""
        self._release_ticket(now, ticket)

    def _record_end(self, now: float, ticket: Ticket) -> float:
        """Record the end of a request that the server may have counted; return when it was sent."""
        self._own.append(now)
        if self._own[0] < now - 2 * OWN_SECONDS:
            # Many are removed together, so that it costs little on average.
            del self._own[: bisect_right(self._own, now - OWN_SECONDS)]
        return self._release_ticket(now, ticket)

    def _release_ticket(self, now: float, ticket: Ticket) -> float:
        """Subtract the request from those in flight, and return the time when it was sent."""
        sent_at = ticket.sent_at
        assert sent_at <= now, f"sent at {sent_at}, after {now}"
        assert self._in_flight > 0, "more requests ended than were sent"
        self._in_flight -= 1
        if sent_at >= self._window.opened_at:
            self._window.is_probe_out = False
        return sent_at

    def _first_index_of_minute(self, now: float) -> int:
        """Return the index in `_own` of the first request that ended in the minute before `now`."""
        return bisect_right(self._own, now - WINDOW_SECONDS - SLACK_SECONDS)

    def _freed_at(self, now: float, count: int = 1) -> float:
        """Return the time when `count` own requests are older than a minute; `-inf` without any."""
        first = self._first_index_of_minute(now)
        if count < 1 or first == len(self._own):
            return -math.inf
        last = min(first + count, len(self._own)) - 1
        return self._own[last] + WINDOW_SECONDS + SLACK_SECONDS

    def _detect_other_clients(self, now: float, sent_at: float, remaining: int) -> None:
        """Assume another client for some minutes if the server counted more requests than ours."""
        self._first_response_at = min(self._first_response_at, now)
        # A process before this one may have sent requests of the first minute.
        if self._limit is None or sent_at < self._first_response_at + WINDOW_SECONDS:
            return
        # Whatever of ours was under way when the figure was made may be included in it.
        ours = len(self._own) - self._first_index_of_minute(sent_at) + self._in_flight
        if self._limit - remaining > ours:
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
        return None if self._limit is None or is_unsure else self._own_room(now, self._limit)

    def _own_room(self, now: float, limit: int) -> int:
        """Return the limit less our requests of the last minute and those in flight."""
        ours = len(self._own) - self._first_index_of_minute(now)
        return limit - ours - self._in_flight

    def _own_room_at(self, now: float) -> float:
        """Return the time when our own count permits one more request; `inf` if unknown."""
        if self._limit is None:
            return math.inf
        return self._freed_at(now, 1 + self._reserve - self._own_room(now, self._limit))

    def _required_wait(self, now: float) -> Wait | None:
        """Return the wait before the next request; None if it may be sent now."""
        if now < self._backoff.ends_at:
            return _create_wait(self._backoff.ends_at - now, "backoff")
        free = [
            each
            for each in (self._left_by_headers(), self._left_by_own_count(now))
            if each is not None
        ]
        if max(free, default=0) - self._reserve < 1:
            wait = self._wait_for_end(now) if self._window.is_known else self._wait_for_probe(now)
            if wait is not None:
                return wait
        return Wait(None, "ramp") if self._backoff.is_full(self._in_flight) else None

    def _wait_for_end(self, now: float) -> Wait:
        """Return the wait until the window ends, or until our own count permits a request."""
        room_at = math.inf if self._left_by_own_count(now) is None else self._own_room_at(now)
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


def _create_wait(seconds: float, reason: str) -> Wait:
    """Return the wait in seconds, limited to the allowed range."""
    return Wait(min(max(seconds, WAIT_SECONDS_MIN), RESET_SECONDS_MAX), reason)


def seconds_until(
    moment: float | None, round_trip_seconds: float, server_now: float | None
) -> float | None:
    """Return the seconds from a response to a time in its headers; None if that is not credible.

    `moment` is a Unix time or seconds from now; a response may be older than its `Date` by its
    round trip.
    """
    if moment is None or not math.isfinite(moment):
        return None
    origin = 0.0 if moment < TIMESTAMP_MIN else server_now
    if origin is None:
        return None
    seconds = moment - origin
    # The figures of a slow response may be older than its `Date`, by the round trip at most. A
    # reset that lies further back is stale.
    return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


def _end_of_window(
    now: float, sent_at: float, rate: RateHeaders, server_now: float | None
) -> tuple[float, float | None]:
    """Return the latest end of the window by a response, and its `Reset` if it identifies the
    window.
    """
    seconds = seconds_until(rate.reset, now - sent_at, server_now)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_name, seconds = is_timestamp and server_now is None, WINDOW_SECONDS
    else:
        is_name = is_timestamp and seconds <= RESET_SECONDS_MAX
    ends_at = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    return ends_at, rate.reset if is_name else None
