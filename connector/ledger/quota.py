"""Monthly quota: billing cycle, requests used, and requests left. Pure.

The API limits the requests of a billing cycle, but returns neither the limit nor the day (API 8.2,
8.5). So both are settings, and the connector counts. A cycle begins at midnight UTC of the billing
day or, in a shorter month, of its last day. Requests are counted before they are sent, in blocks:
unused requests of a block are returned.

The rate limiter counts the minute, and the ledger stores the count of the month.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median

BLOCK_REQUESTS_MAX = 50
"""Maximum number of requests of a block. If a process is killed, as many may be counted and not
sent.
"""

SHARERS = 4
"""A block is at most what is left divided by this, so that other processes get requests too."""

USUAL_DAYS = 14
"""Number of days whose median is a usual day."""

UNSETTLED = "unsettled"
"""Kind of requests that are counted for a run which has not ended."""

RETRY_HOURS = 20
"""Hours until the next request if the API reported a used-up month without a time.

Less than a day, so that a nightly run is not refused twice.
"""


@dataclass(frozen=True, slots=True)
class BillingPeriod:
    """Billing cycle: its first day, and the first day of the next one."""

    begins: date
    ends: date


@dataclass(frozen=True, slots=True)
class Allowance:
    """Settings of the monthly quota.

    Attributes:
        monthly_requests: Requests of the plan; None if unknown.
        reserve: Number of these that runs leave for commands that users start.
        billing_day: Day of the month on which a cycle begins, 1 to 31.
    """

    monthly_requests: int | None
    reserve: int
    billing_day: int


@dataclass(frozen=True, slots=True)
class RequestUse:
    """Number of requests on one day (UTC), by command and kind: the operation, or `UNSETTLED`."""

    day: date
    command: str
    kind: str
    requests: int


@dataclass(frozen=True, slots=True)
class MonthUse:
    """Number of requests used in a billing cycle. `limit` is None if unknown.

    `reserve` is the number of requests that runs leave for commands that users start.
    """

    period: BillingPeriod
    used: int
    limit: int | None
    reserve: int

    def requests_left(self, *, keeps_reserve: bool) -> int | None:
        """Return the number of requests that may still be sent; None without a limit."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.used - (self.reserve if keeps_reserve else 0))


def utc_day(moment: datetime) -> date:
    """Return the day of a time, in UTC."""
    return moment.astimezone(UTC).date()


def midnight(day: date) -> datetime:
    """Return the time at which a day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def billing_period(day: date, billing_day: int) -> BillingPeriod:
    """Return the billing cycle that contains a day."""
    assert 1 <= billing_day <= 31, billing_day
    begins = _billing_date(day.year, day.month, billing_day)
    if day < begins:
        begins = _billing_date(*_add_months(day, -1), billing_day)
    return BillingPeriod(begins, _billing_date(*_add_months(begins, 1), billing_day))


def format_moment(moment: datetime) -> str:
    """Format a time for messages: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def block_size(month_left: int | None, budget_left: int | None) -> int:
    """Return the number of requests of the next block.

    At most `BLOCK_REQUESTS_MAX`, the month's rest divided by `SHARERS`, and the rest of the budget.
    None means no limit.
    """
    size = BLOCK_REQUESTS_MAX
    if month_left is not None:
        size = min(size, -(-month_left // SHARERS))
    return size if budget_left is None else min(size, budget_left)


def describe_used_up_month(month: MonthUse) -> str:
    """Return two sentences for users: the month's limit is used up, and when it resets."""
    reserved = f"; {month.reserve:,} reserved" if month.reserve else ""
    return (
        f"The monthly limit of {month.limit or 0:,} requests is used up ({month.used:,} "
        f"used{reserved}). The limit resets on {month.period.ends}."
    )


def blocked_until(now: datetime, reported_end: datetime | None, period: BillingPeriod) -> datetime:
    """Return the time until which no request is sent after the API reported a used-up month.

    That is the `reported_end` if it is within the billing cycle. Otherwise the report may be wrong,
    or the billing day may be, or another program may have used up the minute. Then the next request
    is sent within a day.
    """
    latest = midnight(period.ends)
    if reported_end is not None and now < reported_end <= latest:
        return reported_end
    return min(latest, now + timedelta(hours=RETRY_HOURS))


def usual_requests(by_day: Mapping[date, int], today: date) -> int | None:
    """Return the requests of a usual day: the median of the last `USUAL_DAYS` complete days.

    The very first day is left out, since it had the first load. None if no other day is complete.
    """
    if not by_day:
        return None
    first = max(min(by_day) + timedelta(days=1), today - timedelta(days=USUAL_DAYS))
    days = [first + timedelta(days=n) for n in range((today - first).days)]
    return round(median(by_day.get(day, 0) for day in days)) if days else None


def forecast(month: MonthUse, by_day: Mapping[date, int], today: date) -> int | None:
    """Return the expected number of requests of the billing cycle; None without a usual day."""
    usual = usual_requests(by_day, today)
    if usual is None:
        return None
    rest_of_today = max(0, usual - by_day.get(today, 0))
    return month.used + rest_of_today + usual * ((month.period.ends - today).days - 1)


def estimate_remaining_requests(
    *, pending_records: int, live_records: int, is_loaded: bool, per_page: int
) -> int:
    """Return the estimated number of requests until a resource is loaded and verified.

    Each pending record needs one, and the scan two. Without a finished first load, each page of the
    second read needs one more.
    """
    return pending_records + (0 if is_loaded else -(-live_records // per_page)) + 2


def _billing_date(year: int, month: int, billing_day: int) -> date:
    """Return the billing day in a month, or the last day of a shorter month."""
    return date(year, month, min(billing_day, calendar.monthrange(year, month)[1]))


def _add_months(day: date, months: int) -> tuple[int, int]:
    """Return the year and the month after a number of months."""
    number = day.year * 12 + day.month - 1 + months
    return number // 12, number % 12 + 1
