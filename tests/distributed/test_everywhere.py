"""All accounts spread over real worker processes, one of which is killed in the middle."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import dask
import pytest
from dask.sizeof import sizeof
from distributed import LocalCluster

import tests.pipelines.unsynced  # noqa: F401
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from pipelines.accounts import PARTITION_TAG
from pipelines.everywhere import ADDRESS, EVERYWHERE_TAG, intraday_everywhere
from tests.distributed.documented import settings
from tests.pipelines.running import instance_in
from tests.pulls.landed import differences, reading

NAMES = ("acme", "globex", "initech")
"""Accounts that are well."""

BROKEN = ("broken", "forgotten")
"""Accounts whose key files are missing. With them there are more than two steps for each worker,
without which Dask would give out all of them at once.
"""

COUNTS = {"jobs": 5, "candidates": 40, "companies": 3, "bookings": 4, "leads": 3}
LIMIT = 400
"""Of requests a month, which the server allows and the account's settings know."""

KILLED_AT = 25
"""The request during which the worker that sent it is killed."""


@dataclass
class Agencies:
    """Sandboxes by the name of their account, and the folder of the project."""

    sandboxes: dict[str, Sandbox]
    folder: Path
    killed: list[int]

    def files(self, name: str) -> Path:
        """The folder that the account's files are in."""
        return self.folder / "data" / name

    def is_exact(self, name: str) -> bool:
        """Whether the account has landed, all of it and nothing else."""
        file = self.files(name) / "recruitment.duckdb"
        return file.exists() and not differences(self.sandboxes[name], file)

    def kill(self, name: str) -> None:
        """Have the process killed that pulls from the account, once, while a request of it is on
        its way.
        """
        seen = 0

        def between(_: Store) -> None:
            nonlocal seen
            seen += 1
            if seen == KILLED_AT:
                with closing(sqlite3.connect(self.files(name) / "ledger.sqlite")) as ledger:
                    ((pid,),) = ledger.execute("SELECT pid FROM leases WHERE name = 'pull'")
                self.killed.append(pid)
                os.kill(pid, signal.SIGKILL)

        self.sandboxes[name].between = between


