"""Monthly quota: billing cycles, the count before each request, and reports of the API."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.client.messages import Request
from connector.errors import Stopped
from connector.settings import Settings, load_settings
from connector.state.database import Database
from connector.state.quota import Quota, billing_period, quota_status, request_uses, usual_requests

NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)
LIST = Request("jobs", "list", "GET", "/api/v1/jobs", "jobs.read")


def settings_of(folder: Path, **values: Any) -> Settings:
    """Return settings with these limits."""
    environ = {f"CONNECTOR_{name.upper()}": str(value) for name, value in values.items()}
    return load_settings({}, {"CONNECTOR_DATA_DIR": str(folder), **environ}, folder)


def quota_of(folder: Path, *, at: datetime = NOON, **more: Any) -> Quota:
    """Return the count of a run at this time, of 20 requests a month with 1 reserved."""
    settings = settings_of(folder, monthly_requests=20)
    return Quota(Database(folder), settings, "pull", now=lambda: at, **more)


def spend_all(quota: Quota) -> int:
    """Spend until the quota refuses, and return the number of requests."""
    while True:
        try:
            quota.count_attempt(LIST)
        except Stopped:
            return quota.requests


@pytest.mark.parametrize("billing_day", range(1, 32))
def test_billing_cycles_follow_each_other_without_a_gap(billing_day: int) -> None:
    day, before = date(2023, 1, 1), billing_period(date(2022, 12, 31), billing_day)
    while day < date(2028, 3, 2):
        period = billing_period(day, billing_day)
        assert period.begins <= day < period.ends
        assert period == before or period.begins == before.ends == day
        length = calendar.monthrange(period.begins.year, period.begins.month)[1]
        assert min(billing_day, length) == period.begins.day
        day, before = day + timedelta(days=1), period


def test_runs_leave_the_reserve_to_people_and_no_one_exceeds_the_month(tmp_path: Path) -> None:
    assert 19 == spend_all(quota_of(tmp_path))
    assert 0 == spend_all(quota_of(tmp_path))
    assert 1 == spend_all(quota_of(tmp_path, keeps_reserve=False))
    assert 20 == sum(use.requests for use in request_uses(Database(tmp_path)))


def test_the_server_clock_decides_about_the_day(tmp_path: Path) -> None:
    quota = quota_of(tmp_path, at=datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    quota.record_response(200, datetime(2026, 2, 1, 0, 1, tzinfo=UTC))
    quota.count_attempt(LIST)

    assert [date(2026, 2, 1)] == [use.day for use in request_uses(Database(tmp_path))]
    # The next run knows it before its first answer.
    later = quota_of(tmp_path, at=datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    assert date(2026, 2, 1) == later.today


@pytest.mark.parametrize(("told", "until"), [
    (NOON + timedelta(days=3), NOON + timedelta(days=3)),
    (None, NOON + timedelta(hours=20)),
    (NOON - timedelta(days=1), NOON + timedelta(hours=20)),
    (NOON + timedelta(days=60), NOON + timedelta(hours=20)),
])  # fmt: skip
def test_a_report_of_a_used_up_month_stops_requests_until_its_end(
    tmp_path: Path, told: datetime | None, until: datetime
) -> None:
    quota = quota_of(tmp_path)
    quota.quota_error(LIST, told.timestamp() if told else None)

    assert 0 == spend_all(quota)
    assert 0 == spend_all(quota_of(tmp_path, at=until - timedelta(seconds=1)))
    assert 0 < spend_all(quota_of(tmp_path, at=until))


def test_a_request_that_is_answered_ends_the_report(tmp_path: Path) -> None:
    quota_of(tmp_path).quota_error(LIST, None)
    quota = quota_of(tmp_path, ignores_quota=True)
    quota.count_attempt(LIST)
    quota.record_response(429, None)
    assert 0 == spend_all(quota_of(tmp_path))
    quota.record_response(200, None)

    assert 0 < spend_all(quota_of(tmp_path))


def test_the_status_shows_the_limit_and_the_forecast(tmp_path: Path) -> None:
    for day in range(5):
        quota_of(tmp_path, at=NOON - timedelta(days=day)).count_attempt(LIST)
    quota_of(tmp_path).record_limit(600)
    settings = settings_of(tmp_path, monthly_requests=20)
    found = quota_status(Database(tmp_path), settings, NOON)

    assert (5, 20, 600, 1) == (
        *(found.month.used, found.month.limit, found.limit_per_minute, found.usual_day),
    )
    assert 5 + 18 == found.forecast


@pytest.mark.parametrize(("by_day", "usual"), [
    ({}, None), ({0: 9}, None), ({1: 500, 0: 9}, None), ({3: 500, 2: 10, 1: 20}, 15),
    ({3: 500, 2: 10}, 5),
])  # fmt: skip
def test_a_usual_day_is_the_median_without_the_first_one(
    by_day: dict[int, int], usual: int | None
) -> None:
    today = NOON.date()
    days = {today - timedelta(days=ago): count for ago, count in by_day.items()}

    assert usual == usual_requests(days, today)
