"""A night whose process was killed, and the next ticks of its schedule."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData as Tick

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.state.lock import holder_of
from pipelines import schedules
from pipelines.accounts import Account
from pipelines.definitions import define
from tests.pipelines.running import COUNTS, KEY, make_account, open_instance
from tests.repository import ROOT
from tests.support.agency import differences

pytestmark = pytest.mark.slow

KILLED_AT = 12
"""The request during which the run's process gets a signal."""


def execute_intraday(account: Account, home: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the intraday job of the account in a separate process."""
    words = ("job", "execute", "-m", "pipelines.definitions", "-a", "definitions")
    return subprocess.run(
        [sys.executable, "-m", "dagster", *words, "-j", "intraday_pull"],
        env={**os.environ, **account.environ, "DAGSTER_HOME": str(home)},
        cwd=ROOT,
        capture_output=True,
        check=False,
    )


def signal_once(folder: Path, number: signal.Signals) -> Callable[[Store], None]:
    """Return a function for each request, which sends a signal to the pull's process once."""
    seen = itertools.count(1)

    def send(_: Store) -> None:
        if next(seen) == KILLED_AT:
            holder = holder_of(folder)
            assert holder is not None
            os.kill(holder.pid, number)

    return send


def test_a_terminated_run_ends_without_another_try(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        account = make_account(sandbox.base_url, tmp_path)
        with open_instance(home):
            pass
        sandbox.between = signal_once(tmp_path, signal.SIGTERM)
        execute_intraday(account, home)

    with open_instance(home) as instance:
        (run,) = instance.get_runs()
        events = [each.dagster_event for each in instance.all_logs(run.run_id)]
    # *Terminate* marks the run as canceling first, so it ends as canceled then.
    assert dg.DagsterRunStatus.FAILURE == run.status
    assert dg.DagsterEventType.STEP_UP_FOR_RETRY not in {
        each.event_type for each in events if each is not None
    }
    assert holder_of(tmp_path) is None
    with sqlite3.connect(tmp_path / "state.sqlite") as state:
        assert [("stopped",)] == state.execute("SELECT outcome FROM runs").fetchall()


def test_the_night_after_a_killed_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        account = make_account(sandbox.base_url, tmp_path)
        made = define(account)
        with open_instance(home):
            pass

        sandbox.between = signal_once(tmp_path, signal.SIGKILL)
        killed = execute_intraday(account, home)
        assert -signal.SIGKILL == killed.returncode

        with open_instance(home) as instance:

            def evaluate() -> Tick:
                with dg.build_schedule_context(
                    instance=instance,
                    scheduled_execution_time=datetime(2026, 11, 2, 2, 15, tzinfo=UTC),
                    repository_def=made.get_repository_def(),
                    resources={"account": account},
                ) as context:
                    return made.resolve_schedule_def("intraday_pull_schedule").evaluate_tick(
                        context
                    )

            (run,) = instance.get_runs()
            assert dg.DagsterRunStatus.STARTED == run.status
            # Too early to tell a killed run from one that waits for its next try.
            assert run.run_id in str(evaluate().skip_message)
            monkeypatch.setattr(schedules, "SILENT_SECONDS", 0)
            (request,) = evaluate().run_requests or ()
            reported = instance.get_run_by_id(run.run_id)
            again = made.resolve_job_def("intraday_pull").execute_in_process(
                instance=instance, tags=request.tags
            )

        assert reported is not None
        assert dg.DagsterRunStatus.FAILURE == reported.status
        assert again.success
        assert [] == differences(sandbox, tmp_path / "recruitment.duckdb")
