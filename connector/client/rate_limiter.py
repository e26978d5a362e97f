"""Rate limiter: when the next request may leave within the minute's limit.

Intuition. The server counts our requests in windows of a minute and shows the count in three
headers (API 8.3), which `answer.rate_headers` reads. We never see the count itself, only answers
that left some time ago. But an answer's `Remaining` has counted every request that was answered
before its own was sent, so that

    the lowest Remaining told  -  requests still in flight  -  requests that ended untold

is never more than what is really left, whatever the order in which answers arrive. A request
"ended untold" if no answer came, or none with figures of this window: it may have been counted
behind the back of the lowest figure, until an answer to a later request settles it. Where nobody
else uses the key, `Limit` less ours of the last 60 seconds is left as well, and the larger counts
(`Usage`).

Where others use it too (`OtherClients`), the smaller of two counts is sent: what is left beside as
many as they may take at once, and what a minute leaves beside as many as they lately took in one.
So they are not starved, and what they ask for can be seen. After a silence one request looks
first, since a place that was free may be taken. Where the minute may slide, places become free one
by one: there the latest figure counts, with ours that have left the minute since.

A window is over at `Reset - Date`, a difference of two values of the server's clock, laid on our
monotonic one: no clock is compared with another. Whatever the answer says, it is over a minute
after any answer that it counted. What was left then still is, for a reset only adds. If nothing
was, one request leaves alone: the probe. The first answer tells what the new window holds, so that
nothing is assumed about its kind: a fixed window shows a full count after its reset, a sliding one
what has left it. (Rejected: only to keep any minute of ours below `Limit`. It suits both kinds,
but wastes up to a minute at the start and is blind to others.)

A 429 holds everybody back (`Backoff`), until its reset or its `Retry-After`. One that is too far
away to be the minute's, or 429s and nothing else for longer than a window, mean that the month is
spent (API 8.2).

Pure: `now` is in seconds of the caller's monotonic clock, chance is an argument. This module sends
nothing, sleeps nowhere, and does not count the month: `quota` does.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

from connector.client.other_clients import (
    RESOLUTION_SECONDS,
    WINDOW_SECONDS,
    Backoff,
    OtherClients,
    Usage,
)


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The latest moment at which a told window is over, and the `Reset` that names it.

    `reset` is None where it names no window: missing, unbelievable, or seconds that run down.
    """

    at: float
    reset: float | None


@dataclass(slots=True)
class Window:
    """What is known of the time since `opened_at`.

    Until it is told, `remaining` is what was left of the window before: not more than there is.
    """

    opened_at: float
    remaining: int | None = None
    is_told: bool = False
    is_late: bool = False
    """Whether the figures lack the very request that they answer, as some servers' do."""
    ends_at: float = math.inf
    reset: float | None = None
    untold: int = 0
    is_probe_out: bool = False
    is_retry: bool = False
    """Whether it was opened by the end of a 429's wait, which is the time to ask."""

    def learn(self, remaining: int, limit: int | None, end: WindowEnd) -> None:
        """Learn the figures of an answer within this window; `remaining` only falls."""
        remaining = max(0, remaining)
        if self.remaining is None or not self.is_told:
            self.is_told, self.is_late = True, remaining == limit
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


RESET_SECONDS_MAX = 120.0
"""A reset further away than this is not the minute's. No wait is longer either."""

TIMESTAMP_MIN = 1e9
"""A smaller `Reset` is no Unix timestamp but, as some servers send it, seconds from now."""

UNTOLD_PROBES_MAX = 3
"""Answers without figures that a window may open with before we go on unpaced."""

WAIT_SECONDS_MIN = 0.001
"""No wait is shorter, so that a caller's clock moves on."""

UNTOLD_KEPT_MAX = 10_000
"""Ends kept that told nothing; only a server without figures can have more."""

