"""Running the command against a sandbox: in this process, or in a new one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from connector.cli import main
from generate.json_fields import JSON_FIELDS, required_and_optional
from tests.support.processes import start_python

RUN = "from connector.cli import main; main(prog_name='connector')"
SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
"""
"""Resets signals to their defaults, because background jobs and nohup inherit ignored ones."""

COUNTS = {
    "jobs": 6,
    "candidates": 12,
    "companies": 3,
    "bookings": 8,
    "leads": 5,
    "content_types": 2,
    "content_items": 4,
}
"""A very small agency: one page of each resource."""

KEY = "planted-key-5f0c1e"
"""API key that no output may contain."""


@dataclass(frozen=True)
class CommandResult:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def row(self, name: str) -> list[str]:
        """Return the words of the table row whose first cell is `name`."""
        (line,) = (line for line in self.out.splitlines() if line.startswith(f"{name}\t"))
        return line.replace("\t", " ").split()


def variables(base_url: str | None, folder: Path, key: str | None = KEY) -> dict[str, str]:
    """Return an account's settings as environment variables. None leaves out a setting."""
    given = {
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": key,
        "CONNECTOR_DATA_DIR": str(folder),
        "CONNECTOR_MODELS": "off",
    }
    return {name: value for name, value in given.items() if value is not None}


def call(arguments: Sequence[str], environ: Mapping[str, str]) -> CommandResult:
    """Run the command in this process, with only these settings. Raises unexpected exceptions."""
    cleared = {name: None for name in os.environ if name.startswith("CONNECTOR_")}
    result = CliRunner(env={**cleared, **environ}).invoke(main, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CommandResult(result.exit_code, result.stdout, result.stderr)


def start(
    arguments: Sequence[str], environ: Mapping[str, str], before: str = "pass"
) -> subprocess.Popen[str]:
    """Start the command as a process, with only these settings; warnings are errors.

    `before` is Python code that the process runs first.
    """
    program = f"{SIGNALS}\n{before}\n{RUN}"
    return start_python(
        *("-W", "error", "-c", program, *arguments), environ=environ, stderr=subprocess.PIPE
    )


def check_fields(command: str, option: str, found: Mapping[str, Any]) -> None:
    """Fail unless the JSON object has exactly the documented fields of the command's option."""
    required, optional = required_and_optional(JSON_FIELDS[command][option])

    assert required <= found.keys() <= required | optional, f"{command} {option}"
