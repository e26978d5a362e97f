"""Who uses the key: our own requests of the last minute, and what others take.

Two questions that no header answers. *How many of ours lie within the last 60 seconds?* Where
nobody else uses the key, `Limit` less those is left for certain, whether the server's minute jumps
or slides. *Does somebody else use it, and how fast?* They give themselves away by a `Remaining`
that ours cannot explain. Everything of ours that may have been counted is taken to be, so that a
sole client never suspects itself.

Pure, and part of `pace`: it reads no headers and decides nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from connector.engine.gate import WINDOW_SECONDS

SLACK_SECONDS = 0.05
"""By how much the server's minute may be longer than ours."""

KEPT_SECONDS = 180.0
"""How long ours are remembered at least: a minute, and as long as an answer may be under way."""

KEPT_MAX = 200_000
"""How many are remembered, at most twice as many: no minute has more."""

ALONE_SECONDS = 300.0
"""How long others must not have shown themselves before the key is taken to be ours alone."""

DEVIATIONS = 3.0
"""How many standard deviations of the others' number the guard allows for."""


class Usage:
    """What is known of the key's use; `now` never goes back from one call to the next."""

    def __init__(self) -> None:
        # When our requests ended, in order: each was counted before that, if at all.
        self._ended: list[float] = []
        self._begun_at = math.inf
        self._others_seen_at = -math.inf
        self._others_per_second = 0.0
        self._round_trip_seconds = 0.0
        self._told_at = -math.inf
        # The current window: its first figure, when it was told, and our requests since.
        self._first_remaining = 0
        self._first_at = -math.inf
        self._sent = 0

    def send(self) -> None:
        """One of ours leaves."""
        self._sent += 1

    def end(self, now: float, sent_at: float) -> None:
        """One of ours has ended and may have been counted."""
        self._ended.append(now)
        if self._ended[0] <= now - 2 * KEPT_SECONDS or len(self._ended) > 2 * KEPT_MAX:
            # Many at once, so that it costs little on average.
            old = bisect_right(self._ended, now - KEPT_SECONDS)
            del self._ended[: max(old, len(self._ended) - KEPT_MAX)]
        self._round_trip_seconds = max(self._round_trip_seconds, now - sent_at)

    def count_since(self, moment: float) -> int:
        """How many of ours have ended after `moment`."""
        return len(self._ended) - bisect_right(self._ended, moment)

    def room(self, now: float, limit: int, in_flight: int) -> int:
        """What is left of any 60 seconds that end now or later, if nobody else uses the key."""
        return limit - self.count_since(now - WINDOW_SECONDS - SLACK_SECONDS) - in_flight

    def freed_at(self, now: float, count: int) -> float:
        """When `count` more of ours, or all, will have left the last minute; `-inf` for none."""
        first = bisect_right(self._ended, now - WINDOW_SECONDS - SLACK_SECONDS)
        if count < 1 or first == len(self._ended):
            return -math.inf
        last = min(first + count, len(self._ended)) - 1
        return self._ended[last] + WINDOW_SECONDS + SLACK_SECONDS

    def gone_at(self) -> float:
        """When all of ours will have left the last minute; `-inf` if none was ever there."""
        return self._ended[-1] + WINDOW_SECONDS + SLACK_SECONDS if self._ended else -math.inf

    def is_shared(self, now: float) -> bool:
        """Whether somebody else has shown himself within some minutes."""
        return now < self._others_seen_at + ALONE_SECONDS

    def is_alone(self, now: float) -> bool:
        """Whether nobody else has, although there was a whole window to do so."""
        return now >= self._begun_at + WINDOW_SECONDS and not self.is_shared(now)

    def suspect(self, now: float) -> None:
        """Somebody else must use the key: a refusal came that ours do not explain."""
        self._others_seen_at = now

    def open(self) -> None:
        """A new window: what was seen of others counts half in it."""
        per_second = self._others_per_second / 2
        self._others_per_second = per_second if per_second > 0.01 else 0.0
        self._round_trip_seconds /= 2

    def begin(self, now: float, remaining: int, uncounted: int) -> None:
        """The window's first figure, which may not count `uncounted` of ours."""
        self._first_remaining, self._first_at, self._sent = remaining, now, uncounted

    def compare(
        self, now: float, sent_at: float, limit: int | None, remaining: int, in_flight: int
    ) -> None:
        """A figure came with the answer to a request of `sent_at`: do ours explain it?"""
        self._told_at, self._begun_at = now, min(self._begun_at, now)
        if limit is not None:
            ours = self.count_since(sent_at - WINDOW_SECONDS - SLACK_SECONDS) + in_flight
            # What was there before us proves nothing: it may have been ourselves a minute ago.
            is_settled = sent_at >= self._begun_at + WINDOW_SECONDS
            if is_settled and limit - remaining > ours:
                self._others_seen_at = now
        taken = self._first_remaining - remaining - self._sent
        if taken > 0:
            self._others_seen_at = now
            seconds = max(now - self._first_at, self._round_trip_seconds)
            self._others_per_second = max(self._others_per_second, taken / seconds)

    def guard(self, now: float) -> int:
        """As many as others may take between the last figure and a request that leaves now."""
        seconds = self._round_trip_seconds + max(0.0, now - self._told_at)
        if self._others_per_second == 0:
            return 0
        expected = self._others_per_second * min(seconds, WINDOW_SECONDS)
        return math.ceil(expected + DEVIATIONS * math.sqrt(expected))
