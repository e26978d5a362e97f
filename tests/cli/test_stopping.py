"""SIGTERM and SIGHUP stop a command as Ctrl-C does."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.cli.calling import KEY, call, start, variables

CONNECTIONS = 4
STOPPED_AFTER = 150


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_pull_that_is_stopped_keeps_the_records_that_it_has_read(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Sandbox(counts={"candidates": 300}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        process = start(["pull", "candidates"], environ)
        while len(sandbox.log) < STOPPED_AFTER and process.poll() is None:
            time.sleep(0)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        again = call(["pull", "candidates"], environ)
        read = Counter(each.path for each in sandbox.log if "/candidates/" in each.path)

    assert (4, "") == (process.returncode, out)
    assert 1 == len(err.splitlines()), err
    line = err
    assert line.startswith(f"Stopped by {number.name}. What has landed is kept")
    assert 0 == again.status
    assert 300 == len(read)
    # Beside the requests under way, the next pull reads one record to confirm the list's order.
    assert read.total() - 300 <= CONNECTIONS + 1


def test_a_background_job_that_ignores_ctrl_c_can_be_stopped(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 300}, keys={KEY: ("*",)}) as sandbox:
        ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
        process = start(["pull", "jobs"], variables(sandbox.base_url, tmp_path), before=ignoring)
        while len(sandbox.log) < 10 and process.poll() is None:
            time.sleep(0)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)

    assert 4 == process.returncode
    assert "Stopped by SIGTERM." in err


def test_a_hang_up_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 60}, keys={KEY: ("*",)}) as sandbox:
        ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
        process = start(["pull", "jobs"], variables(sandbox.base_url, tmp_path), before=ignoring)
        while len(sandbox.log) < 10 and process.poll() is None:
            time.sleep(0)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)

    assert 0 == process.returncode
