"""Monthly quota: billing cycle, requests used, and requests left.

The API limits the requests of a billing cycle, but returns neither the limit nor the day (API 8.2,
8.5). So both are settings, and the connector counts. A cycle begins at midnight UTC of the billing
day or, in a shorter month, of its last day. One statement counts a request before it is sent,
unless the month is used up. The rate limiter counts the minute.
"""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from statistics import median
from typing import Annotated, Protocol

from connector.errors import Stopped, quota_spent
from connector.settings import Settings
from connector.state.database import Database

USUAL_DAYS = 14
"""Number of days whose median is a usual day."""

RETRY_HOURS = 20
"""Hours until the next request after a report without a time. The next night may try again."""

_CLOCK_STEP = timedelta(seconds=5)

_SPEND = """
    INSERT INTO requests (day, command, kind, requests) SELECT ?1, ?2, ?3, 1
    WHERE ?4 IS NULL
        OR (SELECT coalesce(sum(requests), 0) FROM requests WHERE day >= ?5 AND day < ?6) < ?4
    ON CONFLICT DO UPDATE SET requests = requests + 1
"""


@dataclass(frozen=True, slots=True)
class BillingPeriod:
    """Billing cycle: its first day, and the first day of the next one."""

    begins: date
    ends: date


@dataclass(frozen=True, slots=True)
class RequestUse:
    """Requests spent with this folder's key: one row per day (UTC), command and kind."""

    day: Annotated[date, "The day, in UTC."]
    command: Annotated[str, "Command: `pull`, `push` and so on."]
    kind: Annotated[str, "Kind of request."]
    requests: Annotated[int, "Number of requests."]


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


@dataclass(frozen=True, slots=True)
class QuotaExhaustion:
    """Report by the API that the monthly quota is used up; no request is sent before `until`."""

    noted_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class QuotaStatus:
    """Requests and quota of an account; None is unknown.

    `usual_day` and `forecast` are requests of a usual day and of the whole billing cycle.
    `exhaustion` is None if it no longer applies.
    """

    month: MonthUse
    usual_day: int | None
    forecast: int | None
    exhaustion: QuotaExhaustion | None
    limit_per_minute: int | None


class Request(Protocol):
    """Request of the client, as far as it is counted."""

    @property
    def operation(self) -> str:
        """Operation, such as `list`."""

    @property
    def method_and_path(self) -> str:
        """Method and path for messages."""


class Quota:
    """Counts the requests of one run before they are sent. A client uses it as its meter.

    Args:
        database: State of the account.
        settings: Settings with the monthly quota, its reserve and the billing day.
        command: Command that sends the requests.
        budget: Maximum number of requests of the run.
        keeps_reserve: Whether the run leaves the reserve of the quota unused.
        ignores_quota: Whether requests are sent even if the API reported a used-up month.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        command: str,
        *,
        budget: int | None = None,
        keeps_reserve: bool = True,
        ignores_quota: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.requests = 0
        self.server_ahead, self._per_minute = _server(database)
        """Server clock minus our clock, by the last answer."""
        self._database, self._settings, self._command = database, settings, command
        self._budget, self._keeps_reserve = budget, keeps_reserve
        self._ignores_quota, self._now = ignores_quota, now
        self._noted_ahead, self._exhaustion = (
            self.server_ahead,
            database.fact_as(QuotaExhaustion, "exhaustion"),
        )

    @property
    def today(self) -> date:
        """Day of the server's clock in UTC."""
        return utc_day(self._now() + self.server_ahead)

    def month(self) -> MonthUse:
        """Return the requests of the billing cycle."""
        return month_use(self._database, self._settings, self.today)

    def count_attempt(self, request: Request) -> None:
        """Count one request on the disk. It may be sent afterwards.

        Raises `Stopped` or `WarehouseError`, and then nothing is counted.
        """
        if self._budget is not None and self.requests >= self._budget:
            raise Stopped(f"the limit of {self._budget:,} requests is reached", code="budget_spent")
        found = self._exhaustion
        if found is not None and not self._ignores_quota and self._now() < found.until:
            raise quota_spent(
                f"the API reported at {format_moment(found.noted_at)} that the monthly quota is"
                " used up. To send requests anyway, add --ignore-quota",
                resets_at=format_moment(found.until),
            )
        limit, today = self._settings.monthly_requests, self.today
        period = billing_period(today, self._settings.billing_day)
        kept = self._settings.monthly_reserve if self._keeps_reserve else 0
        room = None if limit is None else limit - kept
        given = (self._command, request.operation, room, period.begins, period.ends)
        if not self._database.write(_SPEND, today, *given):
            month, reserved = self.month(), f"; {kept:,} reserved" if kept else ""
            raise quota_spent(
                f"The monthly limit of {month.limit:,} requests is used up ({month.used:,} used"
                f"{reserved}). The limit resets on {month.period.ends}.",
                resets_at=month.period.ends.isoformat(),
            )
        self.requests += 1

    def record_response(self, status: int, served_at: datetime | None) -> None:
        """Note the server's clock, and that the month is not used up after all."""
        if served_at is not None:
            self.server_ahead = served_at - self._now()
            if abs(self.server_ahead - self._noted_ahead) > _CLOCK_STEP:
                self.record_limit(self._per_minute)
        if self._exhaustion is not None and self._ignores_quota and status != 429:
            self._exhaustion = None
            self._database.note("exhaustion", None)

    def record_limit(self, per_minute: int | None) -> None:
        """Note the rate limit per minute, if known, and the server's clock for the next run."""
        self._per_minute, self._noted_ahead = per_minute or self._per_minute, self.server_ahead
        seconds = self.server_ahead.total_seconds()
        fact = {"ahead_seconds": seconds, "per_minute": self._per_minute}
        self._database.note("server", fact)

    def quota_error(self, request: Request, resets_at: float | None) -> Stopped:
        """Note that the API reported a used-up month, and return the error for it."""
        period = billing_period(self.today, self._settings.billing_day)
        until = _blocked_until(self._now(), resets_at, period)
        self._exhaustion = QuotaExhaustion(self._now(), until)
        self._database.note("exhaustion", self._exhaustion)
        return quota_spent(
            f"{request.method_and_path} was not sent: the monthly quota is used up",
            resets_at=format_moment(until),
        )


