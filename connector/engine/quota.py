"""Quota: the month's requests, its billing cycle, and how many are left.

The API limits the requests of a billing cycle and tells neither the figure nor the day (API 8.2,
8.5), so that both are settings and the count is ours. A cycle begins at midnight UTC of the billing
day; in a month that is too short, on its last day. Requests are written down before they leave,
many at once: a *block* is taken from what is left, and what was not needed of it is returned.

Pure: days and counts are arguments. The minute's window is `pace`'s affair, and the durable count
is the ledger's.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median

BLOCK_REQUESTS_MAX = 50
"""Requests written down at once: as many may be counted in vain when a process is killed."""

SHARERS = 4
"""A block is at most the fourth part of what is left, so that one process strands no other."""

USUAL_DAYS = 14
"""The days that say how many requests a usual day takes."""

EXHAUSTION_DAYS_MAX = 32
"""A cycle is never longer: an end that the API tells beyond that is not believed."""

UNSETTLED = "unsettled"
"""The kind of requests that were written down for a run which has not ended, or never did."""

RETRY_HOURS = 20
"""After so long the API is asked again where it said that the month is spent and not until when:
less than a day, so that a nightly run is not turned away twice.
"""


@dataclass(frozen=True, slots=True)
class Period:
    """A billing cycle: its first day, and the first day of the next one."""

    begins: date
    ends: date


@dataclass(frozen=True, slots=True)
class Allowance:
    """Settings of the quota.

    They are the plan's `monthly_requests` (None: not known), how many are left to people, and the
    day on which a cycle begins, 1 to 31.
    """

    monthly_requests: int | None
    reserve: int
    billing_day: int


@dataclass(frozen=True, slots=True)
class Use:
    """Requests of one day (UTC), by command and operation, or `UNSETTLED`."""

    day: date
    command: str
    kind: str
    requests: int


@dataclass(frozen=True, slots=True)
class Month:
    """Requests of a cycle, of `limit` (None: not known); `reserve` is for people."""

    period: Period
    used: int
    limit: int | None
    reserve: int

    def room(self, *, keeps_reserve: bool) -> int | None:
        """Requests that may still be reserved; None where there is no limit."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.used - (self.reserve if keeps_reserve else 0))


def day_of(moment: datetime) -> date:
    """The day of a moment, in UTC."""
    return moment.astimezone(UTC).date()


def midnight(day: date) -> datetime:
    """The moment at which a day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def period_of(day: date, billing_day: int) -> Period:
    """The billing cycle that a day belongs to."""
    assert 1 <= billing_day <= 31, billing_day
    begins = _billed(day.year, day.month, billing_day)
    if day < begins:
        begins = _billed(*_shifted(day, -1), billing_day)
    return Period(begins, _billed(*_shifted(begins, 1), billing_day))


def shown(moment: datetime) -> str:
    """A moment as messages have it: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def block_size(room: int | None, budget_left: int | None) -> int:
    """Requests to write down at once: fewer where little is left."""
    size = BLOCK_REQUESTS_MAX
    if room is not None:
        size = min(size, -(-room // SHARERS))
    return size if budget_left is None else min(size, budget_left)


def blocked_until(now: datetime, told_end: datetime | None, period: Period) -> datetime:
    """Until when nothing is asked of the API once it said that the month is spent.

    Its own word counts where it gave one that a cycle can have. Otherwise the billing day may have
    been set wrongly, or not at all, and another program may have used up the minute: then it is
    asked again before a day is over.
    """
    if told_end is not None and now < told_end <= now + timedelta(days=EXHAUSTION_DAYS_MAX):
        return told_end
    return min(midnight(period.ends), now + timedelta(hours=RETRY_HOURS))


def usual_day(by_day: Mapping[date, int], today: date) -> int | None:
    """How many requests a usual day takes: the median of the last days that are over.

    The first day of all is left out, since it held the first load; None while no other is over.
    """
    if not by_day:
        return None
    first = max(min(by_day) + timedelta(days=1), today - timedelta(days=USUAL_DAYS))
    days = [first + timedelta(days=n) for n in range((today - first).days)]
    return round(median(by_day.get(day, 0) for day in days)) if days else None


def forecast(month: Month, by_day: Mapping[date, int], today: date) -> int | None:
    """Requests of the whole cycle after usual days; None before any is usual."""
    usual = usual_day(by_day, today)
    if usual is None:
        return None
    rest_of_today = max(0, usual - by_day.get(today, 0))
    return month.used + rest_of_today + usual * ((month.period.ends - today).days - 1)


def requests_left(*, pending: int, live: int, is_loaded: bool, per_page: int) -> int:
    """About how many requests a resource still needs.

    A detail for each record that waits, the walk, and before it a first load's second look.
    """
    return pending + (0 if is_loaded else -(-live // per_page)) + 2


def _billed(year: int, month: int, billing_day: int) -> date:
    return date(year, month, min(billing_day, calendar.monthrange(year, month)[1]))


def _shifted(day: date, months: int) -> tuple[int, int]:
    """The year and the month so many months away."""
    number = day.year * 12 + day.month - 1 + months
    return number // 12, number % 12 + 1
