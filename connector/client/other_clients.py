"""Other clients of the key: whether there are any, how fast, how many at once.

No header tells. Others give themselves away by a `Remaining` that ours cannot explain, and by a
refusal while something was left. Everything of ours that may have been counted is taken to be, so
that a sole client never suspects itself.

What is learnt serves two ends. The *guard* is kept in hand for what may come between a figure and
our request's arrival: at their rate of this window, or as a *surge*, the most that they took of
late within a round trip, unless their minute's demand has come already. The *most* of one minute
is left to them: their *demand*, as far as figures show it, and a little more, since who is refused
shows less than he asks for: after a refusal of ours, a third of the limit more. While others are
there, no more of ours are under way at once than the whole limit needs, sent evenly: a surge
refuses all that it meets. All this is forgotten some minutes after it was last seen.

Pure, and part of the rate limiter: it reads no headers and decides nothing.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import deque

WINDOW_SECONDS = 60.0
"""A window of the limit "per minute" (API 8.2)."""

RESOLUTION_SECONDS = 1.0
"""`Reset` may be cut to whole seconds. `Date` is too, but that errs towards waiting."""

BACKOFF_SECONDS_MIN = 15.0
"""The first wait after a 429 that tells no reset. It doubles, up to a whole window."""

JITTER_SECONDS_MAX = 3.0
"""Added, never subtracted, so that several processes do not come back at once."""

RAMP_MAX = 32
"""Requests in flight from which a 429 is forgotten."""


class Backoff:
    """How a 429 holds back all requests of a key at once (API 7.2, 8.4).

    Nothing leaves before `ends_at`: the reset that the server told, or ever longer where it told
    none or refused again after it; chance only lengthens that. After it the requests in flight,
    `in_flight_max`, start at one and grow by one with each answer. Two 429s with a whole window
    between them and nothing but refusals in between are no longer the minute's: the month is spent
    (API 8.2). Then `is_month_spent`, and `ends_at` is the month's reset, or never where that is
    unknown; `month_resets_at` is the same moment as the server told it.
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
        """Whether so many in flight are as many as a recent 429 allows."""
        return self.in_flight_max < RAMP_MAX and in_flight >= self.in_flight_max

    def stop(self, ends_at: float, month_resets_at: float | None) -> None:
        """The month is spent."""
        self.ends_at, self.in_flight_max = ends_at, 1
        self.is_month_spent, self.month_resets_at = True, month_resets_at

    def reopen(self) -> None:
        """The month is over: nothing of it counts any more."""
        self.is_month_spent, self.month_resets_at = False, None
        self._first_at, self._refusals = None, 0

    def refuse(
        self, now: float, sent_at: float, seconds: float | None, freed_seconds: float, jitter: float
    ) -> None:
        """A request was refused, for `seconds` from now or for nobody knows how long.

        In `freed_seconds` something of ours leaves the last minute, if that is not in the past.
        """
        self.in_flight_max = 1
        # Requests that were on their way together are refused together, which is one refusal.
        is_echo = self._first_at is not None and sent_at < self._last_at
        self._last_at = now
        if is_echo and seconds is None:
            return
        if self._first_at is None:
            self._first_at = now
        elif sent_at - self._first_at >= WINDOW_SECONDS:
            self.stop(math.inf, None)
            return
        self._refusals += not is_echo
        closed = self._backoff_seconds(seconds, freed_seconds) + jitter * JITTER_SECONDS_MAX
        assert closed > 0, closed
        self.ends_at = max(self.ends_at, now + closed)

    def _backoff_seconds(self, told: float | None, freed_seconds: float) -> float:
        if told is None:
            return max(_doubled(self._refusals - 1), freed_seconds)
        told = max(0.0, told) + RESOLUTION_SECONDS
        # Refused again after waiting as told: the server's word alone is not enough any more.
        return told if self._refusals < 2 else max(told, _doubled(self._refusals - 2))

    def admit(self, sent_at: float) -> None:
        """A request that left at `sent_at` was answered, and not with a 429."""
        if sent_at >= self._last_at and not self.is_month_spent:
            self._first_at, self._refusals = None, 0
            self.in_flight_max = min(self.in_flight_max + 1, RAMP_MAX)


