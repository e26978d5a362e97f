"""The monthly quota: billing cycles, blocks, the end reported by the API, and the forecast."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from connector.ledger.quota import (
    BLOCK_REQUESTS_MAX,
    BillingPeriod,
    MonthUse,
    billing_period,
    block_size,
    blocked_until,
    estimate_remaining_requests,
    forecast,
    usual_requests,
    utc_day,
)

NOON = datetime(2026, 2, 10, 12, tzinfo=UTC)
CYCLE = BillingPeriod(date(2026, 2, 1), date(2026, 3, 1))


@pytest.mark.parametrize("billing_day", range(1, 32))
def test_billing_cycles_follow_each_other_without_a_gap(billing_day: int) -> None:
    day, before = date(2023, 1, 1), billing_period(date(2022, 12, 31), billing_day)
    while day < date(2028, 3, 2):
        period = billing_period(day, billing_day)
        assert period.begins <= day < period.ends
        assert period == before or period.begins == before.ends == day
        length = calendar.monthrange(period.begins.year, period.begins.month)[1]
        assert min(billing_day, length) == period.begins.day
        assert 28 <= (period.ends - period.begins).days <= 31
        day, before = day + timedelta(days=1), period


@pytest.mark.parametrize(
    ("day", "begins", "ends"),
    [
        ("2026-01-30", "2025-12-31", "2026-01-31"),
        ("2026-01-31", "2026-01-31", "2026-02-28"),
        ("2026-02-28", "2026-02-28", "2026-03-31"),
        ("2028-02-28", "2028-01-31", "2028-02-29"),
        ("2026-12-31", "2026-12-31", "2027-01-31"),
    ],
)
def test_a_billing_cycle_from_the_31st_starts_on_the_last_day_of_short_months(
    day: str, begins: str, ends: str
) -> None:
    expected = BillingPeriod(date.fromisoformat(begins), date.fromisoformat(ends))

    assert expected == billing_period(date.fromisoformat(day), 31)


def test_billing_days_are_days_of_utc() -> None:
    moment = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))

    assert date(2026, 2, 28) == utc_day(moment)


@pytest.mark.parametrize(
    ("room", "budget", "expected"),
    [
        (None, None, BLOCK_REQUESTS_MAX),
        (1000, None, 50),
        (100, None, 25),
        (3, None, 1),
        (1, None, 1),
        (0, None, 0),
        (None, 7, 7),
        (100, 7, 7),
        (8, 7, 2),
    ],
)
def test_request_blocks_shrink_towards_the_end_of_the_quota(
    room: int | None, budget: int | None, expected: int
) -> None:
    assert expected == block_size(room, budget)


@pytest.mark.parametrize(("keeps", "used", "expected"), [(True, 70, 20), (False, 70, 30)])
def test_the_reserve_is_kept_for_manual_work(*, keeps: bool, used: int, expected: int) -> None:
    assert expected == MonthUse(CYCLE, used, 100, 10).requests_left(keeps_reserve=keeps)


def test_the_remaining_quota_is_never_negative() -> None:
    assert 0 == MonthUse(CYCLE, 150, 100, 10).requests_left(keeps_reserve=False)
    assert None is MonthUse(CYCLE, 150, None, 0).requests_left(keeps_reserve=True)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (NOON + timedelta(days=5), NOON + timedelta(days=5)),
        # An end after the billing cycle's does not stop the pulls of every night until then.
        (NOON + timedelta(days=40), NOON + timedelta(hours=20)),
        (NOON - timedelta(days=1), NOON + timedelta(hours=20)),
        (NOON + timedelta(days=400), NOON + timedelta(hours=20)),
        (None, NOON + timedelta(hours=20)),
    ],
)
def test_the_reported_end_of_the_quota_is_used_if_it_is_plausible(
    reported: datetime | None, expected: datetime
) -> None:
    assert expected == blocked_until(NOON, reported, CYCLE)


def test_an_exhausted_quota_is_open_again_at_the_next_billing_cycle() -> None:
    now = datetime(2026, 2, 28, 23, tzinfo=UTC)

    assert datetime(2026, 3, 1, tzinfo=UTC) == blocked_until(now, None, CYCLE)


def test_a_first_load_does_not_distort_the_forecast() -> None:
    today = date(2026, 2, 10)
    by_day = {today - timedelta(days=n): 100 for n in range(7)} | {date(2026, 2, 3): 20_000}
    month = MonthUse(CYCLE, 20_700, 50_000, 0)

    assert 100 == usual_requests(by_day, today)
    assert 20_700 + 18 * 100 == forecast(month, by_day, today)


def test_days_without_a_pull_count_in_the_forecast() -> None:
    today = date(2026, 2, 28)
    by_day = {date(2026, 2, 20): 9, date(2026, 2, 22): 40, date(2026, 2, 24): 40} | {today: 5}

    assert 0 == usual_requests(by_day, today)
    assert 100 == forecast(
        MonthUse(CYCLE, 70, None, 0),
        {date(2026, 2, 26): 9, date(2026, 2, 27): 40, today: 10},
        today,
    )


def test_there_is_no_forecast_on_the_first_day() -> None:
    today = date(2026, 2, 10)

    assert None is usual_requests({}, today)
    assert None is usual_requests({today: 50}, today)
    assert None is forecast(MonthUse(CYCLE, 50, None, 0), {today: 50}, today)


@pytest.mark.parametrize(
    ("pending", "live", "is_loaded", "expected"),
    [(0, 0, False, 2), (7, 500, True, 9), (9, 201, False, 14)],
)
def test_remaining_requests_follow_from_pending_and_live_records(
    *, pending: int, live: int, is_loaded: bool, expected: int
) -> None:
    found = estimate_remaining_requests(
        pending_records=pending, live_records=live, is_loaded=is_loaded, per_page=100
    )

    assert expected == found
