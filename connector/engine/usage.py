"""Our own requests of the last minute: where nobody else uses the key, `Limit` less those is left.

That is certain whether the server's minute jumps or slides. Everything of ours that may have been
counted is taken to be.

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


JUMP_MIN = 10
"""Of fewer no jump is made out."""


class Usage:
    """What we have used of the key; `now` never goes back from one call to the next.

    `sent` counts every request that was let go.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.jumps = False
        self._told: tuple[int | None, float, float] = (None, -math.inf, -math.inf)
        # When our requests ended, in order: each was counted before that, if at all.
        self._ended: list[float] = []
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
        last = bisect_right(self._ended, sent_at)
        ours = last - bisect_right(self._ended, sent_at - WINDOW_SECONDS + 2)
        if ours >= JUMP_MIN and limit - remaining < ours // 2:
            self.jumps = True
        if sent_at >= self._told[1]:
            self._told = remaining, sent_at, now

    def left(self, now: float, in_flight: int) -> int | None:
        """What the latest figure leaves where the minute slides: ours free their places."""
        remaining, sent_at, told_at = self._told
        if remaining is None:
            return None
        uncounted = len(self._ended) - bisect_right(self._ended, sent_at) - 1 + in_flight
        oldest = bisect_right(self._ended, 2 * told_at - sent_at - WINDOW_SECONDS)
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
        """What is left of any 60 seconds that end now or later, if nobody else uses the key."""
        return limit - self.count_within_minute(now) - in_flight

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
