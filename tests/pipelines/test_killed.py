"""A night whose process was killed, and the next ticks of its schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData as Tick

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.state.lock import holder_of
from pipelines import schedules
from pipelines.definitions import define
from tests.pipelines.running import COUNTS, KEY, make_account, open_instance
from tests.repository import ROOT
from tests.support.agency import differences

pytestmark = pytest.mark.slow

KILLED_AT = 12
"""The request during which the run's process is killed."""


def test_the_night_after_a_killed_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, seen = tmp_path / "home", 0
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        account = make_account(sandbox.base_url, tmp_path)
        made = define(account)
        with open_instance(home):
            pass

        def kill_once(_: Store) -> None:
            nonlocal seen
            seen += 1
            if seen == KILLED_AT:
                holder = holder_of(tmp_path)
                assert holder is not None
                os.kill(holder.pid, signal.SIGKILL)

        sandbox.between = kill_once
        words = ("job", "execute", "-m", "pipelines.definitions", "-a", "definitions")
        killed = subprocess.run(
            [sys.executable, "-m", "dagster", *words, "-j", "intraday_pull"],
            env={**os.environ, **account.environ, "DAGSTER_HOME": str(home)},
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
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