def _doubled(times: int) -> float:
    # Two doublings reach the window; a larger power would only overflow one day.
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(times, 2), WINDOW_SECONDS)


# -- Our own requests of the last minute -------------------------------------------------------

SLACK_SECONDS = 0.05
"""By how much the server's minute may be longer than ours."""

KEPT_SECONDS = 180.0
"""How long ours are remembered at least: a minute, and as long as an answer may be under way."""

KEPT_MAX = 200_000
"""How many are remembered, at most twice as many: no minute has more."""


JUMP_MIN = 10
"""Of fewer requests it is not made out whether the server forgot them at once."""


class Usage:
    """What we have used of the key; `now` never goes back from one call to the next.

    Where nobody else uses the key, `Limit` less those is left, whether the server's minute jumps or
    slides: everything of ours that may have been counted is taken to be.

    `sent` counts every request that was let go. `jumps` says that the server was seen to forget
    ours all at once, so that its minute does not slide; it may do so unseen.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.jumps = False
        # The figure that was asked for last: `Remaining`, when its request left, when it came.
        self._figure: tuple[int, float, float] | None = None
        # When our requests ended, in order: each was counted before that, if at all.
        self._ended = array("d")
        self._forgotten = 0

    def end(self, now: float) -> None:
        """One of ours has ended and may have been counted."""
        self._ended.append(now)
        if self._ended[0] <= now - 2 * KEPT_SECONDS or len(self._ended) > 2 * KEPT_MAX:
            # Many at once, so that it costs little on average.
            old = bisect_right(self._ended, now - KEPT_SECONDS)
            old = max(old, len(self._ended) - KEPT_MAX)
            del self._ended[:old]
            self._forgotten += old

    def compare(self, now: float, sent_at: float, limit: int, remaining: int) -> None:
        """The answer to a request of `sent_at` told these figures."""
        # Two seconds less than a minute, for what is on its way: all of them count if it slides.
        oldest = bisect_right(self._ended, sent_at - WINDOW_SECONDS + 2)
        ours = bisect_right(self._ended, sent_at) - oldest
        # Half of them, since lost ones may never have been counted.
        self.jumps |= ours >= JUMP_MIN and limit - remaining < ours // 2
        if self._figure is None or sent_at >= self._figure[1]:
            self._figure = remaining, sent_at, now

    def left(self, now: float, in_flight: int) -> int | None:
        """What the latest figure leaves in a minute that slides, if others take nothing."""
        if self._figure is None:
            return None
        remaining, sent_at, told_at = self._figure
        uncounted = len(self._ended) - bisect_right(self._ended, sent_at) - 1 + in_flight
        # Ours that left the minute after the figure had been made, however slow their way was.
        oldest = bisect_right(self._ended, told_at + (told_at - sent_at) - WINDOW_SECONDS)
        freed = bisect_right(self._ended, now - WINDOW_SECONDS - SLACK_SECONDS) - oldest
        return remaining - uncounted + max(0, freed)

    def ended_before(self, moment: float) -> int:
        """How many of ours had ended by `moment`, of all that ever left."""
        return self._forgotten + bisect_right(self._ended, moment)

    def count_within_minute(self, moment: float) -> int:
        """How many of ours have ended within a minute before `moment`, or since."""
        oldest = moment - WINDOW_SECONDS - SLACK_SECONDS
        return len(self._ended) - bisect_right(self._ended, oldest)

    def room(self, now: float, limit: int, in_flight: int) -> int:
        """Requests left in any 60 seconds that end now or later, if nobody else asks."""
        return limit - self.count_within_minute(now) - in_flight

    def freed_at(self, now: float, count: int) -> float:
        """When `count` more of ours, or all, have left the last minute; `-inf` for none."""
        first = bisect_right(self._ended, now - WINDOW_SECONDS - SLACK_SECONDS)
        if count < 1 or first == len(self._ended):
            return -math.inf
        last = min(first + count, len(self._ended)) - 1
        return self._ended[last] + WINDOW_SECONDS + SLACK_SECONDS

    def gone_at(self) -> float:
        """When all of ours will have left the last minute; `-inf` if none was ever there."""
        return self._ended[-1] + WINDOW_SECONDS + SLACK_SECONDS if self._ended else -math.inf


# -- Other clients of the key --------------------------------------------------------------------

ALONE_SECONDS = 300.0
"""How long others must not have shown themselves before the key is taken to be ours alone."""

DEVIATIONS = 3.0
"""How many standard deviations of the others' number the guard allows for."""

