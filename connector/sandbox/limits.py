"""How many requests are left: the minute's window and the month's allowance (API 8).

Both belong to the workspace's plan and are shared by its keys. The clock is passed into every
call. This module sends nothing; the application asks it before each request and shows its
figures in the headers.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from connector.sandbox.behaviour import Behaviours

WINDOW_SECONDS = 60
PER_MINUTE_DEFAULT = 1_000_000
"""The limit where none is asked for: headers are always sent, and nobody meets it."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The figures of the three headers: `reset_at` is a Unix timestamp in whole seconds."""

    limit: int
    remaining: int
    reset_at: int


class Limits:
    """Counts requests within a minute and within a calendar month (UTC)."""

    def __init__(
        self, behaviours: Behaviours, *, per_minute: int | None, per_month: int | None
    ) -> None:
        self.per_minute = PER_MINUTE_DEFAULT if per_minute is None else per_minute
        self.per_month = per_month
        self._behaviours = behaviours
        # When requests leave the window, with how many: one entry, unless the window slides.
        self._leaving: deque[tuple[float, int]] = deque()
        self._spent = 0
        self._month = (0, 0)
        self._spent_in_month = 0

    def spend(self, now: datetime) -> bool:
        """Count one request, if one is left; says whether it was."""
        self._forget(now)
        if self._spent >= self.per_minute or self._is_month_spent():
            return False
        leaves_at, together = self._end(now), 0
        if self._leaving and self._leaving[-1][0] == leaves_at:
            _, together = self._leaving.pop()
        self._leaving.append((leaves_at, together + 1))
        self._spent += 1
        self._spent_in_month += 1
        return True

    def allowance(self, now: datetime) -> Allowance:
        """What the headers of an answer at this moment say."""
        self._forget(now)
        remaining = self.per_minute - self._spent
        reset_at = self._leaving[0][0] if self._leaving else self._end(now)
        if self._is_month_spent():
            remaining = 0
            if self._behaviours.month_reset == "month":
                reset_at = _next_month(now).timestamp()
        return Allowance(self.per_minute, remaining, math.ceil(reset_at))

    def _is_month_spent(self) -> bool:
        return self.per_month is not None and self._spent_in_month >= self.per_month

    def _end(self, now: datetime) -> float:
        """When a request of this moment leaves the window."""
        at = now.timestamp()
        if self._behaviours.rate_window == "aligned":
            return at - at % WINDOW_SECONDS + WINDOW_SECONDS
        if self._behaviours.rate_window == "first_request" and self._leaving:
            return self._leaving[0][0]
        return at + WINDOW_SECONDS

    def _forget(self, now: datetime) -> None:
        """Drop what belongs to an earlier window or month."""
        while self._leaving and now.timestamp() >= self._leaving[0][0]:
            self._spent -= self._leaving.popleft()[1]
        month = (now.astimezone(UTC).year, now.astimezone(UTC).month)
        if month != self._month:
            self._month, self._spent_in_month = month, 0


def _next_month(now: datetime) -> datetime:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
