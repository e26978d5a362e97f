"""Everything that the records know of the program: the only module to edit when it is rewritten.

Records use the command, the sandbox over HTTP, the published file, Dagster's own files, and the
functions below that run one simulated pull or push.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import httpx
from dagster import DagsterInstance

from connector.errors import ConnectorError
from connector.sandbox.server import Sandbox
from connector.settings import Settings
from connector.warehouse.queries import read_identity
from connector.warehouse.warehouse import Warehouse
from tests.pushes.pushing import make_template_folder
from tests.repository import ROOT
from tests.simulation import run as pull_simulator
from tests.simulation.push import run as push_simulator
from tests.simulation.push.scenario import SCENARIOS as PUSH_SCENARIOS
from tests.simulation.scenario import SCENARIOS as PULL_SCENARIOS
from tests.spreadsheet.corpus.files import SampleFile
from tests.spreadsheet.corpus.judge import preview_file
from tests.support.agency import settings_at

__all__ = ["PULL_SCENARIOS", "PUSH_SCENARIOS", "pull_simulator", "push_simulator"]

START = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
"""Monday on which the recorded accounts are loaded for the first time."""

COMMAND = str(Path(sys.executable).parent / "connector")
DAGSTER = (
    "import tests.pipelines.unsynced; from importlib.metadata import entry_points as e;"
    " (c,) = e(group='console_scripts', name='dagster'); c.load()()"
)
"""Program of Dagster's command. Its databases do not wait for the disk."""

PUBLISHED = "recruitment.duckdb"

CLOCK = ROOT / "tests" / "records" / "fixed_clock"
PAGE_SIZE = 100


@dataclass
class Account:
    """An account of a sandbox whose clock, like the command's, shows `now`."""

    folder: Path
    builds_models: bool = True
    sandbox: Sandbox = field(init=False)
    now: datetime = START

    @property
    def data(self) -> Path:
        """Path of the data folder."""
        return self.folder / "data"

    @property
    def environ(self) -> dict[str, str]:
        """The account's settings as environment variables."""
        return {
            "CONNECTOR_BASE_URL": self.sandbox.base_url,
            "CONNECTOR_API_KEY": self.sandbox.key,
            "CONNECTOR_DATA_DIR": str(self.data),
            "CONNECTOR_MODELS": "on" if self.builds_models else "off",
        }

    def run(self, *arguments: str | Path, expects: tuple[int, ...] = (0,)) -> str:
        """Run the command as a process, and return its output.

        Raises:
            AssertionError: The exit status is none of `expects`.
        """
        return run_command(*arguments, environ=self.environ, now=self.now, expects=expects)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request to the sandbox as another user, and return its JSON document."""
        headers = {"Authorization": f"Bearer {self.sandbox.key}"}
        url = f"{self.sandbox.base_url}/api/v1/{path}"
        answer = httpx.request(method, url, json=body, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def ids(self, resource: str) -> list[str]:
        """Return the ids of the resource's first page in order."""
        found = self.request("GET", f"{resource}?per_page={PAGE_SIZE}")
        return sorted(each["id"] for each in found["data"])

    def pass_days(self, days: int) -> None:
        """Set both clocks forward."""
        self.now += timedelta(days=days)


@contextmanager
def open_account(
    folder: Path, counts: Mapping[str, int], *, builds_models: bool = True
) -> Iterator[Account]:
    """Start a sandbox with these numbers of records, for an account in this folder."""
    account = Account(folder, builds_models)
    account.sandbox = Sandbox(counts=counts, rate_limit=10**6, clock=lambda: account.now)
    with account.sandbox:
        yield account


def run_demo(folder: Path) -> None:
    """Run the demo, which loads its agency through a nightly run of Dagster."""
    run_command("demo", "--data-dir", folder, environ={}, now=START)


