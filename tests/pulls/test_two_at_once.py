"""Only one pull of an account runs at a time; the second names the first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from connector.errors import LeaseHeld
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.support.agency import differences, pulled, settings_of
from tests.support.command import KEY, call, start, variables


@contextmanager
def open_held_sandbox() -> Iterator[tuple[Sandbox, Event, Event]]:
    """Open a sandbox that sets the first event at its tenth request and waits for the second."""
    reached, go_on = Event(), Event()

    def hold_tenth_request(_: Store) -> None:
        if len(sandbox.log) == 10:
            reached.set()
            go_on.wait(60)

    counts = {"candidates": 30}
    with Sandbox(counts=counts, keys={KEY: ("*",)}, between=hold_tenth_request) as sandbox:
        yield sandbox, reached, go_on


@pytest.mark.slow
def test_a_pull_sends_nothing_while_another_pull_runs(tmp_path: Path) -> None:
    with open_held_sandbox() as (sandbox, reached, go_on):
        environ = {**variables(sandbox.base_url, tmp_path), "CONNECTOR_CONNECTIONS": "1"}
        with start(["pull", "candidates"], environ) as first:
            assert reached.wait(60)
            before = len(sandbox.log)
            second = call(["pull", "--json"], environ)
            shown, as_json = call(["status"], environ), call(["status", "--json"], environ)
            assert before == len(sandbox.log)
            go_on.set()
            _, output = first.communicate(timeout=60)
        runs = call(["status", "--json"], environ).object["runs"]

    error = second.object["error"]
    assert (1, "lease_held") == (second.status, error["code"])
    assert f"another pull is running: process {first.pid} (pull) on " in error["message"]
    assert "connector status" in error["action"]
    assert f", process {first.pid} (pull) on " in shown.out
    assert [True] == [each["is_under_way"] for each in as_json.object["leases"]]
    assert "Run 'connector pull'" not in shown.err
    assert 0 == first.returncode, output
    # The rejected pull recorded no run, and did not mark the first as interrupted.
    assert ["done"] == [each["outcome"] for each in runs]


def test_a_pull_can_start_immediately_after_a_killed_one(tmp_path: Path) -> None:
    with open_held_sandbox() as (sandbox, reached, go_on):
        environ = variables(sandbox.base_url, tmp_path)
        with start(["pull", "candidates"], environ) as first:
            assert reached.wait(60)
            first.send_signal(signal.SIGKILL)
            first.wait(60)
        go_on.set()
        shown = call(["status", "--json"], environ).object
        second = call(["pull", "candidates", "--json"], environ)
        after = call(["status", "--json"], environ).object

    assert ["interrupted"] == [each["outcome"] for each in shown["runs"]]
    assert [False] == [each["is_under_way"] for each in shown["leases"]]
    assert (0, "done") == (second.status, second.object["outcome"])
    assert ["done", "interrupted"] == [each["outcome"] for each in after["runs"]]
    assert [] == after["leases"]
    # The block of requests that the killed pull reserved remains counted.
    assert len(sandbox.log) <= after["month"]["used"] <= len(sandbox.log) + 50


def test_a_pull_can_run_during_a_push(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        folder = settings_of(sandbox, tmp_path).make_folder()
        with Ledger(folder) as ledger:
            push = LeaseOwner.of_this_process("p", "push")
            ledger.take_lease("push", push, datetime.now(UTC))
            report = pulled(sandbox, tmp_path)
            assert ["push"] == [each.name for each in ledger.leases()]

        assert "done" == report.outcome
        assert [] == differences(sandbox, tmp_path / "data" / "recruitment.duckdb")


def test_a_library_pull_is_rejected_while_another_run_has_the_lease(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        folder = settings_of(sandbox, tmp_path).make_folder()
        with Ledger(folder) as ledger:
            ledger.take_lease(
                "pull", LeaseOwner.of_this_process("other", "dagster"), datetime.now(UTC)
            )
            with pytest.raises(LeaseHeld, match=r"\(dagster\)"):
                pulled(sandbox, tmp_path)
        assert [] == sandbox.log
        assert not (folder / "work.duckdb").exists()
