"""Pace: when the next request may leave, so that the minute's limit is used whole and not passed.

Intuition. The server counts our requests in windows of a minute and shows the count in three
headers (API 8.3). We never see the count itself, only answers that left some time ago. But an
answer's `Remaining` has counted every request that was answered before its own was sent, so that

    the lowest Remaining told  -  requests still in flight  -  requests that ended untold

is never more than what is really left, whatever the order in which answers arrive. A request
"ended untold" if no answer came, or none with figures of this window: it may have been counted
behind the back of the lowest figure, until an answer to a later request settles it. While others
use the key as well, their share of the fall is measured, and so many requests are left to them as
they may send while one of ours is on its way.

A window is over at `Reset - Date`, a difference of two values of the server's clock, laid on our
monotonic one: no clock is compared with another. Whatever the answer says, it is over a minute
after any answer that it counted. What was left then still is, for a reset only adds. If nothing
was, one request leaves alone: the probe. The first answer tells what the new window holds, so that
nothing is assumed about its kind: a fixed window shows a full count after its reset, a sliding one
shows what has left it. (Rejected: never more than `Limit` sends in any minute of ours. It suits
both kinds too, but wastes up to a minute at the start and is blind to others.)

A 429 closes one gate for everybody (`gate.py`). A reset too far away to be the minute's, or 429s
and nothing else for longer than a window, mean that the month is spent (API 8.2).

Pure: `now` is in seconds of the caller's monotonic clock, chance is an argument. This module sends
nothing, sleeps nowhere, and does not count the month: `quota` does.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from connector.engine.gate import RESOLUTION_SECONDS, WINDOW_SECONDS, Gate

RESET_SECONDS_MAX = 120.0
"""A reset further away than this is not the minute's. No wait is longer either."""

TIMESTAMP_MIN = 1e9
"""A smaller `Reset` is no Unix timestamp but, as some servers send it, seconds from now."""

UNTOLD_PROBES_MAX = 3
"""Answers without figures that a window may open with before we go on unpaced."""

WAIT_SECONDS_MIN = 0.001
"""No wait is shorter, so that a caller's clock moves on."""

UNTOLD_KEPT_MAX = 10_000
"""Ends kept that told nothing. Only a server without figures can have more, and needs none."""