SURGE_SECONDS = 1.0
"""What others take within so long counts as one surge, or within a round trip if that is longer."""

SURGE_KEPT_SECONDS = 150.0
"""How long a surge is expected again."""

DEMAND_KEPT_SECONDS = 60.0
"""How long the most of one minute is expected again; it varies, and so it is not kept for long."""

CLOCK_SECONDS = 0.001
"""The least time that a clock is taken to tell apart."""

EXPECTED_SECONDS = 5.0
"""From so much of a window on, the others' rate says what they will ask for in a minute."""

SHARE = 16
"""One part of so many is added to what others took."""

REFUSED_SHARE = 3
"""One part of so many of the limit is added after a refusal: it cut short what they came to take,
so that nothing tells how much that was, and to learn it little by little costs one refusal each.
"""

ROUND_TRIPS = 16
"""About so many round trips make the usual one."""

STALE_SECONDS = 2.0
"""After so long without a figure one request looks first."""


class Peak:
    """Largest value seen within the last `seconds`, or at most twice as long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = -math.inf
        self._largest = self._before = 0

    def see(self, now: float, count: int) -> None:
        """Take in one more."""
        self.at(now)
        self._largest = max(self._largest, count)

    def at(self, now: float) -> int:
        """The largest that is still believed."""
        if now >= self._since + self._seconds:
            is_next = now < self._since + 2 * self._seconds
            self._before, self._largest = self._largest if is_next else 0, 0
            self._since = now
        return max(self._before, self._largest)


class OtherClients:
    """What is known of other clients beside `ours`; `now` never goes back."""

    def __init__(self, ours: Usage) -> None:
        self._ours = ours
        self._begun_at = math.inf
        self._seen_at = -math.inf
        self._per_second = 0.0
        self._surge, self._demand = Peak(SURGE_KEPT_SECONDS), Peak(DEMAND_KEPT_SECONDS)
        self._distance, self._refused_at = Peak(ALONE_SECONDS), -math.inf
        self._here = 0
        """How many of theirs the last figure counts at least."""
        self._round_trip_seconds = 0.0
        self._usual_seconds, self._round_trips = 0.0, 1
        self._told_at = -math.inf
        # When figures came, each with `Remaining` and all of ours that it had counted for certain:
        # a sum that only others lower. Only the highest of each moment on is kept.
        self._levels: deque[tuple[float, int]] = deque()
        # The current window: its first figure, when it was told, and ours that it may not count.
        self._first_remaining = 0
        self._first_at = -math.inf
        self._counted = 0

    def is_seen(self, now: float) -> bool:
        """Whether somebody else has shown himself within some minutes."""
        return now < self._seen_at + ALONE_SECONDS

    def is_absent(self, now: float) -> bool:
        """Whether nobody else has, although there was a whole window to do so."""
        return now >= self._begun_at + WINDOW_SECONDS and not self.is_seen(now)

    def most(self, now: float, limit: int) -> int | None:
        """Requests of a minute's `limit` to leave to others; None before a minute."""
        if now < self._begun_at + WINDOW_SECONDS:
            return None
        if not self.is_seen(now):
            return 0
        demand = self._demand.at(now)
        more = min(max(1, self._surge.at(now)), demand // SHARE)
        return min(demand + more + self._distance.at(now), limit - limit // 4)

    def suspect(
        self, now: float, sent_at: float, left: int, limit: int | None, in_flight: int
    ) -> None:
        """A refusal came that ours do not explain: others took the `left` that there were.

        Those of requests that were on their way together count once.
        """
        self._seen_at = now
        if limit is not None and sent_at >= self._refused_at:
            self._surge.see(now, left + 1)
            self._demand.see(now, limit - self._ours.count_within_minute(now) - in_flight)
            self._distance.see(now, limit // REFUSED_SHARE)
            self._refused_at = now

    def open(self) -> None:
        """A new window: the rate seen before counts half in it."""
        per_second = self._per_second / 2
        self._per_second = per_second if per_second > 0.01 else 0.0
        self._round_trip_seconds /= 2

    def begin(self, now: float, remaining: int, uncounted: int) -> None:
        """The window's first figure, which may not count `uncounted` of ours."""
        self._first_remaining, self._first_at = remaining, now
        self._counted = self._ours.sent - uncounted

    def compare(
        self, now: float, sent_at: float, limit: int | None, remaining: int, in_flight: int
    ) -> None:
        """A figure came with the answer to a request of `sent_at`: do ours explain it?"""
        self._told_at, self._begun_at = now, min(self._begun_at, now)
        self._round_trip_seconds = max(self._round_trip_seconds, now - sent_at)
        self._usual_seconds += (now - sent_at - self._usual_seconds) / self._round_trips
        self._round_trips = min(self._round_trips + 1, ROUND_TRIPS)
        taken = self._first_remaining - remaining - (self._ours.sent - self._counted)
        if taken > 0:
            self._seen_at = now
            # A coarse clock may not have moved between two answers.
            seconds = max(now - self._first_at, self._round_trip_seconds, CLOCK_SECONDS)
            self._per_second = max(self._per_second, taken / seconds)
        self._here = max(0, taken)
        if limit is not None:
            theirs = limit - remaining - self._ours.count_within_minute(sent_at) - in_flight
            self._here = max(self._here, theirs)
            # What was there before us proves nothing: it may have been ourselves a minute ago.
            if theirs > 0 and sent_at >= self._begun_at + WINDOW_SECONDS:
                self._seen_at = now
        if self.is_seen(now):
            self._demand.see(now, self._here)
            seconds = now - self._first_at
            if limit is not None and seconds >= EXPECTED_SECONDS:
                # Of what one surge makes expect, no more than half is believed.
                self._demand.see(now, min(int(taken / seconds * WINDOW_SECONDS), limit // 2))
        self._measure(now, sent_at, remaining)

    def _measure(self, now: float, sent_at: float, remaining: int) -> None:
        """How far the level has fallen within a round trip, or since the figure before."""
        levels = self._levels
        since = now - max(SURGE_SECONDS, self._round_trip_seconds)
        while len(levels) > 1 and levels[1][0] <= since:
            levels.popleft()
        if levels:
            fallen = levels[0][1] - remaining - self._ours.sent
            if fallen > 0:
                self._surge.see(now, fallen)
        level = remaining + self._ours.ended_before(sent_at)
        while levels and levels[-1][1] <= level:
            levels.pop()
        levels.append((now, level))

    def is_due(self, now: float) -> bool:
        """Whether one must look first: others may have taken much since the last figure."""
        return self.is_seen(now) and now >= self._told_at + STALE_SECONDS

    def is_enough(self, now: float, limit: int | None, in_flight: int) -> bool:
        """Whether so many under way are all that the limit needs, with others there."""
        if in_flight == 0 or limit is None or not self.is_seen(now):
            return False
        return in_flight >= limit / WINDOW_SECONDS * self._usual_seconds

    def guard(self, now: float) -> int:
        """Requests that others may take between the last figure and one sent now."""
        seconds = self._round_trip_seconds + max(0.0, now - self._told_at)
        expected = self._per_second * min(seconds, WINDOW_SECONDS)
        demand = self._demand.at(now)
        to_come = max(0, demand + demand // SHARE - self._here)
        return max(
            math.ceil(expected + DEVIATIONS * math.sqrt(expected)),
            min(self._surge.at(now), to_come),
        )