def steps_begun(instance: dg.DagsterInstance, run_id: str) -> list[dg.DagsterEvent]:
    """An event for each time that a worker has begun a step of the run, as the log has it: a result
    has those alone that came back.
    """
    found = instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_START)
    return [each.dagster_event for each in found if each.dagster_event is not None]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project file, which the environment of every worker names."""
    return tmp_path_factory.mktemp("project") / "connector.toml"


@pytest.fixture
def agencies(tmp_path: Path, project: Path) -> Iterator[Agencies]:
    """A project with all accounts, none of which has landed anything."""
    lines = [f'data_dir = "{tmp_path / "data"}"', 'models = "off"', f"monthly_requests = {LIMIT}"]
    with ExitStack() as stack:
        sandboxes = {
            name: stack.enter_context(
                Sandbox(
                    counts=COUNTS, seed=seed, keys={f"key-of-{name}": ("*",)}, monthly_limit=LIMIT
                )
            )
            for seed, name in enumerate(NAMES)
        }
        for name in (*NAMES, *BROKEN):
            address = sandboxes.get(name, sandboxes["acme"]).base_url
            lines += [f"[accounts.{name}]", f'base_url = "{address}"']
            lines += [f'api_key_file = "{tmp_path / name}"']
        for name in NAMES:
            (tmp_path / name).write_text(f"key-of-{name}\n", encoding="utf-8")
            (tmp_path / name).chmod(0o600)
        project.write_text("\n".join(lines), encoding="utf-8")
        yield Agencies(sandboxes, tmp_path, [])


@pytest.fixture(scope="module")
def cluster(project: Path) -> Iterator[LocalCluster]:
    """A scheduler, and two workers that are processes of one thread each, set up as documented."""
    unsynced = {"distributed.worker.preload": ["tests.pipelines.unsynced"]}
    with pytest.MonkeyPatch.context() as patch, dask.config.set(settings() | unsynced):
        patch.setenv("CONNECTOR_CONFIG", str(project))
        with LocalCluster(  # type: ignore[no-untyped-call] # Dask's
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as made:
            patch.setenv(ADDRESS, made.scheduler_address)
            yield made


def test_a_killed_workers_accounts_finish_elsewhere(
    agencies: Agencies, cluster: LocalCluster
) -> None:
    agencies.kill(NAMES[-1])
    with instance_in(agencies.folder / "home") as instance:
        result = dg.execute_job(dg.reconstructable(intraday_everywhere), instance)
        tags = {EVERYWHERE_TAG: result.run_id}
        runs = instance.get_runs(dg.RunsFilter(tags=tags))
        begun = Counter(each.step_key for each in steps_begun(instance, result.run_id))
        pids = {each.pid for run in runs for each in steps_begun(instance, run.run_id)}

    ended = sorted((run.tags[PARTITION_TAG], run.status.value) for run in runs)
    assert [
        ("acme", "SUCCESS"),
        ("broken", "FAILURE"),
        ("forgotten", "FAILURE"),
        ("globex", "SUCCESS"),
        ("initech", "FAILURE"),
        ("initech", "SUCCESS"),
    ] == ended
    failed = {each.step_key for each in result.get_step_failure_events()}
    assert failed == {f"intraday_{name}" for name in BROKEN}
    assert 1 == len(agencies.killed)
    # What the lost worker had finished, which is one step at least, is not asked for again.
    assert set(begun) == {f"intraday_{name}" for name in (*NAMES, *BROKEN)}
    assert all(count == 1 for step, count in begun.items() if step != f"intraday_{NAMES[-1]}")
    assert len(pids | set(agencies.killed)) >= 2
    for name, sandbox in agencies.sandboxes.items():
        file = agencies.files(name) / "recruitment.duckdb"
        assert [] == differences(sandbox, file)
        with reading(file) as connection:
            versions = "SELECT count(*), count(DISTINCT id) FROM history.candidates"
            assert [(COUNTS["candidates"],) * 2] == connection.execute(versions).fetchall()
        assert set() == {each.status for each in sandbox.log if each.status not in (200, None)}
    asked = {name: len(each.log) for name, each in agencies.sandboxes.items()}
    # All that was asked before the kill may be in one batch that had not landed, and four requests
    # may have been on their way.
    assert asked[NAMES[-1]] <= max(asked[name] for name in NAMES[:-1]) + KILLED_AT + 4
    assert max(asked.values()) <= LIMIT


def test_an_account_that_loses_too_many_workers_fails_alone(
    agencies: Agencies, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    agencies.kill(NAMES[0])
    with instance_in(agencies.folder / "home") as instance:
        assert cluster.scheduler is not None
        monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
        failed = dg.execute_job(dg.reconstructable(intraday_everywhere), instance)
        landed = {name for name in NAMES if agencies.is_exact(name)}
        messages = {each.step_key: str(each.message) for each in failed.get_step_failure_events()}
        dg.execute_job(dg.reconstructable(intraday_everywhere), instance)
        ended = {
            (run.tags[EVERYWHERE_TAG] == failed.run_id, run.status.value)
            for run in instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: NAMES[0]}))
        }

    assert landed == set(NAMES[1:])
    assert {f"intraday_{name}" for name in (*BROKEN, NAMES[0])} == set(messages)
    assert "re-execute the run from failure" in messages[f"intraday_{NAMES[0]}"]
    assert ended == {(True, "FAILURE"), (False, "SUCCESS")}
    assert agencies.is_exact(NAMES[0])


def test_dask_can_weigh_what_a_step_gives_back() -> None:
    told = {"run": dg.MetadataValue.dagster_run("run"), "why": dg.MetadataValue.text("so")}

    assert sizeof([told]) > sizeof([{}])