# -- Reading ---------------------------------------------------------------------------------------


def quota_status(database: Database, settings: Settings, now: datetime) -> QuotaStatus:
    """Return the requests and the quota of an account."""
    ahead, per_minute = _server(database)
    today, by_day = utc_day(now + ahead), Counter[date]()
    month, exhaustion = (
        month_use(database, settings, today),
        database.fact_as(QuotaExhaustion, "exhaustion"),
    )
    for use in request_uses(database, today - timedelta(days=USUAL_DAYS + 1)):
        by_day[use.day] += use.requests
    return QuotaStatus(
        month=month,
        usual_day=usual_requests(by_day, today),
        forecast=forecast(month, by_day, today),
        exhaustion=exhaustion if exhaustion is not None and now < exhaustion.until else None,
        limit_per_minute=per_minute,
    )


def month_use(database: Database, settings: Settings, today: date) -> MonthUse:
    """Return the requests of the billing cycle that contains a day."""
    period = billing_period(today, settings.billing_day)
    ((used,),) = database.rows(
        "SELECT coalesce(sum(requests), 0) FROM requests WHERE day >= ? AND day < ?",
        *(period.begins, period.ends),
    )
    return MonthUse(period, int(used), settings.monthly_requests, settings.monthly_reserve)


def request_uses(database: Database, since: date = date.min) -> list[RequestUse]:
    """Return the number of requests by day, command and operation, since a day."""
    found = database.rows(
        "SELECT * FROM requests WHERE day >= ? ORDER BY day, command, kind", since
    )
    return [RequestUse(date.fromisoformat(day), *values) for day, *values in found]


def _server(database: Database) -> tuple[timedelta, int | None]:
    """Return the server's clock minus ours, and the rate limit per minute, by the last answers."""
    found = database.fact("server") or {"ahead_seconds": 0, "per_minute": None}
    return timedelta(seconds=found["ahead_seconds"]), found["per_minute"]


# -- Calendar --------------------------------------------------------------------------------------


def utc_day(moment: datetime) -> date:
    """Return the day of a time, in UTC."""
    return moment.astimezone(UTC).date()


def format_moment(moment: datetime) -> str:
    """Format a time for messages: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def billing_period(day: date, billing_day: int) -> BillingPeriod:
    """Return the billing cycle that contains a day."""
    month = day.year * 12 + day.month - 1
    month -= day < _billing_date(month, billing_day)
    return BillingPeriod(_billing_date(month, billing_day), _billing_date(month + 1, billing_day))


def _billing_date(month: int, billing_day: int) -> date:
    """Return the billing day of a month, or its last day. Months are counted from the year 0."""
    year, index = divmod(month, 12)
    return date(year, index + 1, min(billing_day, calendar.monthrange(year, index + 1)[1]))


def usual_requests(by_day: Mapping[date, int], today: date) -> int | None:
    """Return the median of the last complete days, without the first one, which had the load."""
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


def _blocked_until(now: datetime, unix: float | None, period: BillingPeriod) -> datetime:
    """Return the time until which no request is sent after the API reported a used-up month.

    That is the API's time if it is within the billing cycle. Otherwise the report or the billing
    day may be wrong, and the next request is sent within a day.
    """
    latest = datetime.combine(period.ends, time(), UTC)
    with suppress(OverflowError, ValueError, OSError):  # A time outside the calendar.
        if unix is not None and now < (reset := datetime.fromtimestamp(unix, UTC)) <= latest:
            return reset
    return min(latest, now + timedelta(hours=RETRY_HOURS))
