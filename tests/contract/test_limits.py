"""The quota and --max-requests are never exceeded, and a stopped pull continues."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.contract.kit import COUNTS, Account, Server, candidate


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 25])
def test_max_requests_is_not_exceeded(server: Server, tmp_path: Path, limit: int) -> None:
    with server.serve(counts=COUNTS):
        account = Account(server, tmp_path)
        account.run("pull", "--max-requests", str(limit))
        assert len(server.log) <= limit
        for _ in range(3):
            server.forget()
            account.run("pull", "candidates", "--max-requests", "15")
            assert len(server.log) <= 15
        server.forget()
        account.pull()
        assert [] == account.differences()


def test_a_stopped_pull_exits_with_4(server: Server, tmp_path: Path) -> None:
    with server.serve(counts=COUNTS):
        assert 4 == Account(server, tmp_path).run("pull", "--max-requests", "5").status


@pytest.mark.parametrize("limit", [5, 20])
def test_the_monthly_quota_is_not_exceeded(server: Server, tmp_path: Path, limit: int) -> None:
    today = datetime.now(UTC).day
    with server.serve(counts=COUNTS):
        account = Account(
            server, tmp_path, CONNECTOR_MONTHLY_REQUESTS=str(limit),
            CONNECTOR_BILLING_DAY=str(min(today, 28)),
        )  # fmt: skip
        statuses = [account.run("pull").status for _ in range(3)]
        assert 4 in statuses
        file = account.csv("a.csv", [candidate(n) for n in range(5)])
        account.run("push", "candidates", file, "--mode", "create", "--apply")
        account.run("doctor")
        assert len(server.log) <= limit


def test_the_servers_limit_causes_no_429_for_a_sole_client(server: Server, tmp_path: Path) -> None:
    refused = []
    with server.serve(counts={"candidates": 20}, rate_limit=600):
        account = Account(server, tmp_path)
        report = account.pull("candidates")
        refused.append(report["rate_limited"])
    assert [0] == refused


def test_the_plan_of_a_pull_loads_nothing(server: Server, tmp_path: Path) -> None:
    """Only what stays: the plan's figures come from few requests."""
    with server.serve(counts=COUNTS):
        account = Account(server, tmp_path)
        result = account.run("plan", "candidates", "--json")
        if result.status == 2 and "plan" in result.err:
            result = account.run("pull", "candidates", "--plan", "--json")
        assert 0 == result.status, result.text
        assert len(server.log) <= 3
        assert not account.published.exists()
        assert result.json["requests"] >= COUNTS["candidates"]


def test_verify_changes_nothing_and_finds_every_difference(server: Server, tmp_path: Path) -> None:
    with server.serve(counts=COUNTS):
        account = Account(server, tmp_path)
        account.pull()
        assert 0 == account.run("verify").status
        ids = server.ids("candidates")
        server.api("PUT", f"/candidates/{ids[0]}", city="Leeds")
        server.api("DELETE", f"/candidates/{ids[1]}")
        server.api("POST", "/candidates", **candidate(1))
        before = account.live_ids("candidates")
        result = account.run("verify", "candidates", "--json")
        assert 3 == result.status
        assert not result.json["equal"]
        assert ids[0] in result.out
        assert ids[1] in result.out
        assert before == account.live_ids("candidates")
        account.pull()
        assert 0 == account.run("verify").status
