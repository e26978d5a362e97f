"""Rate limiter: when the next request may leave within the minute's limit.

The server counts our requests in windows of a minute and shows the count in three headers (API
8.3), which `answer.rate_headers` reads. An answer shows the count as it was some time ago, and
answers come in any order. But `Remaining` has counted every request that was answered before the
answer's own request left. So the number

    lowest `Remaining` seen  -  requests in flight  -  requests that ended without figures

is never more than what is really left. A request ended without figures if no answer came, or none
with figures of this window. The server may have counted it after it made the lowest figure, so it
is subtracted until the answer to a later request includes it.

Alone: if nobody else uses the key, `Limit` less our own requests of the last 60 seconds (`Usage`)
is left as well, and the larger of the two numbers counts.

Beside others (`OtherClients`): the smaller number counts. The first is lowered by what the others
may take at once, the second by what they lately took in a minute. So they get their share, and
their demand stays visible. After a silence one request looks first, since others may have taken
what was free. If the server's minute may slide, its places become free one by one: then the latest
figure counts, plus those of our requests that have left the minute since.

A window is over at `Reset - Date`. Both are values of the server's clock; their difference is added
to our monotonic clock, so that no clock is compared with another. In any case it is over a minute
after an answer that it counted. The requests that were left then are still left, since a reset only
adds. If none were left, one request leaves alone: the probe. Its answer shows what the new window
holds, whatever kind of window it is: a fixed one shows a full count after its reset, a sliding one
the places that have become free.

A 429 stops all requests (`Backoff`) until its reset or its `Retry-After`. If that moment is too far
away to be the minute's, or if only 429s came for longer than a window, then the month is spent
(API 8.2).

Pure: the caller's monotonic clock and chance are arguments. `engine/quota.py` counts the month.
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
    """Latest moment at which a window is over, and the `Reset` that identifies it.

    `reset` is None where it cannot identify a window: it is missing, not credible, or a number of
    seconds, which differs from answer to answer.
    """

    at: float
    reset: float | None


@dataclass(slots=True)
class Window:
    """Window that began at `opened_at`, as far as its answers have shown it.

    Until one has (`is_known`), `remaining` is what the window before left: there is at least that.
    """

    opened_at: float
    remaining: int | None = None
    is_known: bool = False
    is_late: bool = False
    """Whether a figure does not include the request that it answers, as on some servers."""
    ends_at: float = math.inf
    reset: float | None = None
    answers_without_figures: int = 0
    is_probe_out: bool = False
    is_retry: bool = False
    """Whether it began with the end of a 429's wait."""

    def learn(self, remaining: int, limit: int | None, end: WindowEnd) -> None:
        """Learn the figures of an answer within this window; `remaining` only falls."""
        remaining = max(0, remaining)
        if self.remaining is None or not self.is_known:
            self.is_known, self.is_late = True, remaining == limit
            self.remaining, self.ends_at, self.reset = remaining, end.at, end.reset
        elif end.reset is not None and end.reset == self.reset:
            # Every bound on the same moment holds, so the lowest does.
            self.remaining = min(self.remaining, remaining)
            self.ends_at = min(self.ends_at, end.at)
        elif remaining <= self.remaining:
            # The server has begun another window, which has less left: its end counts.
            self.remaining = remaining
            if end.at >= self.ends_at:
                self.ends_at, self.reset = end.at, end.reset


RESET_SECONDS_MAX = 120.0
"""A reset further away than this is not the minute's. No wait is longer either."""

TIMESTAMP_MIN = 1e9
"""A smaller `Reset` is no Unix timestamp but, as some servers send it, seconds from now."""

PROBES_WITHOUT_FIGURES_MAX = 3
"""Answers without figures at a window's start, after which requests leave without a limit."""

WAIT_SECONDS_MIN = 0.001
"""No wait is shorter, so that a caller's clock moves on."""

