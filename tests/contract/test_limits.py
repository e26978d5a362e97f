"""The quota and --max-requests are never exceeded, and a stopped pull continues."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.contract.kit import (
    COUNTS,
    NOT_BEFORE,
    PLAN,
    SWEEP,
    Account,
    Answer,
    Forward,
    Server,
    candidate,
    edited,
    hide,
    status,
)


@pytest.mark.slow
def test_max_requests_is_not_exceeded(server: Server, tmp_path: Path) -> None:
    with server.serve(counts=COUNTS):
        account = Account(server, tmp_path)
        for limit in (3, 25):
            assert 4 == account.run("pull", "--max-requests", str(limit)).status
            assert len(server.log) <= limit
            server.forget()
        account.pull()
        assert [] == account.differences()


def test_the_monthly_quota_is_not_exceeded(server: Server, tmp_path: Path) -> None:
    today = datetime.now(UTC).day
    with server.serve(counts=COUNTS):
        account = Account(
            server, tmp_path, CONNECTOR_MONTHLY_REQUESTS="20",
            CONNECTOR_BILLING_DAY=str(min(today, 28)),
        )  # fmt: skip
        assert [4, 4] == [account.run("pull").status for _ in range(2)]
        file = account.csv("a.csv", [candidate(n) for n in range(5)])
        account.run("push", "candidates", file, "--mode", "create", "--apply")
        account.run("doctor")
        assert len(server.log) <= 20


def test_a_sole_client_is_never_refused_with_a_429(server: Server, tmp_path: Path) -> None:
    with server.serve(counts={"candidates": 20}, rate_limit=600):
        account = Account(server, tmp_path)
        assert 0 == account.pull("candidates")["rate_limited"]
        assert 20 == len(account.live_ids("candidates"))


def test_the_plan_of_a_pull_loads_nothing(server: Server, tmp_path: Path) -> None:
    with server.serve(counts=COUNTS):
        account = Account(server, tmp_path)
        result = account.run(*PLAN, "candidates", "--json")
        assert 0 == result.status, result.text
        assert len(server.log) <= 3
        assert not account.published.exists()
        assert result.json["requests"] >= COUNTS["candidates"]


def test_a_sweep_finds_a_change_that_the_server_hides(account: Account) -> None:
    """A server that changes a record, and its list item, without a new `updated_at`."""
    hidden = account.server.ids("candidates")[0]

    def change(document: dict[str, Any]) -> dict[str, Any]:
        data = document["data"]
        for each in data if isinstance(data, list) else [data]:
            if each["id"] == hidden:
                each["current_company"] = "Hidden Ltd"
        return document

    query = "SELECT id FROM landing.candidates WHERE current_company = 'Hidden Ltd'"
    account.server.rule("GET /api/v1/candidates*", edited(change))
    assert 0 == account.run(*SWEEP, "candidates").status
    assert [hidden] == [row["id"] for row in account.rows(query)]


@pytest.mark.slow
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
        stopped = account.run("verify", "candidates", "--max-requests", "1", "--json")
        assert 4 == stopped.status
        assert stopped.json["streams"]["candidates"]["equal"] is None
        result = account.run("verify", "candidates", "--json")
        assert 3 == result.status
        assert not result.json["equal"]
        found = result.json["streams"]["candidates"]["differences"]
        assert ([ids[0]], [ids[1]], 1) == (
            [*found["different"]],
            [*found["extra"]],
            len(found["missing"]),
        )
        assert "city" in found["different"][ids[0]]
        assert before == account.live_ids("candidates")
        account.pull()
        assert 0 == account.run("verify").status


def test_history_has_each_version_with_its_times_and_changed_fields(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    changed = []
    for city in ("Leeds", "York"):
        account.server.api("PUT", f"/candidates/{id}", city=city)
        changed.append(account.server.api("GET", f"/candidates/{id}")["updated_at"])
        account.pull("candidates")
    first, *later = account.rows(
        "SELECT * FROM history.candidates WHERE id = ? ORDER BY _valid_from", id
    )
    assert ["Leeds", "York"] == [row["city"] for row in later]
    assert [datetime.fromisoformat(each) for each in changed] == [
        row["_valid_from"] for row in later
    ]
    for older, newer in pairwise([first, *later]):
        assert older["_valid_to"] == newer["_valid_from"]
        assert {"city"} == {*newer["_changed"]} - {"updated_at"}
        # The version before it was still seen then, so the change is not older.
        assert older["_valid_from"] < newer[NOT_BEFORE] <= newer["_valid_from"]
    assert later[-1]["_valid_to"] is None
    account.server.api("DELETE", f"/candidates/{id}")
    account.pull("candidates")
    last = account.rows("SELECT max(_valid_to) AS ended FROM history.candidates WHERE id = ?", id)
    assert last[0]["ended"] is not None


def test_a_record_that_is_deleted_and_created_again_has_both_versions(account: Account) -> None:
    """The API keeps the id, for example after a restore on the platform."""
    id = account.server.ids("candidates")[0]
    account.server.rule(f"GET /api/v1/candidates/{id}*", status(404))
    account.server.rule("GET /api/v1/candidates[?]*", hide(id))
    account.pull("candidates")
    assert id not in account.live_ids("candidates")
    account.server.forget()
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.pull("candidates")
    assert id in account.live_ids("candidates")
    assert [] == account.differences("candidates")


@pytest.mark.slow
def test_a_second_pull_of_the_account_waits_and_names_the_first(account: Account) -> None:
    process, is_stopped = account.start("pull", "candidates", "--full", "--quiet"), Event()

    def stop(forward: Forward) -> Answer:
        process.send_signal(signal.SIGSTOP)
        is_stopped.set()
        return forward()

    account.server.rule("GET /api/v1/candidates/*", stop, times=1)
    assert is_stopped.wait(60)
    second = account.start("pull", "jobs")
    assert second.stderr is not None
    assert f"process {process.pid}," in second.stderr.readline()
    assert [] == [each for each in account.server.log if each.path.startswith("/api/v1/jobs")]
    process.send_signal(signal.SIGCONT)
    for each in (process, second):
        each.communicate(timeout=120)
        assert 0 == each.returncode
    assert [] == account.differences("candidates", "jobs")


def test_status_answers_during_a_pull(account: Account) -> None:
    process = account.start("pull", "candidates", "--full", "--quiet")
    statuses = []

    def ask(forward: Forward) -> Answer:
        statuses.append(account.run("status", "--json").status)
        return forward()

    account.server.rule("GET /api/v1/candidates/*", ask, times=1)
    process.communicate(timeout=120)
    assert [0, 0] == [process.returncode, *statuses]
