"""Pulls stop at their budget and at the monthly quota, and lose no record."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from connector.client.client import Client
from connector.errors import Misused
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.faults import Status
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, rows, settings_of
from tests.support.clock import Time
from tests.tiers import only_fast

COUNTS = {"jobs": 4, "candidates": 22, "leads": 3, "content_types": 1, "content_items": 3}


def pull_with_budget(
    sandbox: Sandbox,
    folder: Path,
    budget: int | None,
    *,
    ignores_quota: bool = False,
    **limits: int,
) -> PullReport:
    """Pull within a budget, and compare the report with the requests that reached the server."""
    before = len(sandbox.log)
    time = Time()
    connect = partial(Client, clock=time.monotonic, sleep=time.wait)
    given = settings_of(sandbox, folder, None, **limits)
    report = asyncio.run(pull(given, budget=budget, ignores_quota=ignores_quota, connect=connect))
    assert len(sandbox.log) - before == report.requests
    assert budget is None or report.requests <= budget
    return report


@pytest.mark.slow
@pytest.mark.parametrize("budget", [16])
def test_pulls_with_small_budgets_complete_a_first_load(tmp_path: Path, budget: int) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        whole = pull_with_budget(sandbox, tmp_path / "whole", None).requests
        spent = []
        for _ in range(30):
            report = pull_with_budget(sandbox, tmp_path, budget)
            spent.append(report.requests)
            if report.outcome == "done":
                break
            assert (4, budget) == (report.exit_status, report.requests)
            assert report.error is not None
            assert "budget_spent" == report.error.code
        assert "done" == report.outcome
        assert [] == differences(sandbox, published(tmp_path))

    details = Counter(each.path for each in sandbox.log[whole:] if each.path.count("/") == 4)
    # Only records that a scan reads again to prove its end.
    assert sum(details.values()) - len(details) <= 2 * len(spent) * len(COUNTS)


def test_retries_count_towards_the_budget(tmp_path: Path) -> None:
    """Holds for parallel requests and a server that fails every third one."""
    with Sandbox(counts=COUNTS) as sandbox:
        sandbox.faults.add(Status(500), times=None, probability=0.3)
        for budget in (2, 25):
            report = pull_with_budget(sandbox, tmp_path, budget, connections=8)
            assert report.error is not None
            assert "budget_spent" == report.error.code
    assert any(entry.status == 500 for entry in sandbox.log)


def test_records_in_flight_when_the_budget_ends_are_loaded(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 40}) as sandbox:
        report = pull_with_budget(sandbox, tmp_path, 20, connections=4)
        paid = {e.path.rsplit("/")[-1] for e in sandbox.log if e.path.count("/") == 4}

    landed = rows(
        published(tmp_path), "SELECT id FROM landing.candidates WHERE _hydrated_at NOTNULL"
    )
    assert paid == {row["id"] for row in landed}
    assert 40 - len(paid) == report.resources["candidates"].pending


@pytest.mark.parametrize("monthly", only_fast([1, 6, 17], [6]))
def test_a_pull_stops_at_the_configured_monthly_quota(tmp_path: Path, monthly: int) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        report = pull_with_budget(
            sandbox, tmp_path, None, monthly_requests=monthly, monthly_reserve_requests=0
        )
        assert (4, monthly) == (report.exit_status, report.requests)
        assert report.error is not None
        assert "quota_spent" == report.error.code
        assert report.month is not None
        assert str(report.month.period.ends) in report.error.action

        again = pull_with_budget(
            sandbox, tmp_path, None, monthly_requests=monthly, monthly_reserve_requests=0
        )
        assert (4, 0) == (again.exit_status, again.requests)

        enlarged = pull_with_budget(sandbox, tmp_path, None, monthly_requests=10_000)
        assert "done" == enlarged.outcome
        assert [] == differences(sandbox, published(tmp_path))


@pytest.mark.slow
def test_a_pull_stops_at_the_monthly_quota_of_the_api(tmp_path: Path) -> None:
    for number in (1, 9):
        folder = tmp_path / str(number)
        behaviours = {"month_reset": "month"}
        with Sandbox(counts=COUNTS, monthly_limit=number, behaviours=behaviours) as sandbox:
            stopped, silent = (pull_with_budget(sandbox, folder, None) for _ in range(2))
            assert stopped.error is not None
            assert "quota_spent" == stopped.error.code
            assert (4, 4, 0) == (stopped.exit_status, silent.exit_status, silent.requests)
            sandbox.limits.per_month = None
            resumed = pull_with_budget(sandbox, folder, None, ignores_quota=True)
            assert "done" == resumed.outcome
            assert [] == differences(sandbox, published(folder))


def test_a_pull_leaves_the_reserved_requests_of_the_month(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 80}) as sandbox:
        report = pull_with_budget(sandbox, tmp_path, None, monthly_requests=60)

    assert (57, 4) == (report.requests, report.exit_status)
    assert "3 reserved" in str(report.error)


def test_a_pull_budget_of_zero_is_rejected(tmp_path: Path) -> None:
    with (
        Sandbox(counts={"jobs": 1}) as sandbox,
        pytest.raises(Misused, match="--max-requests is 0"),
    ):
        pull_with_budget(sandbox, tmp_path, 0)

    assert not (tmp_path / "data").exists()


def test_sync_tables_show_the_requests_of_each_pull(tmp_path: Path) -> None:
    chance = random.Random(3)
    # Lists of content have addresses as long as other resources' details.
    counts = {name: count for name, count in COUNTS.items() if "content" not in name}
    with Sandbox(counts=counts) as sandbox:
        for _ in range(3):
            pull_with_budget(sandbox, tmp_path, chance.randint(5, 20), billing_day=31)
        kinds = Counter("get" if each.path.count("/") == 4 else "list" for each in sandbox.log)
        details = rows(published(tmp_path), "FROM sync.quota")

    assert {"pull"} == {row["command"] for row in details}
    for row in details:
        assert row["cycle_begins"] <= row["day"] <= date.today()
    by_kind = itertools.groupby(sorted(details, key=lambda r: r["kind"]), lambda r: r["kind"])
    assert kinds == {kind: sum(row["requests"] for row in each) for kind, each in by_kind}
