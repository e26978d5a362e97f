"""Pulls within a budget and within the month: never a request too many, and nothing is lost."""

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
from connector.errors_api import BudgetSpent, QuotaSpent
from connector.pulls.outcome import PullReport
from connector.pulls.run import pull
from connector.sandbox.faults import Status
from connector.sandbox.server import Sandbox
from connector.settings.model import Settings, load_settings
from tests.support.agency import differences, published, rows
from tests.support.clock import Time
from tests.support.command import variables
from tests.tiers import only_fast

COUNTS = {"jobs": 4, "candidates": 22, "leads": 3, "content_types": 1, "content_items": 3}


def settings(sandbox: Sandbox, folder: Path, **limits: int) -> Settings:
    """Settings that point at the sandbox, with limits of the test's own."""
    environ = variables(sandbox.base_url, folder / "data", sandbox.key)
    return load_settings(dict(limits), environ, folder)


def pulled(
    sandbox: Sandbox, folder: Path, budget: int | None, *, asks_anyway: bool = False, **limits: int
) -> PullReport:
    """Pull within a budget, and hold what the report says against what the server saw."""
    before = len(sandbox.log)
    time = Time()
    connect = partial(Client, clock=time.monotonic, sleep=time.wait)
    given = settings(sandbox, folder, **limits)
    report = asyncio.run(pull(given, budget=budget, asks_anyway=asks_anyway, connect=connect))
    assert len(sandbox.log) - before == report.requests
    assert budget is None or report.requests <= budget
    return report


@pytest.mark.slow
@pytest.mark.parametrize("budget", [16])
def test_budgets_bring_a_load_to_its_end(tmp_path: Path, budget: int) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        whole = pulled(sandbox, tmp_path / "whole", None).requests
        spent = []
        for _ in range(30):
            report = pulled(sandbox, tmp_path, budget)
            spent.append(report.requests)
            if report.outcome == "done":
                break
            assert (4, budget) == (report.exit_status, report.requests)
            assert isinstance(report.error, BudgetSpent)
        assert "done" == report.outcome
        assert [] == differences(sandbox, published(tmp_path))

    details = Counter(each.path for each in sandbox.log[whole:] if each.path.count("/") == 4)
    # Only what a walk looks at again to prove where it may stop.
    assert sum(details.values()) - len(details) <= 2 * len(spent) * len(COUNTS)


def test_retries_count(tmp_path: Path) -> None:
    """With many at once, and a server that fails at every third request, no more than the budget
    is sent.
    """
    with Sandbox(counts=COUNTS) as sandbox:
        sandbox.faults.add(Status(500), times=None, probability=0.3)
        for budget in (2, 25):
            report = pulled(sandbox, tmp_path, budget, connections=8)
            assert isinstance(report.error, BudgetSpent)
    assert any(entry.status == 500 for entry in sandbox.log)


def test_what_was_under_way_at_the_limit_lands(tmp_path: Path) -> None:
    """Answers that were paid for are not thrown away because another request was one too many."""
    with Sandbox(counts={"candidates": 40}) as sandbox:
        report = pulled(sandbox, tmp_path, 20, connections=4)
        paid = {e.path.rsplit("/")[-1] for e in sandbox.log if e.path.count("/") == 4}

    landed = rows(
        published(tmp_path), "SELECT id FROM landing.candidates WHERE _hydrated_at NOTNULL"
    )
    assert paid == {row["id"] for row in landed}
    assert 40 - len(paid) == report.resources["candidates"].pending


@pytest.mark.parametrize("monthly", only_fast([1, 6, 17], [6]))
def test_the_month_ends_anywhere(tmp_path: Path, monthly: int) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        report = pulled(
            sandbox, tmp_path, None, monthly_requests=monthly, monthly_reserve_requests=0
        )
        assert (4, monthly) == (report.exit_status, report.requests)
        assert isinstance(report.error, QuotaSpent)
        assert report.month is not None
        assert str(report.month.period.ends) in report.error.action

        again = pulled(
            sandbox, tmp_path, None, monthly_requests=monthly, monthly_reserve_requests=0
        )
        assert (4, 0) == (again.exit_status, again.requests)

        enlarged = pulled(sandbox, tmp_path, None, monthly_requests=10_000)
        assert "done" == enlarged.outcome
        assert [] == differences(sandbox, published(tmp_path))


@pytest.mark.slow
def test_the_apis_own_month_ends_anywhere(tmp_path: Path) -> None:
    for number in (1, 9):
        folder = tmp_path / str(number)
        behaviours = {"month_reset": "month"}
        with Sandbox(counts=COUNTS, monthly_limit=number, behaviours=behaviours) as sandbox:
            stopped, silent = (pulled(sandbox, folder, None) for _ in range(2))
            assert isinstance(stopped.error, QuotaSpent)
            assert (4, 4, 0) == (stopped.exit_status, silent.exit_status, silent.requests)
            sandbox.limits.per_month = None
            resumed = pulled(sandbox, folder, None, asks_anyway=True)
            assert "done" == resumed.outcome
            assert [] == differences(sandbox, published(folder))


def test_pulls_leave_the_reserve(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 80}) as sandbox:
        report = pulled(sandbox, tmp_path, None, monthly_requests=60)

    assert (57, 4) == (report.requests, report.exit_status)
    assert "3 reserved" in str(report.error)


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    with (
        Sandbox(counts={"jobs": 1}) as sandbox,
        pytest.raises(Misused, match="--max-requests is 0"),
    ):
        pulled(sandbox, tmp_path, 0)

    assert not (tmp_path / "data").exists()


def test_analysts_see_what_was_spent(tmp_path: Path) -> None:
    chance = random.Random(3)
    # Lists of content have addresses as long as other resources' details.
    counts = {name: count for name, count in COUNTS.items() if "content" not in name}
    with Sandbox(counts=counts) as sandbox:
        for _ in range(3):
            pulled(sandbox, tmp_path, chance.randint(5, 20), billing_day=31)
        kinds = Counter("get" if each.path.count("/") == 4 else "list" for each in sandbox.log)
        details = rows(published(tmp_path), "FROM sync.quota")

    assert {"pull"} == {row["command"] for row in details}
    for row in details:
        assert row["cycle_begins"] <= row["day"] <= date.today()
    by_kind = itertools.groupby(sorted(details, key=lambda r: r["kind"]), lambda r: r["kind"])
    assert kinds == {kind: sum(row["requests"] for row in each) for kind, each in by_kind}
