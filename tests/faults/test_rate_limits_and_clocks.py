"""429 responses with a late reset, and a second client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.faults.network_faults import RateLimitRefusal
from tests.support.agency import differences, published
from tests.support.clock import Time, pulled
from tests.tiers import first_fast

COUNTS = {"candidates": 90, "jobs": 4, "content_types": 1, "content_items": 2}
IN_FLIGHT_MAX = 4


@pytest.mark.slow
def test_a_reset_in_forty_minutes_stops_the_run_and_the_next_continues(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(counts=COUNTS, clock=time.server_now) as sandbox:
        refusal = RateLimitRefusal(40 * 60)
        run_after_requests(sandbox, 60, lambda: sandbox.faults.add(refusal, times=None))
        report = pulled(sandbox, tmp_path, time=time)

        assert ("stopped", 4) == (report.outcome, report.exit_status)
        assert "quota_spent" == report.error.code if report.error else None
        assert 1 <= report.rate_limited <= IN_FLIGHT_MAX
        assert sum(time.waits) <= 121
        spent = len(sandbox.log)

        time.pass_minutes(41)
        sandbox.faults.clear()
        again = pulled(sandbox, tmp_path, time=time)

        assert "done" == again.outcome, again.as_json()
        assert 0 == again.rate_limited
        assert [] == differences(sandbox, published(tmp_path))
        clean = pulled(sandbox, tmp_path / "clean", time=time)
        assert spent + again.requests <= clean.requests + report.rate_limited + IN_FLIGHT_MAX + 2


def run_after_requests(sandbox: Sandbox, request: int, act: Callable[[], object]) -> None:
    """Let the sandbox call a function once, when it has served that many requests."""
    served = 0

    def count_request(_: Store) -> None:
        nonlocal served
        served += 1
        if served == request:
            act()

    sandbox.between = count_request


@pytest.mark.parametrize("window", first_fast(["aligned", "sliding"]))
def test_a_pull_beside_a_client_that_uses_half_of_the_limit_is_exact(
    tmp_path: Path, window: str
) -> None:
    time = Time()
    with Sandbox(
        counts={"candidates": 400},
        clock=time.server_now,
        rate_limit=120,
        behaviours={"rate_window": window},
    ) as sandbox:
        spend = sandbox.limits.try_to_count

        def spend_for_both(now: datetime) -> bool:
            spend(now)
            return spend(now)

        sandbox.limits.try_to_count = spend_for_both  # type: ignore[method-assign]
        report = pulled(sandbox, tmp_path, "candidates", time=time)

        assert "done" == report.outcome, report.as_json()
        assert report.rate_limited <= 0.05 * report.requests
        assert [] == differences(sandbox, published(tmp_path))