ENDS_KEPT_MAX = 10_000
"""Ends without figures that are remembered; only a server that never sends any has more."""

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
    """Permission for one request, to be given back once the request has ended."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Go:
    """The request may leave now; it has been counted as sent and in flight."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait `seconds`, or until a request has ended; None: only for the latter.

    `reason` is "window" (it is spent), "probe" (a request is under way to learn what is left),
    "backoff" (after a 429), "ramp" (few at a time, after a 429 or beside others) or "spread"
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
    """Rate limiter of one API key, shared by all requests of a process.

    Each ticket is given back exactly once: to `heard`, `refused`, `lost` or `unsent`; a cancelled
    request is `lost`. In the `mode` "burst" a request leaves as soon as it may, in "spread" they
    leave evenly. `reserve` requests of each window are left for people; the probe ignores that.
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
        self._uncounted: deque[float] = deque(maxlen=ENDS_KEPT_MAX)
        self._next_at = -math.inf

    @property
    def limit(self) -> int | None:
        """Requests a minute, by the last answer that showed it; None before that."""
        return self._limit

    @property
    def remaining(self) -> int | None:
        """The lowest `Remaining` of the current window; None before the first."""
        return self._window.remaining

    def resets_in(self, now: float) -> float | None:
        """Seconds until the current window is surely over; None while that is not known."""
        ends_at = self._window.ends_at
        return max(0.0, ends_at - now) if math.isfinite(ends_at) else None

    def acquire(self, now: float) -> Go | Wait | Spent:
        """Whether one more request may leave now. `Go` counts it as sent."""
        if self._backoff.is_month_spent:
            if now < self._backoff.ends_at:
                return Spent(self._backoff.month_resets_at)
            self._backoff.reopen()
        if now >= self._window.ends_at:
            self._open(now)
        free = self._free(now)
        if (wait := self._reason_to_wait(now, free)) is not None:
            return wait
        if self._mode == "spread":
            self._next_at = now + self._spacing_seconds(now, free)
        self._in_flight += 1
        self._window.is_probe_out |= not self._window.is_known
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
            # Its figures are of the window before, but this one may have counted the request.
            self._uncounted.append(now)
            return
        if rate.limit is not None and rate.limit > 0:
            self._limit = rate.limit
            if rate.remaining is not None:
                self._usage.compare(now, sent_at, rate.limit, rate.remaining)
        if rate.remaining is None:
            window.answers_without_figures += not window.is_known
            self._uncounted.append(now)
            return
        while self._uncounted and self._uncounted[0] <= sent_at:
            self._uncounted.popleft()
        is_first = not window.is_known
        window.learn(rate.remaining, self._limit, _end_of_window(now, sent_at, rate, server_now))
        if is_first:
            self._others.begin(now, rate.remaining, self._in_flight + len(self._uncounted))
        self._others.compare(now, sent_at, self._limit, rate.remaining, self._in_flight)

    def refused(
        self, now: float, ticket: Ticket, rate: RateHeaders, server_now: float | None, jitter: float
    ) -> None:
        """A 429 arrived; `jitter` in [0, 1) is the caller's draw."""
        assert 0 <= jitter < 1, jitter
        sent_at = self._take_back(now, ticket)
        window, backoff = self._window, self._backoff
        ends = [
            (seconds, moment)
            for moment in (rate.reset, rate.retry_after)
            if (seconds := seconds_to(moment, now - sent_at, server_now)) is not None
        ]
        # No request may leave before either of them, so the later one counts.
        seconds, moment = max(ends, default=(None, None))
        if seconds is not None and seconds > RESET_SECONDS_MAX:
            is_timestamp = moment is not None and moment >= TIMESTAMP_MIN
            resets_at = moment if is_timestamp else server_now and server_now + seconds
            backoff.stop(now + seconds, resets_at)
        elif sent_at >= window.opened_at:
            self._others.suspect(
                now, sent_at, self._left_by_figures() or 0, self._limit, self._in_flight
            )
            if seconds is None and now >= backoff.ends_at and now < window.ends_at < math.inf:
                # Only successes have headers on this server: the end that they showed still holds.
                seconds = window.ends_at - now
            # A window that is spent holds some of ours, and is over a minute after them.
            freed_seconds = self._usage.freed_at(now, 1) - now
            backoff.refuse(now, sent_at, seconds, freed_seconds, jitter)
        else:
            # Refused in an earlier window, which says nothing about this one.
            return
        window.is_known, window.remaining, window.reset = True, 0, None
        window.ends_at = backoff.ends_at

    def lost(self, now: float, ticket: Ticket) -> None:
        """No answer came; the request may still have been counted."""
        self._end(now, ticket)
        self._uncounted.append(now)

    def unsent(self, now: float, ticket: Ticket) -> None:
        """The request never left, so that the server did not count it."""
        self._take_back(now, ticket)

    def _end(self, now: float, ticket: Ticket) -> float:
        """Take back the ticket of a request that may have been counted."""
        self._usage.end(now)
        return self._take_back(now, ticket)

    def _take_back(self, now: float, ticket: Ticket) -> float:
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
        """How many requests may leave now; None where that is not known.

        Neither number, the server's or that of our own last minute, is ever more than what is left
        to a sole client, so the larger counts. Beside others both must allow it.
        """
        left, room = self._left_by_figures(), self._room(now)
        if self._is_contested(now):
            left = self._usage.left(now, self._in_flight)
        if left is not None:
            left -= self._reserve + self._guard(now)
        if left is None or room is None:
            return room if left is None else left
        return min(left, room) if self._others.is_seen(now) else max(left, room)

    def _is_contested(self, now: float) -> bool:
        """Whether places may become free one by one, and others may take them."""
        return self._others.is_seen(now) and not self._usage.jumps and self._limit is not None

    def _guard(self, now: float) -> int:
        """Requests not sent, because others may send as many meanwhile."""
        return min(self._others.guard(now), (self._limit or 0) // 4)

    def _room(self, now: float) -> int | None:
        """The limit less our last minute and less the others' demand; None if unknown."""
        if self._limit is None or (theirs := self._others.most(now, self._limit)) is None:
            return None
        return self._usage.room(now, self._limit, self._in_flight) - self._reserve - theirs

    def _left_by_figures(self) -> int | None:
        """The lowest figure, less the requests that it may not have counted."""
        if self._window.remaining is None:
            return None
        uncounted = len(self._uncounted) + self._in_flight + self._window.is_late
        return self._window.remaining - uncounted

    def _room_at(self, now: float) -> float:
        """When our own last minute has room for one more; `inf` if that is unknown."""
        if self._limit is None:
            return math.inf
        lacking = 1 + self._reserve + (self._others.most(now, self._limit) or 0)
        lacking -= self._usage.room(now, self._limit, self._in_flight)
        if self._is_contested(now):
            # There is room, but the figures leave none until one more of ours leaves the minute.
            lacking = max(1, lacking)
        freed_at = self._usage.freed_at(now, lacking)
        return freed_at if math.isfinite(freed_at) else math.inf

    def _spacing_seconds(self, now: float, free: int | None) -> float:
        """Seconds between two requests that are spread evenly."""
        theirs = self._others.most(now, self._limit or 0)
        ours = max(1, (self._limit or 0) - (theirs or 0))
        steady = WINDOW_SECONDS / ours if self._limit is not None else 0.0
        if free is None or not self._window.is_known:
            return steady
        left = (self._window.ends_at - now) / max(1, free)
        return min(left, steady) if steady > 0 and theirs is not None else left

    def _reason_to_wait(self, now: float, free: int | None) -> Wait | None:
        """The wait before the next request, if none may leave now."""
        if now < self._backoff.ends_at:
            return _wait(self._backoff.ends_at - now, "backoff")
        if free is None or free < 1:
            wait = self._wait_for_end(now) if self._window.is_known else self._wait_for_probe(now)
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
        """Wait until the window's end, or until our own last minute has room."""
        room_at = math.inf if self._room(now) is None else self._room_at(now)
        return _wait(min(self._window.ends_at, room_at) - now, "window")

    def _wait_for_probe(self, now: float) -> Wait | None:
        """Wait before a probe, which may leave although nothing is known to be left."""
        if self._window.answers_without_figures >= PROBES_WITHOUT_FIGURES_MAX:
            room_at = self._room_at(now)
            return _wait(room_at - now, "window") if room_at < math.inf else None
        if self._window.is_probe_out:
            return Wait(None, "probe")
        if (
            self._is_contested(now)
            and self._window.answers_without_figures == 0
            and not self._window.is_retry
        ):
            # Others take places that become free one by one. Once all of our requests have left
            # the minute, a whole burst is free, whether the server's minute slides or jumps.
            sure_at = min(self._usage.gone_at(), self._room_at(now))
        elif (self._left_by_figures() or 0) < 0:
            # More are under way than the last figures allowed, since our own minute had room: they
            # may have used what the reset has added.
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
    """Seconds from an answer to a moment in it; None where that is not credible."""
    if moment is None or not math.isfinite(moment):
        return None
    origin = 0.0 if moment < TIMESTAMP_MIN else server_now
    if origin is None:
        return None
    seconds = moment - origin
    # The figures of a slow answer may be older than its `Date`, by the round trip at most. A reset
    # that lies further back is stale.
    return seconds if seconds >= -round_trip_seconds - RESOLUTION_SECONDS else None


def _end_of_window(
    now: float, sent_at: float, rate: RateHeaders, server_now: float | None
) -> WindowEnd:
    """Window's end by an answer."""
    seconds = seconds_to(rate.reset, now - sent_at, server_now)
    is_timestamp = rate.reset is not None and rate.reset >= TIMESTAMP_MIN
    if seconds is None:
        is_name, seconds = is_timestamp and server_now is None, WINDOW_SECONDS
    else:
        is_name = is_timestamp and seconds <= RESET_SECONDS_MAX
    end = now + min(seconds + RESOLUTION_SECONDS, WINDOW_SECONDS)
    return WindowEnd(end, rate.reset if is_name else None)
