"""A key that is revoked, or that lacks a right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connector.sandbox.app import Fault
from connector.sandbox.faults import HtmlPage, Status
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import FromRequest
from tests.support.agency import differences, published
from tests.support.clock import Time, pulled

COUNTS = {"candidates": 60, "jobs": 6, "leads": 5, "bookings": 4}
IN_FLIGHT_MAX = 4
SCOPES = ("jobs", "candidates", "companies", "bookings", "leads", "content")


def test_a_revoked_key_ends_the_run_immediately(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(counts=COUNTS, clock=time.server_now) as sandbox:
        sandbox.faults.add(FromRequest(30, Status(401)), times=None)
        report = pulled(sandbox, tmp_path, time=time)

        assert ("failed", 1) == (report.outcome, report.exit_status)
        assert report.error is not None
        assert "unauthorized" == report.error.code
        assert "CONNECTOR_API_KEY" in report.error.action
        refused = [each.status for each in sandbox.log].count(401)
        assert 1 <= refused <= IN_FLIGHT_MAX
        assert len(sandbox.log) == 29 + refused
        assert "not_started" == report.resources["leads"].outcome

        sandbox.faults.clear()
        assert "done" == pulled(sandbox, tmp_path, time=time).outcome
        assert [] == differences(sandbox, published(tmp_path))


def test_a_missing_scope_stops_only_its_own_resource(tmp_path: Path) -> None:
    missing = "candidates"
    keys = {"some": [f"{scope}.read" for scope in SCOPES if scope != missing], "all": ("*",)}
    time = Time()
    with Sandbox(counts=COUNTS, keys=keys, clock=time.server_now) as sandbox:
        report = pulled(sandbox, tmp_path, time=time)

        assert ("partial", 3) == (report.outcome, report.exit_status)
        outcomes = {name: each.outcome for name, each in report.resources.items()}
        assert {missing: "skipped"} == {n: o for n, o in outcomes.items() if o != "done"}
        skipped = report.resources[missing]
        assert ("forbidden", 1) == (skipped.error_code, skipped.requests)
        lacking = differences(sandbox, published(tmp_path))
        assert COUNTS[missing] == len(lacking)
        assert all(each.startswith(missing) for each in lacking)

        assert "done" == pulled(sandbox, tmp_path, key="all", time=time).outcome
        assert [] == differences(sandbox, published(tmp_path))


ELSEWHERE: Mapping[str, Fault] = {
    "a proxy's page": HtmlPage(404),
    "an API of another kind": Status(404),
}
