"""Everything that the records know of the program: the only module to edit when it is rewritten.

Records use the command, the sandbox over HTTP, the published file, Dagster's own files, and the
functions below that run one simulated pull or push.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from connector.sandbox.server import Sandbox
from tests.repository import ROOT
from tests.simulation import run as pull_simulator
from tests.simulation.push import run as push_simulator
from tests.simulation.push.scenario import SCENARIOS as PUSH_SCENARIOS
from tests.simulation.scenario import SCENARIOS as PULL_SCENARIOS

__all__ = ["PULL_SCENARIOS", "PUSH_SCENARIOS", "pull_simulator", "push_simulator"]

START = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
"""Monday on which the recorded accounts are loaded for the first time."""

COMMAND = str(Path(sys.executable).parent / "connector")

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