def run_command(
    *arguments: str | Path,
    environ: Mapping[str, str],
    now: datetime | None = None,
    expects: tuple[int, ...] = (0,),
    command: str = COMMAND,
) -> str:
    """Run the command as a process, with its clock stopped at `now`, and return its output.

    Raises:
        AssertionError: The exit status is none of `expects`.
    """
    kept = {name: each for name, each in os.environ.items() if not name.startswith("CONNECTOR_")}
    clock = {"TZ": "UTC"}
    if now is not None:
        clock |= {"FIXED_CLOCK": now.isoformat(), "PYTHONPATH": str(CLOCK)}
    done = subprocess.run(
        [command, *map(str, arguments)],
        env={**kept, **clock, **environ},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in expects, f"{arguments} ended {done.returncode}:\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class ReportedRow:
    """Result of a row of a file, as the report of its push has it."""

    number: int
    outcome: str
    codes: tuple[str, ...]
    id: str


def push_file(account: Account, path: Path) -> list[ReportedRow]:
    """Send a file of candidates to be created, and return the rows of its report."""
    output = account.run(
        *("push", "candidates", path, "--mode", "create", "--apply", "--json"), expects=(0, 1, 2, 3)
    )
    report = path.parent / json.loads(output)["report"]
    # A report has the delimiter of its file.
    delimiter = ";" if b";" in path.read_bytes().splitlines()[0] else ","
    with report.open(encoding="utf-8-sig", newline="") as file:
        return [
            ReportedRow(
                int(row["_row"]),
                row["_outcome"],
                tuple(sorted(filter(None, row["_code"].split(", ")))),
                row["_id"],
            )
            for row in csv.DictReader(file, delimiter=delimiter)
        ]


def count_published(account: Account, resource: str) -> int:
    """Return the number of live records in the published file."""
    with duckdb.connect(str(account.data / PUBLISHED), read_only=True) as connection:
        query = f"SELECT count(*) FROM landing.{resource} WHERE _deleted_at IS NULL"
        return int(connection.execute(query).fetchall()[0][0])


def remove_person(account: Account, person: str) -> None:
    """Remove a person, who was deleted on the platform, from the data folder."""
    account.run("person", "purge", person, "--apply")


RECORDED = ("ASSET_MATERIALIZATION", "ASSET_OBSERVATION", "STEP_FAILURE", "STEP_SKIPPED")
"""Recorded kinds of Dagster events, besides checks and the end of the run."""


def run_nightly_job(account: Account) -> Iterator[tuple[str, str]]:
    """Run the nightly job with Dagster's command, and yield kind and subject of each event.

    The subject is an asset, the step of a failure, or the job.
    """
    home = account.folder / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    words = ("-c", DAGSTER, "job", "execute", "-m", "pipelines.definitions", "-a", "definitions")
    environ = {**account.environ, "DAGSTER_HOME": str(home)}
    run_command(*words, "-j", "nightly_pull", environ=environ, command=sys.executable)
    with DagsterInstance.from_config(str(home)) as instance:
        for run in instance.get_runs():
            yield f"RUN_{run.status.value}", run.job_name
            for log in instance.all_logs(run.run_id):
                event = log.dagster_event
                if event is None:
                    continue
                if event.event_type_value == "ASSET_CHECK_EVALUATION":
                    check = event.asset_check_evaluation_data
                    outcome = "passed" if check.passed else f"failed {check.check_name}"
                    yield f"checks {outcome}", check.asset_key.to_user_string()
                elif event.event_type_value in RECORDED:
                    key = event.asset_key
                    yield (
                        event.event_type_value,
                        key.to_user_string() if key else str(event.step_key),
                    )


PreviewFile = Callable[[SampleFile, Mapping[str, Any]], tuple[list[str], list[tuple[int, Any]]]]


@contextmanager
def open_previews() -> Iterator[PreviewFile]:
    """Yield a function that previews a file with the user's answers, in an empty account.

    It returns the codes of the questions, and number and result of each row. A private function of
    the push makes the preview: the command would take minutes for all files of the corpus.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = settings_at("http://127.0.0.1:9", folder, "unused-key")
        shutil.copytree(make_template_folder(), settings.folder)
        warehouse = Warehouse(settings.folder)
        with warehouse.keep_open():
            warehouse.read(read_identity)
            yield partial(_preview, folder, settings)


def _preview(
    folder: Path, settings: Settings, file: SampleFile, answer: Mapping[str, Any]
) -> tuple[list[str], list[tuple[int, Any]]]:
    seen = preview_file(file, folder, answer, settings)
    if isinstance(seen, ConnectorError):
        return [f"error {seen.code}"], []
    rows: list[tuple[int, Any]] = []
    for row in seen.rows:
        is_sent = row.state == "planned"
        shown: dict[str, Any] = {"sent": {**row.fields, **row.then} if is_sent else None}
        shown["refused"] = sorted(f"{each.code} {each.column}" for each in row.problems)
        shown["warned"] = sorted(f"{each.code} {each.column}" for each in row.warnings)
        rows.append((row.number, {name: each for name, each in shown.items() if each}))
    return sorted(each.code for each in seen.blocking_questions), rows
