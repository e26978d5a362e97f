"""Other clients of the key: whether there are any, how fast, how many at once.

No header says so. Other clients show themselves by a `Remaining` that our requests do not explain,
and by a refusal while something was left. Every request of ours that may have been counted is
taken to be counted, so that a sole client never suspects itself.

Two numbers follow. The *guard* is not sent, because others may send as many between a figure and
the arrival of our request: as many as their rate in this window makes likely, or as one *surge*,
the most that they lately took within a round trip, unless they have had their minute's demand
already. The *most* of a minute is left to them: their *demand*, as far as figures show it, and a
little more, since a client that is refused shows less than it needs. After a refusal of ours it is
a third of the limit more. Beside others, no more of our requests are under way at once than the
whole limit needs when it is sent evenly, since a surge makes all of them fail. All this is
forgotten some minutes after it was last seen.

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
"""The first wait after a 429 without a reset. It doubles, up to a whole window."""

JITTER_SECONDS_MAX = 3.0
"""Added to a wait at random, so that several processes do not come back at once."""

RAMP_MAX = 32
"""Requests in flight that are allowed again once a 429 is forgotten."""


class Backoff:
    """Backoff after a 429, of all requests of a key at once (API 7.2, 8.4).

    No request leaves before `ends_at`: the server's reset, or ever longer if it gave none or
    refused again after it. Chance only lengthens the wait. After it one request may be in flight,
    and with each answer one more (`in_flight_max`). If only refusals come for a whole window, they
    are not the minute's any more: the month is spent (API 8.2). Then `is_month_spent` is true and
    `ends_at` is the month's reset, or never if that is unknown; `month_resets_at` is the reset in
    the server's own time.
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
        """Whether a recent 429 allows no more than these in flight."""
        return self.in_flight_max < RAMP_MAX and in_flight >= self.in_flight_max

    def stop(self, ends_at: float, month_resets_at: float | None) -> None:
        """The month is spent."""
        self.ends_at, self.in_flight_max = ends_at, 1
        self.is_month_spent, self.month_resets_at = True, month_resets_at

    def reopen(self) -> None:
        """Forget the spent month: it is over."""
        self.is_month_spent, self.month_resets_at = False, None
        self._first_at, self._refusals = None, 0

    def refuse(
        self, now: float, sent_at: float, seconds: float | None, freed_seconds: float, jitter: float
    ) -> None:
        """A request was refused, for `seconds` from now, or with None for an unknown time.

        In `freed_seconds` one of our requests leaves the last minute, if that is not in the past.
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

    def _backoff_seconds(self, asked: float | None, freed_seconds: float) -> float:
        if asked is None:
            return max(_doubled(self._refusals - 1), freed_seconds)
        asked = max(0.0, asked) + RESOLUTION_SECONDS
        # A second refusal after a wait as long as the server asked for: its word is not enough.
        return asked if self._refusals < 2 else max(asked, _doubled(self._refusals - 2))

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
"""How long our requests are remembered: a minute, and as long as an answer may be under way."""

KEPT_MAX = 200_000
"""How many are remembered at least, and at most twice as many: no minute has more."""


JUMP_MIN = 10
"""Fewer requests than this do not show whether the server forgot them all at once."""


class Usage:
    """Usage of the key by us in the last minute; `now` never goes back.

    If nobody else uses the key, `Limit` less our requests is left, whether the server's minute
    jumps or slides: every request that may have been counted is taken to be counted.

    `sent` counts every request that was allowed to leave. `jumps` says that the server was seen to
    forget our requests all at once, so that its minute does not slide.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.jumps = False
        # The figure of the latest request: `Remaining`, and when the request left and was answered.
        self._figure: tuple[int, float, float] | None = None
        # When our requests ended, in order: each was counted before that, if at all.
        self._ended = array("d")
        self._forgotten = 0

    def end(self, now: float) -> None:
        """A request of ours has ended and may have been counted."""
        self._ended.append(now)
        if self._ended[0] <= now - 2 * KEPT_SECONDS or len(self._ended) > 2 * KEPT_MAX:
            # Many are removed at once, so that it costs little on average.
            old = bisect_right(self._ended, now - KEPT_SECONDS)
            old = max(old, len(self._ended) - KEPT_MAX)
            del self._ended[:old]
            self._forgotten += old

    def compare(self, now: float, sent_at: float, limit: int, remaining: int) -> None:
        """Compare the figures of an answer to a request of `sent_at` with our own count."""
        # Two seconds less than a minute, for requests on their way: a sliding minute has them all.
        oldest = bisect_right(self._ended, sent_at - WINDOW_SECONDS + 2)
        ours = bisect_right(self._ended, sent_at) - oldest
        # Half of them, since lost ones may never have been counted.
        self.jumps |= ours >= JUMP_MIN and limit - remaining < ours // 2
        if self._figure is None or sent_at >= self._figure[1]:
            self._figure = remaining, sent_at, now

    def left(self, now: float, in_flight: int) -> int | None:
        """Requests left in a sliding minute by the latest figure, if others take none."""
        if self._figure is None:
            return None
        remaining, sent_at, told_at = self._figure
        uncounted = len(self._ended) - bisect_right(self._ended, sent_at) - 1 + in_flight
        # Our requests that left the minute after the figure had been made, however slow they were.
        oldest = bisect_right(self._ended, told_at + (told_at - sent_at) - WINDOW_SECONDS)
        freed = bisect_right(self._ended, now - WINDOW_SECONDS - SLACK_SECONDS) - oldest
        return remaining - uncounted + max(0, freed)

    def ended_before(self, moment: float) -> int:
        """How many of all our requests had ended by `moment`."""
        return self._forgotten + bisect_right(self._ended, moment)

    def count_within_minute(self, moment: float) -> int:
        """How many of our requests ended in the minute before `moment`, or since."""
        oldest = moment - WINDOW_SECONDS - SLACK_SECONDS
        return len(self._ended) - bisect_right(self._ended, oldest)

    def room(self, now: float, limit: int, in_flight: int) -> int:
        """Requests left in any 60 seconds that end now or later, for a sole client."""
        return limit - self.count_within_minute(now) - in_flight

    def freed_at(self, now: float, count: int) -> float:
        """When `count` more of our requests leave the last minute; `-inf` for none."""
        first = bisect_right(self._ended, now - WINDOW_SECONDS - SLACK_SECONDS)
        if count < 1 or first == len(self._ended):
            return -math.inf
        last = min(first + count, len(self._ended)) - 1
        return self._ended[last] + WINDOW_SECONDS + SLACK_SECONDS

    def gone_at(self) -> float:
        """When all our requests will have left the last minute; `-inf` if there was none."""
        return self._ended[-1] + WINDOW_SECONDS + SLACK_SECONDS if self._ended else -math.inf


