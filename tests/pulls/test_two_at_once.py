"""Only one pull of an account runs at a time; the second names the first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from connector.errors import AccountBusy
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.support.agency import pulled, settings_of
from tests.support.command import KEY, call, start, variables
from tests.support.processes import OtherProcess, shorten_wait


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
def test_a_pull_sends_nothing_while_another_pull_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_held_sandbox() as (sandbox, reached, go_on):
        environ = {**variables(sandbox.base_url, tmp_path), "CONNECTOR_CONNECTIONS": "1"}
        with start(["pull", "candidates"], environ) as first:
            assert reached.wait(60)
            before = len(sandbox.log)
            shorten_wait(monkeypatch)
            second = call(["pull", "--json"], environ)
            shown, as_json = call(["status"], environ), call(["status", "--json"], environ)
            assert before == len(sandbox.log)
            go_on.set()
            _, output = first.communicate(timeout=60)
        runs = call(["status", "--json"], environ).object["runs"]

    error = second.object["error"]
    assert (1, "account_busy") == (second.status, error["code"])
    assert f"the account is in use: pull (process {first.pid}, since " in error["message"]
    assert "connector status" in error["action"]
    assert f"Running: pull (process {first.pid}, since " in shown.out
    assert ("pull", first.pid) == tuple(as_json.object["running"][key] for key in ("name", "pid"))
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
    assert shown["running"] is None
    assert (0, "done") == (second.status, second.object["outcome"])
    assert ["done", "interrupted"] == [each["outcome"] for each in after["runs"]]
    # A request that was under way at the kill is counted.
    assert 0 <= after["month"]["used"] - len(sandbox.log) <= 8


def test_a_library_pull_is_rejected_while_another_process_uses_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        folder = settings_of(sandbox, tmp_path).make_folder()
        other = OtherProcess(folder)
        shorten_wait(monkeypatch)
        with pytest.raises(AccountBusy, match=f"process {other.process.pid},"):
            pulled(sandbox, tmp_path)
        other.kill()
        assert [] == sandbox.log
        assert not (folder / "work.duckdb").exists()


def test_a_command_that_waits_names_the_process_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = variables("http://127.0.0.1:9", tmp_path)
    other = OtherProcess(tmp_path)
    # The time of the first attempt, of the one that waits, and of the one that gives up.
    clock = SimpleNamespace(monotonic=iter((0.0, 1.0, 61.0)).__next__)
    monkeypatch.setattr("connector.state.lock.time", clock)
    called = call(["pull"], environ)
    other.kill()

    first, second = called.err.splitlines()[:2]
    assert f"Warning: waiting for pull (process {other.process.pid}, since " in first
    assert f"the account is in use: pull (process {other.process.pid}, since " in second
