"""SIGTERM and SIGHUP stop a command as Ctrl-C does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from connector.sandbox.faults import Latency
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.repository import ROOT
from tests.support.command import KEY, SIGNALS, start, variables

LATENCY = Latency(0.02)
"""Of every answer, so that a pull is still under way when it is stopped."""


def send_signal_during_request(
    sandbox: Sandbox, request_number: int, signal_number: signal.Signals
) -> list[subprocess.Popen[str]]:
    """Send a signal to a process while the server handles the request of this number. The caller
    adds the process to the returned list.
    """
    started: list[subprocess.Popen[str]] = []
    served = 0

    def between(_: Store) -> None:
        nonlocal served
        served += 1
        if served == request_number:
            started[0].send_signal(signal_number)

    sandbox.between = between
    sandbox.faults.add(LATENCY, times=None)
    return started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_background_job_that_ignores_sigint_stops_at_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Sandbox(counts={"jobs": 300}, keys={KEY: ("*",)}) as sandbox:
        ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
        started = send_signal_during_request(sandbox, 10, number)
        process = start(["pull", "jobs"], variables(sandbox.base_url, tmp_path), before=ignoring)
        started.append(process)
        _, err = process.communicate(timeout=60)

    assert 4 == process.returncode
    assert f"Stopped by {number.name}." in err


def test_a_signal_during_a_callback_stops_a_background_job() -> None:
    program = """
import asyncio, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from connector.cli.stopping import interrupt_on_signals

class Callback:
    def __del__(self):  # Python ignores exceptions that are raised here.
        signal.raise_signal(signal.SIGTERM)

async def run():
    Callback()
    for _ in range(100):
        await asyncio.sleep(0)
    print("completed")

with interrupt_on_signals():
    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        print("stopped")
signal.raise_signal(signal.SIGINT)
print("SIGINT is still ignored")
"""
    shown = subprocess.run(
        [sys.executable, "-c", SIGNALS + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ["stopped", "SIGINT is still ignored"] == shown.stdout.splitlines()


def test_an_ignored_sighup_stays_ignored(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 60}, keys={KEY: ("*",)}) as sandbox:
        ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
        started = send_signal_during_request(sandbox, 10, signal.SIGHUP)
        process = start(["pull", "jobs"], variables(sandbox.base_url, tmp_path), before=ignoring)
        started.append(process)
        process.communicate(timeout=60)

    assert 0 == process.returncode