Mode = Literal["burst", "spread"]


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """The figures of one answer (API 8.3); each is None where missing or unreadable.

    `reset` is as sent: a Unix timestamp, or on some servers seconds from now.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request that was let go, to be given back once it has ended."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Go:
    """The request may leave now; it has been counted as sent and in flight."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after `seconds`, or as soon as another request has ended; None: only then.

    `reason` is "window" (spent until its reset), "backoff" (after a 429), "probe" (one request is
    out to learn what the window holds), "in_flight" (the rest is taken by requests on their way),
    "ramp" (few at a time after a 429) or "spread" (evenly over the window).
    """

    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Spent:
    """The month is exhausted: stop. `resets_at` is the server's Unix time, None where it told none.

    Once that time has passed, `ask` lets a probe through again; without it, never.
    """

    resets_at: float | None


class Pace:
    """The pace of one API key, shared by all of a process's requests.

    Each ticket is given back exactly once: to `heard`, `refused`, `lost` or `unsent`; a cancelled
    request is `lost`. `mode` "burst" sends as soon as it may and "spread" evenly; `reserve`
    requests of each window are left for people, except the probe.
    """

    def __init__(self, *, mode: Mode = "burst", reserve: int = 0) -> None:
        assert mode in ("burst", "spread"), mode
        assert reserve >= 0, reserve
        self._mode, self._reserve = mode, reserve
        self._window = _Window(opened_at=-math.inf)
        self._gate = Gate()
        self._others = _Others()
        self._limit: int | None = None
        self._in_flight = 0
        self._untold: deque[float] = deque(maxlen=UNTOLD_KEPT_MAX)
        self._next_at = -math.inf

    @property
    def limit(self) -> int | None:
        """Requests a minute as last told; None before that."""
        return self._limit

    @property
    def remaining(self) -> int | None:
        """The lowest figure told in the current window; None while nothing is."""
        return self._window.remaining

    def resets_in(self, now: float) -> float | None:
        """Seconds until the current window is surely over; None while that is not known."""
        ends_at = self._window.ends_at
        return max(0.0, ends_at - now) if math.isfinite(ends_at) else None

    def ask(self, now: float) -> Go | Wait | Spent:
        """Whether one more request may leave now. `Go` counts it as sent."""
        if self._gate.is_month_spent:
            if now < self._gate.opens_at:
                return Spent(self._gate.month_resets_at)
            self._gate.reopen()
        if now >= self._window.ends_at:
            self._open(now)
        if (wait := self._hindrance(now)) is not None:
            return wait
        if self._mode == "spread":
            self._next_at = now + self._spacing_seconds(now)
        self._in_flight += 1
        self._window.is_probe_out |= not self._window.is_told
        self._others.sent += 1
        return Go(Ticket(now))

    def heard(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None
    ) -> None:
        """An answer other than a 429 arrived; `server_now` is its `Date` as a Unix time."""
        sent_at = self._end(now, ticket)
        self._gate.admit(sent_at)
        window = self._window
        if sent_at < window.opened_at:
            # Its figures are of another window, yet it may have been counted in this one.
            self._untold.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self._limit = rate.limit
        if rate.remaining is None:
            window.untold += not window.is_told
            self._untold.append(now)
            return
        while self._untold and self._untold[0] <= sent_at:
            self._untold.popleft()
        is_first = not window.is_told
        window.learn(rate.remaining, _end_of_window(now, sent_at, rate, server_now))
        window.ends_at = max(window.ends_at, self._gate.opens_at)
        assert window.remaining is not None
        if is_first:
            self._others.begin(now, window.remaining, self._in_flight + len(self._untold))
        self._others.observe(now, window.remaining)

    def refused(
        self,
        now: float,
        ticket: Ticket,
        rate: RateHeaders,
        server_now: float | None,
        jitter: float,
    ) -> None:
        """A 429 arrived; `jitter` in [0, 1) is the caller's draw."""
        assert 0 <= jitter < 1, jitter
        sent_at = self._end(now, ticket)
        window, gate = self._window, self._gate
        seconds = _seconds_to_reset(now - sent_at, rate, server_now)
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
            told_at = rate.reset if is_timestamp else server_now and server_now + seconds
            gate.stop(now + seconds, told_at)
        elif sent_at >= window.opened_at:
            if seconds is None and now >= gate.opens_at and now < window.ends_at < math.inf:
                # Headers on successes only: what they told of the window's end still holds.
                seconds = window.ends_at - now
            gate.close(now, sent_at, seconds, jitter)
        else:
            # Refused in an earlier window, which says nothing about this one.
            return
        window.is_told, window.remaining, window.reset = True, 0, None
        window.ends_at = gate.opens_at

    def lost(self, now: float, ticket: Ticket) -> None:
        """No answer came; the request may still have been counted."""
        self._end(now, ticket)
        self._untold.append(now)

    def unsent(self, now: float, ticket: Ticket) -> None:
        """The request never left, so nobody counted it."""
        self._end(now, ticket)
        self._others.sent -= 1

    def _end(self, now: float, ticket: Ticket) -> float:
        sent_at = ticket.sent_at
        assert sent_at <= now, f"sent at {sent_at}, after {now}"
        assert self._in_flight > 0, "more requests ended than were sent"
        self._in_flight -= 1
        self._others.round_trip_seconds = max(self._others.round_trip_seconds, now - sent_at)
        if sent_at >= self._window.opened_at:
            self._window.is_probe_out = False
        return sent_at

    def _open(self, now: float) -> None:
        self._window = _Window(opened_at=now, remaining=self._window.remaining)
        self._others.fade()

    def _left(self) -> int | None:
        """What is left for us, before requests in flight; None where nothing is told."""
        if self._window.remaining is None:
            return None
        guard = min(self._others.guard(), (self._limit or 0) // 4)
        return self._window.remaining - len(self._untold) - self._reserve - guard

    def _spacing_seconds(self, now: float) -> float:
        """What lies between two requests that are spread evenly."""
        left = self._left()
        if self._window.is_told and left is not None:
            return (self._window.ends_at - now) / max(1, left - self._in_flight)
        return WINDOW_SECONDS / self._limit if self._limit is not None else 0.0

    def _hindrance(self, now: float) -> Wait | None:
        """Why no request may leave at the moment, if one may not."""
        window, left = self._window, self._left()
        is_free = left is not None and left > self._in_flight
        if not window.is_told and not is_free:
            # Nothing is known to be left: one may look, until looking has proved to be in vain.
            if window.untold < UNTOLD_PROBES_MAX:
                return Wait(None, "probe") if window.is_probe_out else None
        elif left is not None and left < 1:
            reason = "backoff" if now < self._gate.opens_at else "window"
            return _wait(window.ends_at - now, reason)
        elif not is_free:
            return _wait(window.ends_at - now, "in_flight")
        if self._mode == "spread" and now < self._next_at:
            return _wait(self._next_at - now, "spread")
        if self._gate.is_full(self._in_flight):
            return Wait(None, "ramp")
        return None


def _wait(seconds: float, reason: str) -> Wait:
    return Wait(min(max(seconds, WAIT_SECONDS_MIN), RESET_SECONDS_MAX), reason)


@dataclass(frozen=True, slots=True)
class _WindowEnd:
    """The latest moment at which a told window is over, and the `Reset` that names it.

    `reset` is None where it names no window: missing, unbelievable, or seconds that run down.
    """

    at: float
    reset: float | None


@dataclass(slots=True)
class _Window:
    """What is known of the time since `opened_at`.

    Until it is told, `remaining` is what was left of the window before: not more than there is.
    """

    opened_at: float
    remaining: int | None = None
    is_told: bool = False
    ends_at: float = math.inf
    reset: float | None = None
    untold: int = 0
    is_probe_out: bool = False

    def learn(self, remaining: int, end: _WindowEnd) -> None:
        """Take in the figures of an answer to a request of this window; `remaining` only falls."""
        remaining = max(0, remaining)
        if self.remaining is None or not self.is_told:
            self.is_told = True
            self.remaining, self.ends_at, self.reset = remaining, end.at, end.reset
        elif end.reset is not None and end.reset == self.reset:
            # Every bound on the same moment holds, so the lowest does.
            self.remaining = min(self.remaining, remaining)
            self.ends_at = min(self.ends_at, end.at)
        elif remaining <= self.remaining:
            # The server's window moved on under ours and is the scarcer one now: its end counts.
            self.remaining = remaining
            if end.at >= self.ends_at:
                self.ends_at, self.reset = end.at, end.reset


@dataclass(slots=True)
class _Others:
    """How much other clients of the key take: the fall of `Remaining` that we do not explain.

    Counted so that it is never more than the truth; alone with the key, it is nothing.
    """

    sent: int = 0
    round_trip_seconds: float = 0.0
    _remaining_at_first: int = 0
    _first_at: float = 0.0
    _taken: int = 0
    _per_second: float = field(default=0.0)

    def begin(self, now: float, remaining: int, sent: int) -> None:
        """A window's first figure; `sent` of our requests may not be counted in it."""
        self._remaining_at_first, self._first_at = remaining, now
        self._taken, self.sent = 0, sent

    def observe(self, now: float, remaining: int) -> None:
        """A later figure of the window."""
        taken = self._remaining_at_first - remaining - self.sent
        if taken > self._taken:
            self._taken = taken
            seconds = max(now - self._first_at, self.round_trip_seconds, WAIT_SECONDS_MIN)
            self._per_second = max(self._per_second, taken / seconds)

    def fade(self) -> None:
        """A window is over: what was seen in it counts half in the next."""
        self._per_second = self._per_second / 2 if self._per_second > 0.01 else 0.0
        self.round_trip_seconds /= 2

    def guard(self) -> int:
        """As many as they send during one round trip of ours, and three deviations more."""
        expected = self._per_second * self.round_trip_seconds
        return math.ceil(expected + 3 * math.sqrt(expected))


def _seconds_to_reset(
    round_trip_seconds: float, rate: RateHeaders, server_now: float | None
) -> float | None:
    """Seconds from the answer to the reset that it tells; None where it tells none to believe."""
    if rate.reset is None or not math.isfinite(rate.reset):
        return None
    if rate.reset < TIMESTAMP_MIN:
        seconds = rate.reset
    elif server_now is None:
        return None
    else:
        seconds = rate.reset - server_now
    # A slow answer may carry figures of when the request came in, and the Date of when it left.
    # A reset further back than that explains is stale.
    return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


def _end_of_window(
    now: float, sent_at: float, rate: RateHeaders, server_now: float | None
) -> _WindowEnd:
    seconds = _seconds_to_reset(now - sent_at, rate, server_now)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_unplaced = is_timestamp and server_now is None
        return _WindowEnd(now + WINDOW_SECONDS, rate.reset if is_unplaced else None)
    end = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    is_minute = seconds <= RESET_SECONDS_MAX
    return _WindowEnd(end, rate.reset if is_timestamp and is_minute else None)
