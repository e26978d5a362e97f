"""Quota: the month's requests, its billing cycle, and how many are left.

The API limits the requests of a billing cycle, but shows neither the number nor the day (API 8.2,
8.5). So both are settings, and the connector counts. A cycle begins at midnight UTC of the billing
day or, in a month that is too short, of its last day. Requests are counted before they leave, many
at once: a *block* is taken from what is left, and the unused rest of it is returned.

Pure: days and counts are arguments. The rate limiter counts the minute, and the ledger keeps the
month's count.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median

BLOCK_REQUESTS_MAX = 50
"""Requests counted at once; if a process is killed, so many may be counted and not sent."""

SHARERS = 4
"""A block is at most a fourth of what is left, so that other processes find some too."""

USUAL_DAYS = 14
"""Days whose median is a usual day's number of requests."""

UNSETTLED = "unsettled"
"""Kind of requests that were counted for a run which has not ended."""

RETRY_HOURS = 20
"""Wait before the next request if the API said that the month is spent, but not until when.

It is less than a day, so that a nightly run is not refused twice.
"""


@dataclass(frozen=True, slots=True)
class Period:
    """Billing cycle: its first day, and the first day of the next one."""

    begins: date
    ends: date


@dataclass(frozen=True, slots=True)
class Allowance:
    """Settings of the quota.

    `monthly_requests` are the plan's (None: not known), `reserve` of them are left for people, and
    `billing_day` is the day on which a cycle begins, 1 to 31.
    """

    monthly_requests: int | None
    reserve: int
    billing_day: int


@dataclass(frozen=True, slots=True)
class RequestUse:
    """Requests of one day (UTC), by command and operation, or `UNSETTLED`."""

    day: date
    command: str
    kind: str
    requests: int


@dataclass(frozen=True, slots=True)
class MonthUse:
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
    """The day of a time, in UTC."""
    return moment.astimezone(UTC).date()


def midnight(day: date) -> datetime:
    """The time at which a day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def period_of(day: date, billing_day: int) -> Period:
    """The billing cycle that a day belongs to."""
    assert 1 <= billing_day <= 31, billing_day
    begins = _billed(day.year, day.month, billing_day)
    if day < begins:
        begins = _billed(*_shifted(day, -1), billing_day)
    return Period(begins, _billed(*_shifted(begins, 1), billing_day))


def format_moment(moment: datetime) -> str:
    """A time as messages have it: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def block_size(room: int | None, budget_left: int | None) -> int:
    """Requests to write down at once: fewer where little is left."""
    size = BLOCK_REQUESTS_MAX
    if room is not None:
        size = min(size, -(-room // SHARERS))
    return size if budget_left is None else min(size, budget_left)


def month_used_up(month: MonthUse) -> str:
    """Return the sentences on a monthly limit that leaves no request for a pull."""
    reserved = f"; {month.reserve:,} reserved" if month.reserve else ""
    return (
        f"The monthly limit of {month.limit or 0:,} requests is used up ({month.used:,} "
        f"used{reserved}). The limit resets on {month.period.ends}."
    )


def blocked_until(now: datetime, told_end: datetime | None, period: Period) -> datetime:
    """Return the time before which no request leaves, after the API called the month spent.

    An end within the billing cycle counts. Any other end may be wrong, as may be the billing day,
    or another program may have used up the minute: then a request leaves before a day is over.
    """
    latest = midnight(period.ends)
    if told_end is not None and now < told_end <= latest:
        return told_end
    return min(latest, now + timedelta(hours=RETRY_HOURS))


def usual_requests(by_day: Mapping[date, int], today: date) -> int | None:
    """Requests of a usual day: the median of the last complete days.

    The first day of all is left out, since it held the first load; None while no other is over.
    """
    if not by_day:
        return None
    first = max(min(by_day) + timedelta(days=1), today - timedelta(days=USUAL_DAYS))
    days = [first + timedelta(days=n) for n in range((today - first).days)]
    return round(median(by_day.get(day, 0) for day in days)) if days else None


def forecast(month: MonthUse, by_day: Mapping[date, int], today: date) -> int | None:
    """Requests of the whole cycle after usual days; None before any is usual."""
    usual = usual_requests(by_day, today)
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
