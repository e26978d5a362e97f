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
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Protocol

from connector.errors import Stopped, quota_spent
from connector.settings import Settings
from connector.state.database import Database

USUAL_DAYS = 14
"""Number of days whose median is a usual day."""

RETRY_HOURS = 20
"""Hours until the next request if the API reported a used-up month without a time.

Less than a day, so that a nightly run is not refused twice.
"""

TOO_FAST = 429

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
    """Number of requests on one day (UTC), by command and operation."""

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


@dataclass(frozen=True, slots=True)
class QuotaExhaustion:
    """Report by the API that the monthly quota is used up, and the time of its reset.

    `is_told` is True if the API reported `until`, False if it is estimated.
    """

    noted_at: datetime
    until: datetime
    is_told: bool


@dataclass(frozen=True, slots=True)
class QuotaStatus:
    """Requests and quota of an account.

    Attributes:
        usual_day: Requests of a usual day; None if unknown.
        forecast: Expected requests of the billing cycle; None if unknown.
        exhaustion: Report by the API of a used-up month; None if it no longer applies.
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
        self._database, self._settings, self._command = database, settings, command
        self._budget, self._keeps_reserve = budget, keeps_reserve
        self._ignores_quota, self._now = ignores_quota, now
        ahead_seconds, self._per_minute = _server(database)
        self._ahead = self._noted_ahead = timedelta(seconds=ahead_seconds)
        self._exhaustion = _exhaustion(database)

    @property
    def server_ahead(self) -> timedelta:
        """Server clock minus our clock, by the last answer."""
        return self._ahead

    @property
    def today(self) -> date:
        """Day of the server's clock in UTC."""
        return utc_day(self._now() + self.server_ahead)

    def spend(self, kind: str = "") -> None:
        """Count one request on the disk. It may be sent afterwards.

        Raises `Stopped` or `WarehouseError`, and then nothing is counted.
        """
        if self._budget is not None and self.requests >= self._budget:
            raise Stopped(f"the limit of {self._budget:,} requests is reached", code="budget_spent")
        self._check_exhaustion()
        month = self.month()
        kept = month.reserve if self._keeps_reserve else 0
        room = None if month.limit is None else month.limit - kept
        begins, ends = month.period.begins, month.period.ends
        given = (self.today, self._command, kind, room, begins, ends)
        if not self._database.write(_SPEND, *given):
            raise quota_spent(_used_up(month, kept), resets_at=ends.isoformat())
        self.requests += 1

    def month(self) -> MonthUse:
        """Return the requests of the billing cycle."""
        return month_use(self._database, self._settings, self.today)

    # -- the client's meter -----------------------------------------------------------------------

    def count_attempt(self, request: Request) -> None:
        """Count one request. Raises as `spend`."""
        self.spend(request.operation)

    def record_response(self, status: int, served_at: datetime | None) -> None:
        """Note the server's clock, and that the month is not used up after all."""
        if served_at is not None:
            self._ahead = served_at - self._now()
            if abs(self._ahead - self._noted_ahead) > _CLOCK_STEP:
                self._note_server()
        if self._exhaustion is not None and self._ignores_quota and status != TOO_FAST:
            self._exhaustion = None
            self._database.note("exhaustion", None)

    def record_limit(self, per_minute: int | None) -> None:
        """Note the rate limit per minute that the last answer reported."""
        if per_minute is not None and per_minute != self._per_minute:
            self._per_minute = per_minute
            self._note_server()

    def quota_error(self, request: Request, resets_at: float | None) -> Stopped:
        """Note that the API reported a used-up month, and return the error for it."""
        now, told = self._now(), _from_unix_time(resets_at)
        period = billing_period(self.today, self._settings.billing_day)
        until = _blocked_until(now, told, period)
        is_told = until == told
        self._exhaustion = QuotaExhaustion(now, until, is_told)
        fact = {"noted_at": now, "until": until, "is_told": is_told}
        self._database.note("exhaustion", fact)
        untold = "" if is_told else f"; by billing_day, it resets on {period.ends}"
        return quota_spent(
            f"{request.method_and_path} was not sent: the monthly quota is used up{untold}",
            resets_at=format_moment(until) if is_told else str(period.ends),
        )

    def _note_server(self) -> None:
        """Store the server's clock and its limit for the next run."""
        self._noted_ahead, seconds = self._ahead, self._ahead.total_seconds()
        fact = {"ahead_seconds": seconds, "per_minute": self._per_minute}
        self._database.note("server", fact)

    def _check_exhaustion(self) -> None:
        """Raise `Stopped` while the API's report of a used-up month applies."""
        found = self._exhaustion
        if found is None or self._ignores_quota or self._now() >= found.until:
            return
        ends = billing_period(self.today, self._settings.billing_day).ends
        untold = ", without a reset date. By billing_day, it resets on"
        raise quota_spent(
            f"the API reported at {format_moment(found.noted_at)} that the monthly quota is used"
            f" up{'' if found.is_told else f'{untold} {ends}'}. To send requests anyway, add"
            " --ignore-quota",
            resets_at=format_moment(found.until),
        )


