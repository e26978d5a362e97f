"""The gate that a 429 closes, for all requests of a key at once (API 7.2, 8.4).

It stays closed until the reset that the server told, or ever longer where it told none or was
refused again after it; chance only lengthens that. Behind it the requests in flight start at one
and grow by one with each answer. Two 429s with a whole window between them and nothing but
refusals in between are no longer the minute's: the month is spent (API 8.2), and the gate stays
shut.

Pure, and part of `pace`: it knows no headers and no window, and lets nobody through itself.
"""

from __future__ import annotations

import math

WINDOW_SECONDS = 60.0
"""A window of the limit "per minute" (API 8.2)."""

RESOLUTION_SECONDS = 1.0
"""`Reset` may be cut to whole seconds. `Date` is too, but that errs towards waiting."""

BACKOFF_SECONDS_MIN = 15.0
"""The first wait after a 429 that tells no reset. It doubles, up to a whole window."""

JITTER_SECONDS_MAX = 3.0
"""Added, never subtracted, so that several processes do not come back at once."""

RAMP_MAX = 32
"""Requests in flight from which a 429 is forgotten."""


class Gate:
    """Closed until `opens_at`; `in_flight_max` requests may be under way at once behind it.

    `is_month_spent` says that `opens_at` is the month's reset, or for ever where that is unknown;
    `month_resets_at` is the same moment as the server told it.
    """

    def __init__(self) -> None:
        self.opens_at = -math.inf
        self.in_flight_max = RAMP_MAX
        self.is_month_spent = False
        self.month_resets_at: float | None = None
        self._first_at: float | None = None
        self._last_at = -math.inf
        self._refusals = 0

    def is_full(self, in_flight: int) -> bool:
        """Whether so many in flight are as many as a recent 429 allows."""
        return self.in_flight_max < RAMP_MAX and in_flight >= self.in_flight_max

    def stop(self, opens_at: float, month_resets_at: float | None) -> None:
        """The month is spent."""
        self.opens_at, self.in_flight_max = opens_at, 1
        self.is_month_spent, self.month_resets_at = True, month_resets_at

    def reopen(self) -> None:
        """The month is over: nothing of it counts any more."""
        self.is_month_spent, self.month_resets_at = False, None
        self._first_at, self._refusals = None, 0

    def close(
        self,
        now: float,
        sent_at: float,
        seconds: float | None,
        freed_seconds: float,
        jitter: float,
    ) -> None:
        """A request was refused, for `seconds` from now or for nobody knows how long.

        In `freed_seconds` something of ours leaves the last minute, if that is not in the past.
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
        self.opens_at = max(self.opens_at, now + closed)

    def _backoff_seconds(self, told: float | None, freed_seconds: float) -> float:
        if told is None:
            return max(_doubled(self._refusals - 1), freed_seconds)
        told = max(0.0, told) + RESOLUTION_SECONDS
        # Refused again after waiting as told: the server's word alone is not enough any more.
        return told if self._refusals < 2 else max(told, _doubled(self._refusals - 2))

    def admit(self, sent_at: float) -> None:
        """A request that left at `sent_at` was answered, and not with a 429."""
        if sent_at >= self._last_at and not self.is_month_spent:
            self._first_at, self._refusals = None, 0
            self.in_flight_max = min(self.in_flight_max + 1, RAMP_MAX)


def _doubled(times: int) -> float:
    # Two doublings reach the window; a larger power would only overflow one day.
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(times, 2), WINDOW_SECONDS)
