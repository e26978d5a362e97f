"""Remaining requests of the workspace: the minute's window and the month's quota (API 8)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from connector.sandbox.behaviour import Behaviours

WINDOW_SECONDS = 60
PER_MINUTE_DEFAULT = 1_000_000
"""The limit where none is set: the headers are always sent, and no client reaches it."""


@dataclass(frozen=True, slots=True)
class RateFigures:
    """Values of the three rate headers; `reset_at` is a Unix time in seconds."""

    limit: int
    remaining: int
    reset_at: int


class RequestLimits:
    """Counters of requests in a minute and in a calendar month in UTC."""

    def __init__(
        self, behaviours: Behaviours, *, per_minute: int | None, per_month: int | None
    ) -> None:
        self.per_minute = PER_MINUTE_DEFAULT if per_minute is None else per_minute
        self.per_month = per_month
        self._behaviours = behaviours
        # When each request leaves the window.
        self._leaving: deque[float] = deque()
        self._spent_in_month = 0
        self._month = (0, 0)

    def try_to_count(self, now: datetime) -> bool:
        """Count a request and return True; return False if a limit is reached."""
        self._drop_expired(now)
        if len(self._leaving) >= self.per_minute or self._is_month_spent():
            return False
        self._leaving.append(self._window_end(now))
        self._spent_in_month += 1
        return True

    def rate_figures(self, now: datetime) -> RateFigures:
        """Return the values of the rate headers."""
        self._drop_expired(now)
        remaining = self.per_minute - len(self._leaving)
        reset_at = self._leaving[0] if self._leaving else self._window_end(now)
        if self._is_month_spent():
            remaining = 0
            if self._behaviours.month_reset == "month":
                first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0)
                next_month = (first + timedelta(days=32)).replace(day=1, microsecond=0)
                reset_at = next_month.timestamp()
        return RateFigures(self.per_minute, remaining, math.ceil(reset_at))

    def _is_month_spent(self) -> bool:
        """Return True if the monthly limit is reached."""
        return self.per_month is not None and self._spent_in_month >= self.per_month

    def _window_end(self, now: datetime) -> float:
        """Return the Unix time until which a request at `now` is counted."""
        at = now.timestamp()
        if self._behaviours.rate_window == "aligned":
            return at - at % WINDOW_SECONDS + WINDOW_SECONDS
        if self._behaviours.rate_window == "first_request" and self._leaving:
            return self._leaving[0]
        return at + WINDOW_SECONDS

    def _drop_expired(self, now: datetime) -> None:
        """Remove requests that are no longer counted at this time."""
        while self._leaving and now.timestamp() >= self._leaving[0]:
            self._leaving.popleft()
        month = (now.astimezone(UTC).year, now.astimezone(UTC).month)
        if month != self._month:
            self._month, self._spent_in_month = month, 0