# -- Other clients of the key --------------------------------------------------------------------

ALONE_SECONDS = 300.0
"""How long no other client must be seen before the key is taken to be ours alone."""

DEVIATIONS = 3.0
"""Standard deviations of the others' expected number that the guard covers."""

SURGE_SECONDS = 1.0
"""Requests of others within this time, or within a longer round trip, are one surge."""

SURGE_KEPT_SECONDS = 150.0
"""How long a surge is expected again."""

DEMAND_KEPT_SECONDS = 60.0
"""How long the largest demand of a minute is expected again: not for long, since it varies."""

CLOCK_SECONDS = 0.001
"""The smallest step of a clock."""

EXPECTED_SECONDS = 5.0
"""Age of a window from which the others' rate in it predicts their demand of a minute."""

SHARE = 16
"""Part of the others' demand that is added to it: one of 16."""

REFUSED_SHARE = 3
"""Part of the limit that is added to their demand after a refusal, which hides how much it was."""

ROUND_TRIPS = 16
"""Round trips whose average is the usual one."""

STALE_SECONDS = 2.0
"""Time without a figure after which one request looks first."""


class Peak:
    """Largest value seen within the last `seconds`, or at most twice as long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = -math.inf
        self._largest = self._before = 0

    def see(self, now: float, count: int) -> None:
        """Note a value."""
        self.at(now)
        self._largest = max(self._largest, count)

    def at(self, now: float) -> int:
        """The largest value that still counts."""
        if now >= self._since + self._seconds:
            is_next = now < self._since + 2 * self._seconds
            self._before, self._largest = self._largest if is_next else 0, 0
            self._since = now
        return max(self._before, self._largest)


class OtherClients:
    """Other clients beside our own `Usage`; `now` never goes back between two calls."""

    def __init__(self, ours: Usage) -> None:
        self._ours = ours
        self._begun_at = math.inf
        self._seen_at = -math.inf
        self._per_second = 0.0
        self._surge, self._demand = Peak(SURGE_KEPT_SECONDS), Peak(DEMAND_KEPT_SECONDS)
        self._distance, self._refused_at = Peak(ALONE_SECONDS), -math.inf
        self._theirs = 0
        """Requests of others that the last figure includes, at least."""
        self._round_trip_seconds = 0.0
        self._usual_seconds, self._round_trips = 0.0, 1
        self._figure_at = -math.inf
        # Times of figures, each with `Remaining` plus all requests of ours that it surely includes:
        # a sum that only others can lower. A lower sum before a higher one is dropped.
        self._levels: deque[tuple[float, int]] = deque()
        # The current window: its first figure, when that came, and our requests that it includes.
        self._first_remaining = 0
        self._first_at = -math.inf
        self._counted = 0

    def is_seen(self, now: float) -> bool:
        """Whether another client was seen within the last minutes."""
        return now < self._seen_at + ALONE_SECONDS

    def is_absent(self, now: float) -> bool:
        """Whether none was seen, although a whole window was observed."""
        return now >= self._begun_at + WINDOW_SECONDS and not self.is_seen(now)

    def most(self, now: float, limit: int) -> int | None:
        """Requests of a minute's `limit` to leave to others; None in the first minute."""
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
        """Note a refusal that our requests do not explain: others took the `left` ones.

        Refusals of requests that were on their way together count once.
        """
        self._seen_at = now
        if limit is not None and sent_at >= self._refused_at:
            self._surge.see(now, left + 1)
            self._demand.see(now, limit - self._ours.count_within_minute(now) - in_flight)
            self._distance.see(now, limit // REFUSED_SHARE)
            self._refused_at = now

    def open(self) -> None:
        """Begin a window: the rate seen before counts half in it."""
        per_second = self._per_second / 2
        self._per_second = per_second if per_second > 0.01 else 0.0
        self._round_trip_seconds /= 2

    def begin(self, now: float, remaining: int, uncounted: int) -> None:
        """Note a window's first figure, which may lack `uncounted` of our requests."""
        self._first_remaining, self._first_at = remaining, now
        self._counted = self._ours.sent - uncounted

    def compare(
        self, now: float, sent_at: float, limit: int | None, remaining: int, in_flight: int
    ) -> None:
        """Compare the figure of a request of `sent_at` with our own requests."""
        self._figure_at, self._begun_at = now, min(self._begun_at, now)
        self._round_trip_seconds = max(self._round_trip_seconds, now - sent_at)
        self._usual_seconds += (now - sent_at - self._usual_seconds) / self._round_trips
        self._round_trips = min(self._round_trips + 1, ROUND_TRIPS)
        taken = self._first_remaining - remaining - (self._ours.sent - self._counted)
        if taken > 0:
            self._seen_at = now
            # A coarse clock may not have moved between two answers.
            seconds = max(now - self._first_at, self._round_trip_seconds, CLOCK_SECONDS)
            self._per_second = max(self._per_second, taken / seconds)
        self._theirs = max(0, taken)
        if limit is not None:
            theirs = limit - remaining - self._ours.count_within_minute(sent_at) - in_flight
            self._theirs = max(self._theirs, theirs)
            # Requests before our first prove nothing: a process before this one may have sent them.
            if theirs > 0 and sent_at >= self._begun_at + WINDOW_SECONDS:
                self._seen_at = now
        if self.is_seen(now):
            self._demand.see(now, self._theirs)
            seconds = now - self._first_at
            if limit is not None and seconds >= EXPECTED_SECONDS:
                # One surge may suggest far more: no more than half of the limit is believed.
                self._demand.see(now, min(int(taken / seconds * WINDOW_SECONDS), limit // 2))
        self._measure(now, sent_at, remaining)

    def _measure(self, now: float, sent_at: float, remaining: int) -> None:
        """Measure a surge: how far the sum fell within a round trip, or since the last."""
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
        """Whether one request must look first: the last figure is too old beside others."""
        return self.is_seen(now) and now >= self._figure_at + STALE_SECONDS

    def is_enough(self, now: float, limit: int | None, in_flight: int) -> bool:
        """Whether, beside others, enough are in flight to use the whole limit evenly."""
        if in_flight == 0 or limit is None or not self.is_seen(now):
            return False
        return in_flight >= limit / WINDOW_SECONDS * self._usual_seconds

    def guard(self, now: float) -> int:
        """Requests that others may take between the last figure and one sent now."""
        seconds = self._round_trip_seconds + max(0.0, now - self._figure_at)
        expected = self._per_second * min(seconds, WINDOW_SECONDS)
        demand = self._demand.at(now)
        to_come = max(0, demand + demand // SHARE - self._theirs)
        return max(
            math.ceil(expected + DEVIATIONS * math.sqrt(expected)),
            min(self._surge.at(now), to_come),
        )
