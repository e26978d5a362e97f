"""A key that is revoked or loses its rights, and wrong addresses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.app import Fault
from connector.sandbox.faults import HtmlPage, Status
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import DETAILS, LISTS, EditedResponse, FromRequest, add_fault
from tests.support.agency import differences, published
from tests.support.clock import Time, count_deleted_candidates, pulled
from tests.tiers import first_fast

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


def hide_all_items(document: dict[str, Any]) -> None:
    """Remove all items from a list, as for a key without access to them."""
    if "pagination" in document:
        document["data"] = []
        document["pagination"] |= {"total": 0, "total_pages": 0}


def hide_half_of_items(document: dict[str, Any]) -> None:
    """Remove half of the items of each page, and reduce the total."""
    if "pagination" in document:
        document["data"] = document["data"][::2]
        document["pagination"]["total"] //= 2


@pytest.mark.parametrize(
    ("hide", "is_denied_too"), first_fast([(hide_half_of_items, False), (hide_all_items, True)])
)
def test_a_key_that_no_longer_sees_records_deletes_nothing(
    tmp_path: Path, hide: Any, is_denied_too: bool
) -> None:
    time = Time()
    with Sandbox(counts={"candidates": 60}, clock=time.server_now) as sandbox:
        before = pulled(sandbox, tmp_path, "candidates", time=time).resources["candidates"]
        time.pass_minutes(10)
        add_fault(sandbox, EditedResponse(hide), LISTS)
        if is_denied_too:
            add_fault(sandbox, Status(404), DETAILS)
        for _ in range(2):
            report = pulled(sandbox, tmp_path, "candidates", time=time)
            after = report.resources["candidates"]
            assert "partial" == report.outcome
            assert (False, 0, 60) == (after.proven, after.deleted, after.live)
            assert before.bookmark_after == after.bookmark_after
            # If the API denies every listed record, each may be requested twice: from the queue,
            # and by the scan, which continues in order to load new records.
            assert after.requests <= 2 + 2 * 30
            assert "60" in str(after.message) or "missing" in str(after.message)
            time.pass_minutes(10)
        assert 0 == count_deleted_candidates(tmp_path)

        sandbox.faults.clear()
        assert "done" == pulled(sandbox, tmp_path, "candidates", time=time).outcome
        assert [] == differences(sandbox, published(tmp_path))


ELSEWHERE: Mapping[str, Fault] = {
    "a proxy's page": HtmlPage(404),
    "an API of another kind": Status(404),
}
