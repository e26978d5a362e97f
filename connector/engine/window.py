"""What the server told of the window that is open, for `pace`.

Pure, and part of `pace`: it reads no headers and decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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
        """Take in the figures of an answer to a request of this window; `remaining` only falls."""
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
