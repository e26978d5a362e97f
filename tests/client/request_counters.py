"""How servers count requests: fixed windows, windows started by a request, sliding windows, and a
month.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, Protocol

MINUTE = 60.0


class Counter(Protocol):
    """Rate limit in requests per minute."""

    limit: int
    busiest: int

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""

    def reset_at(self, now: float) -> float:
        """Return the time of the reset, as the server shows it."""


@dataclass
class FixedWindow:
    """Counter per minute; windows start `phase` seconds after the full minute."""

    limit: int
    phase: float = 0.0
    busiest: int = 0
    _window: float = -math.inf
    _spent: int = 0

    def _start_window(self, now: float) -> None:
        """Reset the count if a new window has started."""
        window = math.floor((now - self.phase) / MINUTE)
        if window != self._window:
            self._window, self._spent = window, 0

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""
        self._start_window(now)
        if self._spent >= self.limit:
            return False
        self._spent += 1
        self.busiest = max(self.busiest, self._spent)
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        self._start_window(now)
        return self.limit - self._spent

    def reset_at(self, now: float) -> float:
        """Return the end of this minute."""
        self._start_window(now)
        return (self._window + 1) * MINUTE + self.phase


@dataclass
class FirstRequestWindow:
    """Counter per minute; a window starts with the first request after the end of the last one."""

    limit: int
    busiest: int = 0
    _ends_at: float = -math.inf
    _spent: int = 0

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""
        if now >= self._ends_at:
            self._ends_at, self._spent = now + MINUTE, 0
        if self._spent >= self.limit:
            return False
        self._spent += 1
        self.busiest = max(self.busiest, self._spent)
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        return self.limit - (self._spent if now < self._ends_at else 0)

    def reset_at(self, now: float) -> float:
        """Return the end of the window."""
        return self._ends_at if now < self._ends_at else now + MINUTE


@dataclass
class SlidingWindow:
    """Counter of the last 60 seconds. The reset shown is the time when the oldest request leaves
    the window ("one") or the newest ("all").
    """

    limit: int
    reset: Literal["one", "all"] = "one"
    busiest: int = 0
    _counted: deque[float] = field(default_factory=deque)

    def _forget_old_requests(self, now: float) -> None:
        """Forget the requests that are older than a minute."""
        while self._counted and self._counted[0] <= now - MINUTE:
            self._counted.popleft()

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""
        self._forget_old_requests(now)
        if len(self._counted) >= self.limit:
            return False
        self._counted.append(now)
        self.busiest = max(self.busiest, len(self._counted))
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        self._forget_old_requests(now)
        return self.limit - len(self._counted)

    def reset_at(self, now: float) -> float:
        """Return the time when the oldest or the newest request leaves the minute."""
        self._forget_old_requests(now)
        if not self._counted:
            return now + MINUTE
        return (self._counted[0] if self.reset == "one" else self._counted[-1]) + MINUTE


@dataclass
class MonthlyLimit:
    """Counter with a limit per minute, and with `month_limit` requests until `month_ends_at`. Once
    the month is used up, the reset shown is that of the month.
    """

    limit: int
    month_limit: int
    month_ends_at: float
    busiest: int = 0
    _spent: int = 0

    def __post_init__(self) -> None:
        self._minute = FixedWindow(self.limit)

    def _is_month_used_up(self, now: float) -> bool:
        """Return True if the month has not ended and all its requests are counted."""
        return self._spent >= self.month_limit and now < self.month_ends_at

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if one of the limits rejects it."""
        if self._is_month_used_up(now) or not self._minute.count_request(now):
            return False
        self._spent += 1
        self.busiest = self._minute.busiest
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        return 0 if self._is_month_used_up(now) else self._minute.remaining(now)

    def reset_at(self, now: float) -> float:
        """Return the end of the month if it is used up and shown, else of the minute."""
        is_used_up = self._is_month_used_up(now)
        return self.month_ends_at if is_used_up else self._minute.reset_at(now)
