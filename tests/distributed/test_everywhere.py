"""All accounts are pulled by real worker processes, and one is killed during a pull."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import dask
import pytest
from distributed import LocalCluster

import tests.pipelines.unsynced  # noqa: F401
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.state.lock import holder_of
from pipelines.accounts import PARTITION_TAG, Account
from pipelines.definitions import define
from pipelines.everywhere import ADDRESS, RUN_TAG, job_everywhere
from pipelines.schedules import INTRADAY
from tests.pipelines.running import open_instance
from tests.support.agency import differences, open_read_only

NAMES = ("acme", "globex")
"""Accounts with valid keys."""

BROKEN = "broken"
"""Account whose key file is missing."""

COUNTS = {"jobs": 5, "candidates": 40, "companies": 3, "bookings": 4, "leads": 3}
LIMIT = 400
"""Requests per month that the server allows and the settings contain."""

KILLED_AT = 25
"""The request during which the worker that sent it is killed."""


def intraday_pull_everywhere() -> dg.JobDefinition:
    """Return the intraday job of all accounts; each worker calls this function."""
    return job_everywhere(define(Account()).resolve_job_def(INTRADAY))


@dataclass
class ProjectSandboxes:
    """A project folder and the sandboxes of its accounts by name. `killed` are process ids."""

    sandboxes: dict[str, Sandbox]
    folder: Path
    killed: list[int]

    def data_folder(self, name: str) -> Path:
        """Return the data folder of the account."""
        return self.folder / "data" / name

    def is_exact(self, name: str) -> bool:
        """Return True if the local copy equals the server."""
        file = self.data_folder(name) / "recruitment.duckdb"
        sandbox = self.sandboxes.get(name, self.sandboxes["acme"])
        return file.exists() and not differences(sandbox, file)

    def kill_during_pull(self, name: str) -> None:
        """Kill the process that pulls from the account during its request `KILLED_AT`."""
        seen = 0

        def kill_once(_: Store) -> None:
            nonlocal seen
            seen += 1
            if seen == KILLED_AT:
                holder = holder_of(self.data_folder(name))
                assert holder is not None
                self.killed.append(holder.pid)
                os.kill(holder.pid, signal.SIGKILL)

        self.sandboxes[name].between = kill_once


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project file, which the environment of every worker names."""
    return tmp_path_factory.mktemp("project") / "connector.toml"


@pytest.fixture
def agencies(tmp_path: Path, project: Path) -> Iterator[ProjectSandboxes]:
    """A project with all accounts and no loaded records."""
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
        for name in (*NAMES, BROKEN):
            address = sandboxes.get(name, sandboxes["acme"]).base_url
            lines += [f"[accounts.{name}]", f'base_url = "{address}"']
            lines += [f'api_key_file = "{tmp_path / name}"']
        for name in NAMES:
            (tmp_path / name).write_text(f"key-of-{name}\n", encoding="utf-8")
            (tmp_path / name).chmod(0o600)
        project.write_text("\n".join(lines), encoding="utf-8")
        yield ProjectSandboxes(sandboxes, tmp_path, [])


@pytest.fixture(scope="module")
def cluster(project: Path) -> Iterator[LocalCluster]:
    """A scheduler and two worker processes with one thread each.

    Workers read the scheduler's address from their environment, so it is chosen before they start.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    unsynced = {"distributed.worker.preload": ["tests.pipelines.unsynced"]}
    with pytest.MonkeyPatch.context() as patch, dask.config.set(unsynced):
        patch.setenv("CONNECTOR_CONFIG", str(project))
        patch.setenv(ADDRESS, f"tcp://127.0.0.1:{port}")
        with LocalCluster(  # type: ignore[no-untyped-call] # Dask's
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_port=port,
        ) as made:
            yield made
            # A worker that has run Dagster does not end on request, only after four seconds.
            for nanny in made.workers.values():
                nanny.auto_restart = False
                os.kill(nanny.pid, signal.SIGKILL)


@pytest.mark.slow
def test_every_account_is_pulled_although_a_worker_is_killed(
    agencies: ProjectSandboxes, cluster: LocalCluster
) -> None:
    agencies.kill_during_pull(NAMES[-1])
    with open_instance(agencies.folder / "home") as instance:
        result = dg.execute_job(dg.reconstructable(intraday_pull_everywhere), instance)
        runs = instance.get_runs(dg.RunsFilter(tags={RUN_TAG: result.run_id}))
        failed = {each.step_key for each in result.get_step_failure_events()}
        (agencies.folder / BROKEN).write_text("key-of-acme\n", encoding="utf-8")
        (agencies.folder / BROKEN).chmod(0o600)
        again = dg.execute_job(
            dg.reconstructable(intraday_pull_everywhere),
            instance,
            reexecution_options=dg.ReexecutionOptions.from_failure(result.run_id, instance),
        )
        steps = {each.step_key for each in again.all_events if each.is_step_start}

    assert 1 == len(agencies.killed)
    ended = Counter((run.tags[PARTITION_TAG], run.status.value) for run in runs)
    assert 1 == ended[NAMES[-1], "FAILURE"]
    assert all(1 == ended[name, "SUCCESS"] for name in NAMES)
    assert failed == {f"intraday_pull_{BROKEN}"}
    for name, sandbox in agencies.sandboxes.items():
        file = agencies.data_folder(name) / "recruitment.duckdb"
        assert [] == differences(sandbox, file)
        with open_read_only(file) as connection:
            versions = "SELECT count(*), count(DISTINCT id) FROM history.candidates"
            assert [(COUNTS["candidates"],) * 2] == connection.execute(versions).fetchall()
        assert len(sandbox.log) <= LIMIT
    # What succeeded is not run again; the account whose key was corrected is.
    assert steps == failed
    assert agencies.is_exact(BROKEN)