Pacing = Literal["burst", "spread"]


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """The figures of one answer (API 8.3); each is None where missing or unreadable.

    `reset` and `retry_after` are as sent: a Unix timestamp, or seconds from now.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    retry_after: float | None = None


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
    """Wait `seconds`, or until another request has ended; None: only until then.

    `reason` is "window" (spent until its reset), "probe" (one request is out to learn what is
    left), "backoff" (after a 429), "ramp" (few at a time after one, or beside others) or "spread"
    (evenly over the window).
    """

    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Spent:
    """The month is exhausted until `resets_at`, in Unix time, if that is known.

    Once that time has passed, `acquire` lets a probe through again; without it, never.
    """

    resets_at: float | None


class Pace:
    """The pace of one API key, shared by all of a process's requests.

    Each ticket is given back exactly once: to `heard`, `refused`, `lost` or `unsent`; a cancelled
    request is `lost`. `mode` "burst" sends as soon as it may and "spread" evenly; `reserve`
    requests of each window are left for people, except the probe.
    """

    def __init__(self, *, mode: Pacing = "burst", reserve: int = 0) -> None:
        assert mode in ("burst", "spread"), mode
        assert reserve >= 0, reserve
        self._mode, self._reserve = mode, reserve
        self._window = Window(opened_at=-math.inf)
        self._backoff = Backoff()
        self._usage = Usage()
        self._others = OtherClients(self._usage)
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

    def acquire(self, now: float) -> Go | Wait | Spent:
        """Leave for one more request now. `Go` counts it as sent."""
        if self._backoff.is_month_spent:
            if now < self._backoff.ends_at:
                return Spent(self._backoff.month_resets_at)
            self._backoff.reopen()
        if now >= self._window.ends_at:
            self._open(now)
        free = self._free(now)
        if (wait := self._hindrance(now, free)) is not None:
            return wait
        if self._mode == "spread":
            self._next_at = now + self._spacing_seconds(now, free)
        self._in_flight += 1
        self._window.is_probe_out |= not self._window.is_told
        self._usage.sent += 1
        return Go(Ticket(now))

    def heard(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None
    ) -> None:
        """An answer other than a 429 arrived; `server_now` is its `Date` as a Unix time."""
        sent_at = self._end(now, ticket)
        self._backoff.admit(sent_at)
        window = self._window
        if sent_at < window.opened_at:
            # Its figures are of another window, yet it may have been counted in this one.
            self._untold.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self._limit = rate.limit
            if rate.remaining is not None:
                self._usage.compare(now, sent_at, rate.limit, rate.remaining)
        if rate.remaining is None:
            window.untold += not window.is_told
            self._untold.append(now)
            return
        while self._untold and self._untold[0] <= sent_at:
            self._untold.popleft()
        is_first = not window.is_told
        window.learn(rate.remaining, self._limit, _end_of_window(now, sent_at, rate, server_now))
        if is_first:
            self._others.begin(now, rate.remaining, self._in_flight + len(self._untold))
        self._others.compare(now, sent_at, self._limit, rate.remaining, self._in_flight)

    def refused(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None, jitter: float
    ) -> None:
        """A 429 arrived; `jitter` in [0, 1) is the caller's draw."""
        assert 0 <= jitter < 1, jitter
        sent_at = self._land(now, ticket)
        window, backoff = self._window, self._backoff
        told = [
            (seconds, moment)
            for moment in (rate.reset, rate.retry_after)
            if (seconds := seconds_to(moment, now - sent_at, server_now)) is not None
        ]
        # Both forbid a request before them, so the later one counts.
        seconds, moment = max(told, default=(None, None))
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            is_timestamp = moment is not None and moment >= TIMESTAMP_MIN
            told_at = moment if is_timestamp else server_now and server_now + seconds
            backoff.stop(now + seconds, told_at)
        elif sent_at >= window.opened_at:
            self._others.suspect(now, sent_at, self._told() or 0, self._limit, self._in_flight)
            if seconds is None and now >= backoff.ends_at and now < window.ends_at < math.inf:
                # Headers on successes only: what they told of the window's end still holds.
                seconds = window.ends_at - now
            # A window that is spent holds some of ours, and is over a minute after them.
            freed_seconds = self._usage.freed_at(now, 1) - now
            backoff.refuse(now, sent_at, seconds, freed_seconds, jitter)
        else:
            # Refused in an earlier window, which says nothing about this one.
            return
        window.is_told, window.remaining, window.reset = True, 0, None
        window.ends_at = backoff.ends_at

    def lost(self, now: float, ticket: Ticket) -> None:
        """No answer came; the request may still have been counted."""
        self._end(now, ticket)
        self._untold.append(now)

    def unsent(self, now: float, ticket: Ticket) -> None:
        """The request never left, so nobody counted it."""
        self._land(now, ticket)

    def _end(self, now: float, ticket: Ticket) -> float:
        """Take back the ticket of a request that may have been counted."""
        self._usage.end(now)
        return self._land(now, ticket)

    def _land(self, now: float, ticket: Ticket) -> float:
        """Take back a ticket. Says when its request left."""
        sent_at = ticket.sent_at
        assert sent_at <= now, f"sent at {sent_at}, after {now}"
        assert self._in_flight > 0, "more requests ended than were sent"
        self._in_flight -= 1
        if sent_at >= self._window.opened_at:
            self._window.is_probe_out = False
        return sent_at

    def _open(self, now: float) -> None:
        is_retry = self._window.ends_at == self._backoff.ends_at
        self._window = Window(now, self._window.remaining, is_retry=is_retry)
        self._others.open()

    def _free(self, now: float) -> int | None:
        """How many may leave now; None where nothing tells.

        A sole client may believe either count, the server's or its own of the last minute: both
        are never more than what is left. Beside others both must allow it.
        """
        told, room = self._told(), self._room(now)
        if self._is_contested(now):
            told = self._usage.left(now, self._in_flight)
        if told is not None:
            told -= self._reserve + self._guard(now)
        if told is None or room is None:
            return room if told is None else told
        return min(told, room) if self._others.is_seen(now) else max(told, room)

    def _is_contested(self, now: float) -> bool:
        """Whether places may become free one by one, for others to take."""
        return self._others.is_seen(now) and not self._usage.jumps and self._limit is not None

    def _guard(self, now: float) -> int:
        """What is kept in hand for what others may send meanwhile."""
        return min(self._others.guard(now), (self._limit or 0) // 4)

    def _room(self, now: float) -> int | None:
        """What ours of the last minute leave beside what others ask for; None if unknown."""
        if self._limit is None or (theirs := self._others.most(now, self._limit)) is None:
            return None
        return self._usage.room(now, self._limit, self._in_flight) - self._reserve - theirs

    def _told(self) -> int | None:
        """Requests that the lowest figure leaves, less all that it may not have counted."""
        if self._window.remaining is None:
            return None
        uncounted = len(self._untold) + self._in_flight + self._window.is_late
        return self._window.remaining - uncounted

    def _room_at(self, now: float) -> float:
        """When our own last minute has room for one more; `inf` if that is unknown."""
        if self._limit is None:
            return math.inf
        lacking = 1 + self._reserve + (self._others.most(now, self._limit) or 0)
        lacking -= self._usage.room(now, self._limit, self._in_flight)
        if self._is_contested(now):
            # There is room, but the figures leave none: each of ours that leaves adds to them.
            lacking = max(1, lacking)
        freed_at = self._usage.freed_at(now, lacking)
        return freed_at if math.isfinite(freed_at) else math.inf

    def _spacing_seconds(self, now: float, free: int | None) -> float:
        """What lies between two requests that are spread evenly."""
        theirs = self._others.most(now, self._limit or 0)
        ours = max(1, (self._limit or 0) - (theirs or 0))
        steady = WINDOW_SECONDS / ours if self._limit is not None else 0.0
        if free is None or not self._window.is_told:
            return steady
        left = (self._window.ends_at - now) / max(1, free)
        return min(left, steady) if steady > 0 and theirs is not None else left

    def _hindrance(self, now: float, free: int | None) -> Wait | None:
        """Why no request may leave at the moment, if one may not."""
        if now < self._backoff.ends_at:
            return _wait(self._backoff.ends_at - now, "backoff")
        if free is None or free < 1:
            wait = self._wait_for_end(now) if self._window.is_told else self._wait_for_probe(now)
            if wait is not None:
                return wait
        if self._in_flight > 0 and self._others.is_due(now):
            return Wait(None, "probe")
        if self._others.is_enough(now, self._limit, self._in_flight):
            return Wait(None, "ramp")
        if self._mode == "spread" and now < self._next_at:
            return _wait(self._next_at - now, "spread")
        return Wait(None, "ramp") if self._backoff.is_full(self._in_flight) else None

    def _wait_for_end(self, now: float) -> Wait:
        """Nothing is left: until the window's end, or until ours leave room."""
        room_at = math.inf if self._room(now) is None else self._room_at(now)
        return _wait(min(self._window.ends_at, room_at) - now, "window")

    def _wait_for_probe(self, now: float) -> Wait | None:
        """Wait before a probe: nothing is known to be left, so one request may look."""
        if self._window.untold >= UNTOLD_PROBES_MAX:
            room_at = self._room_at(now)
            return _wait(room_at - now, "window") if room_at < math.inf else None
        if self._window.is_probe_out:
            return Wait(None, "probe")
        if self._is_contested(now) and self._window.untold == 0 and not self._window.is_retry:
            # Places that become free one by one are contested. When the last of ours has become
            # free, those of a whole burst are, in a minute that slides and in one that jumps.
            sure_at = min(self._usage.gone_at(), self._room_at(now))
        elif (self._told() or 0) < 0:
            # More are out than the last figures allowed, since ours had left room: they may have
            # taken what the reset has added.
            if self._in_flight > 0:
                return Wait(None, "probe")
            sure_at = self._room_at(now)
        else:
            return None
        return _wait(sure_at - now, "window") if now < sure_at < math.inf else None


def _wait(seconds: float, reason: str) -> Wait:
    return Wait(min(max(seconds, WAIT_SECONDS_MIN), RESET_SECONDS_MAX), reason)


def seconds_to(
    moment: float | None, round_trip_seconds: float, server_now: float | None
) -> float | None:
    """Seconds from an answer to a moment that it tells; None where it is not credible."""
    if moment is None or not math.isfinite(moment):
        return None
    origin = 0.0 if moment < TIMESTAMP_MIN else server_now
    if origin is None:
        return None
    seconds = moment - origin
    # A slow answer may carry figures of when the request came in, and the Date of when it left.
    # A reset further back than that explains is stale.
    return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


def _end_of_window(
    now: float, sent_at: float, rate: RateHeaders, server_now: float | None
) -> WindowEnd:
    """What an answer says of its window's end."""
    seconds = seconds_to(rate.reset, now - sent_at, server_now)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_name, seconds = is_timestamp and server_now is None, WINDOW_SECONDS
    else:
        is_name = is_timestamp and seconds <= RESET_SECONDS_MAX
    end = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    return WindowEnd(end, rate.reset if is_name else None)
