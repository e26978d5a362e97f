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

    def spend(self, now: float) -> bool:
        """Count one request if the limit allows it."""

    def left(self, now: float) -> int:
        """Return the number of requests left."""

    def reset_at(self, now: float) -> float:
        """Return the time of the reset, as the server shows it."""


@dataclass
class FixedWindow:
    """One count per minute; windows start `phase` seconds after the full minute."""

    limit: int
    phase: float = 0.0
    busiest: int = 0
    _window: float = -math.inf
    _spent: int = 0

    def _turn(self, now: float) -> None:
        window = math.floor((now - self.phase) / MINUTE)
        if window != self._window:
            self._window, self._spent = window, 0

    def spend(self, now: float) -> bool:
        """Count one request if the limit allows it."""
        self._turn(now)
        if self._spent >= self.limit:
            return False
        self._spent += 1
        self.busiest = max(self.busiest, self._spent)
        return True

    def left(self, now: float) -> int:
        """Return the number of requests left."""
        self._turn(now)
        return self.limit - self._spent

    def reset_at(self, now: float) -> float:
        """Return the end of this minute."""
        self._turn(now)
        return (self._window + 1) * MINUTE + self.phase


@dataclass
class FirstRequestWindow:
    """Windows that start with the first request after the end of the last window."""

    limit: int
    busiest: int = 0
    _ends_at: float = -math.inf
    _spent: int = 0

    def spend(self, now: float) -> bool:
        """Count one request if the limit allows it."""
        if now >= self._ends_at:
            self._ends_at, self._spent = now + MINUTE, 0
        if self._spent >= self.limit:
            return False
        self._spent += 1
        self.busiest = max(self.busiest, self._spent)
        return True

    def left(self, now: float) -> int:
        """Return the number of requests left."""
        return self.limit - (self._spent if now < self._ends_at else 0)

    def reset_at(self, now: float) -> float:
        """Return the end of the window."""
        return self._ends_at if now < self._ends_at else now + MINUTE


@dataclass
class SlidingWindow:
    """The last 60 seconds at any time. At `reset` either the oldest request or all requests have
    left the window.
    """

    limit: int
    reset: Literal["one", "all"] = "one"
    busiest: int = 0
    _counted: deque[float] = field(default_factory=deque)

    def _slide(self, now: float) -> None:
        while self._counted and self._counted[0] <= now - MINUTE:
            self._counted.popleft()

    def spend(self, now: float) -> bool:
        """Count one request if the limit allows it."""
        self._slide(now)
        if len(self._counted) >= self.limit:
            return False
        self._counted.append(now)
        self.busiest = max(self.busiest, len(self._counted))
        return True

    def left(self, now: float) -> int:
        """Return the number of requests left."""
        self._slide(now)
        return self.limit - len(self._counted)

    def reset_at(self, now: float) -> float:
        """Return the time when the oldest or the newest request leaves the minute."""
        self._slide(now)
        if not self._counted:
            return now + MINUTE
        return (self._counted[0] if self.reset == "one" else self._counted[-1]) + MINUTE


@dataclass
class Month:
    """A fixed minute within a month of `month_limit` requests, which ends at `month_ends_at`.

    When it is spent, the reset shown is the month's or, on some servers, the minute's.
    """

    limit: int
    month_limit: int
    month_ends_at: float
    shows: Literal["month", "minute"] = "month"
    busiest: int = 0
    _spent: int = 0

    def __post_init__(self) -> None:
        self._minute = FixedWindow(self.limit)

    def _is_spent(self, now: float) -> bool:
        return self._spent >= self.month_limit and now < self.month_ends_at

    def spend(self, now: float) -> bool:
        """Count one request in both if both limits allow it."""
        if self._is_spent(now) or not self._minute.spend(now):
            return False
        self._spent += 1
        self.busiest = self._minute.busiest
        return True

    def left(self, now: float) -> int:
        """Return the number of requests left."""
        return 0 if self._is_spent(now) else self._minute.left(now)

    def reset_at(self, now: float) -> float:
        """Return the end of the minute or of the month."""
        is_shown = self._is_spent(now) and self.shows == "month"
        return self.month_ends_at if is_shown else self._minute.reset_at(now)