# -- Reading ---------------------------------------------------------------------------------------


def quota_status(database: Database, settings: Settings, now: datetime) -> QuotaStatus:
    """Return the requests and the quota of an account."""
    ahead_seconds, per_minute = _server(database)
    today = utc_day(now + timedelta(seconds=ahead_seconds))
    month, by_day = month_use(database, settings, today), Counter[date]()
    for use in request_uses(database, today - timedelta(days=USUAL_DAYS + 1)):
        by_day[use.day] += use.requests
    found = _exhaustion(database)
    return QuotaStatus(
        month=month,
        usual_day=usual_requests(by_day, today),
        forecast=forecast(month, by_day, today),
        exhaustion=found if found is not None and now < found.until else None,
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


def request_uses(database: Database, since: date | None = None) -> list[RequestUse]:
    """Return the number of requests by day, command and operation; all, or since a day."""
    found = database.rows(
        "SELECT * FROM requests WHERE day >= ? ORDER BY day, command, kind", since or ""
    )
    return [
        RequestUse(date.fromisoformat(each["day"]), each["command"], each["kind"], each["requests"])
        for each in found
    ]


def _server(database: Database) -> tuple[float, int | None]:
    """Return the server's clock minus ours, and the rate limit per minute, by the last answers."""
    found = database.fact("server") or {}
    return found.get("ahead_seconds", 0.0), found.get("per_minute")


def _exhaustion(database: Database) -> QuotaExhaustion | None:
    """Return the API's last report of a used-up month; None if there is none."""
    found = database.fact("exhaustion")
    if found is None:
        return None
    noted_at, until = (datetime.fromisoformat(found[name]) for name in ("noted_at", "until"))
    return QuotaExhaustion(noted_at, until, found["is_told"])


# -- Calendar --------------------------------------------------------------------------------------


def utc_day(moment: datetime) -> date:
    """Return the day of a time, in UTC."""
    return moment.astimezone(UTC).date()


def format_moment(moment: datetime) -> str:
    """Format a time for messages: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def billing_period(day: date, billing_day: int) -> BillingPeriod:
    """Return the billing cycle that contains a day."""
    begins = _billing_date(day.year * 12 + day.month - 1, billing_day)
    if day < begins:
        begins = _billing_date(day.year * 12 + day.month - 2, billing_day)
    month = begins.year * 12 + begins.month - 1
    return BillingPeriod(begins, _billing_date(month + 1, billing_day))


def _billing_date(month: int, billing_day: int) -> date:
    """Return the billing day of a month, or its last day. Months are counted from the year 0."""
    year, index = divmod(month, 12)
    return date(year, index + 1, min(billing_day, calendar.monthrange(year, index + 1)[1]))


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


def _used_up(month: MonthUse, kept: int) -> str:
    """Return two sentences for users: the month's limit is used up, and when it resets."""
    reserved = f"; {kept:,} reserved" if kept else ""
    return (
        f"The monthly limit of {month.limit or 0:,} requests is used up ({month.used:,} used"
        f"{reserved}). The limit resets on {month.period.ends}."
    )


def _blocked_until(now: datetime, told: datetime | None, period: BillingPeriod) -> datetime:
    """Return the time until which no request is sent after the API reported a used-up month.

    That is the told time if it is within the billing cycle. Otherwise the report may be wrong, or
    the billing day may be, or another program may have used up the minute. Then the next request is
    sent within a day.
    """
    latest = datetime(period.ends.year, period.ends.month, period.ends.day, tzinfo=UTC)
    if told is not None and now < told <= latest:
        return told
    return min(latest, now + timedelta(hours=RETRY_HOURS))


def _from_unix_time(unix: float | None) -> datetime | None:
    """Return the time of a Unix timestamp; None if it is outside the calendar."""
    with suppress(OverflowError, ValueError, OSError):
        return None if unix is None else datetime.fromtimestamp(unix, UTC)
    return None
