"""Pulls stop at their budget and at the monthly quota, and lose no record."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from connector.client.client import Client
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
        report = pull_with_budget(sandbox, tmp_path, None, monthly_requests=monthly)
        assert (4, monthly) == (report.exit_status, report.requests)
        assert report.error is not None
        assert "quota_spent" == report.error.code
        assert report.month is not None
        assert str(report.month.period.ends) in report.error.action

        again = pull_with_budget(sandbox, tmp_path, None, monthly_requests=monthly)
        assert (4, 0) == (again.exit_status, again.requests)

        enlarged = pull_with_budget(sandbox, tmp_path, None, monthly_requests=10_000)
        assert "done" == enlarged.outcome
        assert [] == differences(sandbox, published(tmp_path))


def test_a_pull_leaves_the_reserved_requests_of_the_month(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 80}) as sandbox:
        report = pull_with_budget(sandbox, tmp_path, None, monthly_requests=60)
        settings = settings_of(sandbox, tmp_path, None, monthly_requests=60)
        pushing = asyncio.run(pull(settings, command="push"))

    assert (57, 4) == (report.requests, report.exit_status)
    assert "3 reserved" in str(report.error)
    assert (3, 4) == (pushing.requests, pushing.exit_status)
