"""Odd 429 responses, and odd clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.sandbox.app import HttpExchange
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.faults.network_faults import RateLimitRefusal
from tests.support.agency import differences, published
from tests.support.clock import Time, pulled
from tests.tiers import first_fast

COUNTS = {"candidates": 90, "jobs": 4, "content_types": 1, "content_items": 2}
IN_FLIGHT_MAX = 4

ODD_REFUSALS: Mapping[str, RateLimitRefusal] = {
    "reset long ago": RateLimitRefusal(-1_000_000),
    "only garbage": RateLimitRefusal(
        None, {"x-ratelimit-remaining": "many", "x-ratelimit-reset": "soon", "retry-after": "?"}
    ),
    "reset as seconds": RateLimitRefusal(
        None, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}
    ),
}


@pytest.mark.parametrize("variant", first_fast([*ODD_REFUSALS]))
def test_odd_429s_lead_to_reasonable_waits(tmp_path: Path, variant: str) -> None:
    time = Time()
    refused: list[datetime] = []
    with Sandbox(counts=COUNTS, clock=time.server_now) as sandbox:

        class RefusesFor20Seconds:
            """Refuses for 20 seconds from the first request that it meets."""

            async def perform(self, exchange: HttpExchange) -> None:
                now = exchange.store.clock()
                if not refused or now - refused[0] < timedelta(seconds=20):
                    refused.append(now)
                    await ODD_REFUSALS[variant].perform(exchange)
                else:
                    await exchange.send(await exchange.call_application())

        run_after_requests(
            sandbox, 60, lambda: sandbox.faults.add(RefusesFor20Seconds(), times=None)
        )
        report = pulled(sandbox, tmp_path, time=time)

        assert "done" == report.outcome, report.as_json()
        assert [] == differences(sandbox, published(tmp_path))
        # Parallel requests are refused together. Only later refusals are avoidable.
        together = sum(each - refused[0] < timedelta(seconds=1) for each in refused)
        assert 1 <= together <= IN_FLIGHT_MAX
        assert len(refused) - together <= 2
        assert len(refused) == report.rate_limited
        assert max(time.waits) <= 121


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


def test_a_wrong_local_clock_does_not_change_the_result(tmp_path: Path) -> None:
    time = Time()
    time.skew = timedelta(days=365)
    with Sandbox(counts={"candidates": 20}, clock=time.server_now) as sandbox:
        pulled(sandbox, tmp_path, time=time)
        time.pass_minutes(10)
        id = min(sandbox.store.records("candidates"))
        sandbox.store.update("candidates", id, {"city": "Basel"})
        report = pulled(sandbox, tmp_path, time=time)

        bookmark = report.resources["candidates"].bookmark_after
        assert bookmark is not None
        assert timedelta(0) <= time.server_now() - bookmark.astimezone(UTC) < timedelta(minutes=1)
        assert [] == differences(sandbox, published(tmp_path))


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
