"""Only one pull of an account runs at a time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from connector.errors import AccountBusy
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.warehouse.file import make_folder
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
        folder = settings_of(sandbox, tmp_path).folder
        make_folder(folder)
        other = OtherProcess(folder)
        shorten_wait(monkeypatch)
        with pytest.raises(AccountBusy, match=f"process {other.process.pid},"):
            pulled(sandbox, tmp_path)
        other.kill()
        assert [] == sandbox.log
        assert not (folder / "work.duckdb").exists()
