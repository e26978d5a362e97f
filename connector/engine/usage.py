"""Our own requests of the last minute: where nobody else uses the key, `Limit` less those is left.

That is certain whether the server's minute jumps or slides. Everything of ours that may have been
counted is taken to be.

Pure, and part of `pace`: it reads no headers and decides nothing.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right

from connector.engine.gate import WINDOW_SECONDS

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
