"""How servers count requests: fixed windows, windows started by a request, sliding windows, and a
month.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from typing import Literal

MINUTE = 60.0


class Counter(ABC):
    """Rate limit in requests per minute. `busiest` is the most that a window counted."""

    def __init__(self, limit: int) -> None:
        self.limit, self.busiest = limit, 0
        self._counted = deque[float]()

    @abstractmethod
    def begin(self, now: float) -> float:
        """Return the time of the first request that counts now."""

    def count_request(self, now: float) -> bool:
        """Count a request. Returns False if the limit rejects it."""
        if self.remaining(now) <= 0:
            return False
        self._counted.append(now)
        self.busiest = max(self.busiest, len(self._counted))
        return True

    def remaining(self, now: float) -> int:
        """Return the number of requests that the limit still allows."""
        begin = self.begin(now)
        while self._counted and self._counted[0] < begin:
            self._counted.popleft()
        return self.limit - len(self._counted)

    def reset_at(self, now: float) -> float:
        """Return the time of the reset, as the server shows it."""
        return self.begin(now) + MINUTE


class FixedWindow(Counter):
    """Counter per minute; windows start `phase` seconds after the full minute."""

    def __init__(self, limit: int, phase: float = 0.0) -> None:
        super().__init__(limit)
        self.phase = phase

    def begin(self, now: float) -> float:
        return math.floor((now - self.phase) / MINUTE) * MINUTE + self.phase


class FirstRequestWindow(Counter):
    """Counter per minute; a window starts with the first request after the end of the last one."""

    def begin(self, now: float) -> float:
        return self._counted[0] if self._counted and now < self._counted[0] + MINUTE else now


class SlidingWindow(Counter):
    """Counter of the last 60 seconds. The reset shown is the time when the oldest request leaves
    the window ("one") or the newest ("all").
    """

    def __init__(self, limit: int, reset: Literal["one", "all"] = "one") -> None:
        super().__init__(limit)
        self.reset = reset

    def begin(self, now: float) -> float:
        return math.nextafter(now - MINUTE, math.inf)

    def reset_at(self, now: float) -> float:
        if self.remaining(now) == self.limit:
            return now + MINUTE
        return self._counted[0 if self.reset == "one" else -1] + MINUTE


class MonthlyLimit(FixedWindow):
    """Counter with a limit per minute, and with `month_limit` requests until `month_ends_at`. Once
    the month is used up, the reset shown is that of the month.
    """

    def __init__(self, limit: int, month_limit: int, month_ends_at: float) -> None:
        super().__init__(limit)
        self.month_limit, self.month_ends_at, self._spent = month_limit, month_ends_at, 0

    def _is_month_used_up(self, now: float) -> bool:
        return self._spent >= self.month_limit and now < self.month_ends_at

    def count_request(self, now: float) -> bool:
        is_counted = super().count_request(now)
        self._spent += is_counted
        return is_counted

    def remaining(self, now: float) -> int:
        return 0 if self._is_month_used_up(now) else super().remaining(now)

    def reset_at(self, now: float) -> float:
        return self.month_ends_at if self._is_month_used_up(now) else super().reset_at(now)
