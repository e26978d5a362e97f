"""Who copies, how each is called, and where its copy is: one entry for each form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

from connector.catalog import CATALOG
from connector.catalog.field import Kind

ENVIRONMENTS = Path(__file__).parents[2] / ".venv-peers"
_HERE = Path(__file__).parent
_ROOT = Path(__file__).parents[2]
_KEY = "sandbox-key"
_JSON_TYPES = {Kind.BOOL: "boolean", Kind.INTEGER: "integer", Kind.NUMBER: "number"}

Commands = Callable[[Path, str], list[list[str]]]
"""What is run in a folder against an address: programs, each reading what the one before wrote."""


@dataclass(frozen=True)
class Copier:
    """Tool to compare, in one of its forms: its commands and its copy.

    `file` is the DuckDB file of the copy; `query` selects the id and the notes of each row in it.
    """

    name: str
    form: str
    commands: Commands
    file: str
    query: str = "SELECT id, record->>'notes' FROM candidates"

    @property
    def title(self) -> str:
        """Name in tables, for example "dlt, exact"."""
        return f"{self.name}, {self.form}" if self.form else self.name


@dataclass(frozen=True)
class RunCost:
    """Success, time and memory of a run: the sums over its programs, except for the wall time."""

    has_succeeded: bool
    wall_seconds: float
    processor_seconds: float
    memory_mb: float


def run_copier(copier: Copier, folder: Path, base_url: str) -> RunCost:
    """Run the copier's commands as one pipe, and return their cost."""
    environ = {
        **os.environ,
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": _KEY,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
        "PYTHONPATH": str(_ROOT),
    }
    start, piped = time.monotonic(), None
    running: list[subprocess.Popen[bytes]] = []
    commands = copier.commands(folder, base_url)
    with (folder / "errors.txt").open("ab") as errors:
        for command in commands:
            is_last = len(running) == len(commands) - 1
            running.append(
                subprocess.Popen(  # noqa: S603  # our own
                    command,
                    env=environ,
                    cwd=folder,
                    stdin=piped or subprocess.DEVNULL,
                    stdout=errors if is_last else subprocess.PIPE,
                    stderr=errors,
                )
            )
            piped = running[-1].stdout
    seconds = memory = 0.0
    has_succeeded = True
    for process in running:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        has_succeeded = has_succeeded and process.returncode == 0
        seconds += used.ru_utime + used.ru_stime
        memory += used.ru_maxrss / 1024
    return RunCost(has_succeeded, time.monotonic() - start, seconds, memory)


def read_copy(copier: Copier, folder: Path) -> dict[str, str | None]:
    """Return the notes of every row of the copy by id; empty if nothing was loaded."""
    file = folder / copier.file
    if not file.exists():
        return {}
    with duckdb.connect(str(file), read_only=True) as connection:
        try:
            return dict(connection.execute(copier.query).fetchall())
        except duckdb.CatalogException:  # nothing was loaded, so there is no table
            return {}


def _naive_commands(folder: Path, base_url: str) -> list[list[str]]:
    return [
        [sys.executable, "-m", "benchmarks.naive", "pull", base_url, _KEY, str(folder / "naive.db")]
    ]


def _dlt_commands(form: str) -> Commands:
    """Return a function that returns the dlt command for a folder and an address."""

    def commands(folder: Path, base_url: str) -> list[list[str]]:
        return [
            [_peer_python("dlt"), str(_HERE / "dlt_peer.py"), form, base_url, _KEY, str(folder)]
        ]

    return commands


def _singer_commands(form: str) -> Commands:
    """Return a function that writes the tap's configuration and returns tap and loader commands."""

    def commands(folder: Path, base_url: str) -> list[list[str]]:
        schema = _write_json(folder / "schema.json", _candidate_json_schema())
        config = {"base_url": base_url, "api_key": _KEY, "form": form, "schema": schema}
        tap = [_peer_python("singer"), str(_HERE / "singer_peer.py")]
        tap += ["--config", _write_json(folder / "config.json", config)]
        return _with_loader(tap, folder, form)

    return commands


def _airbyte_commands(form: str) -> Commands:
    """Return a function that writes the source's configuration and returns its commands."""

    def commands(folder: Path, base_url: str) -> list[list[str]]:
        config: dict[str, Any] = {"base_url": base_url, "api_key": _KEY}
        if form == "exact":
            manifest = yaml.safe_load((_HERE / "airbyte_exact.yaml").read_text(encoding="utf-8"))
            config["__injected_declarative_manifest"] = manifest
            source = [str(ENVIRONMENTS / "airbyte" / "bin" / "source-declarative-manifest")]
        else:
            source = [_peer_python("airbyte"), str(_HERE / "airbyte_peer.py")]
        is_exact = form == "exact"
        mode = "full_refresh" if is_exact else "incremental"
        stream = {
            "stream": {
                "name": "candidates",
                "json_schema": _candidate_json_schema(),
                "supported_sync_modes": [mode],
            },
            "sync_mode": mode,
            "destination_sync_mode": "overwrite" if is_exact else "append_dedup",
        }
        source += ["read", "--config", _write_json(folder / "config.json", config)]
        source += ["--catalog", _write_json(folder / "catalog.json", {"streams": [stream]})]
        return _with_loader(source, folder, form)

    return commands


def _connector_commands(_: Path, __: str) -> list[list[str]]:
    start = "from connector.cli import main; main(prog_name='connector')"
    return [[sys.executable, "-c", start, "pull", "candidates"]]


def _with_loader(source: list[str], folder: Path, form: str) -> list[list[str]]:
    """Return the source command with its saved state, and the loader command that follows it."""
    state = folder / "state.json"
    if state.exists() and form == "incremental":
        source += ["--state", str(state)]
    loader = [sys.executable, "-m", "benchmarks.peers.loader", str(folder / "loaded.db")]
    return [source, [*loader, str(state), "replace" if form == "exact" else "merge"]]


def _peer_python(peer: str) -> str:
    """Return the path of the Python interpreter in the peer's environment."""
    return str(ENVIRONMENTS / peer / "bin" / "python")


def _write_json(file: Path, value: Any) -> str:
    """Write the value to a JSON file, and return its path."""
    file.write_text(json.dumps(value), encoding="utf-8")
    return str(file)


def _candidate_json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a candidate."""
    types = {
        each.name: _JSON_TYPES.get(each.kind, "string")
        for each in CATALOG["candidates"].fields.values()
    }
    properties = {name: {"type": [type, "null"]} for name, type in types.items()}
    return {"type": "object", "properties": properties}


_OURS = "SELECT id, notes FROM landing.candidates WHERE _deleted_at IS NULL"
_DLT = "SELECT id, notes FROM landed.candidates"
OURS = Copier("this connector", "", _connector_commands, "data/work.duckdb", _OURS)
COPIERS = (
    OURS,
    Copier("naive script", "", _naive_commands, "naive.db"),
    Copier("dlt", "exact", _dlt_commands("exact"), "peers.duckdb", _DLT),
    Copier("dlt", "incremental", _dlt_commands("incremental"), "peers.duckdb", _DLT),
    Copier("Singer SDK", "exact", _singer_commands("exact"), "loaded.db"),
    Copier("Singer SDK", "incremental", _singer_commands("incremental"), "loaded.db"),
    Copier("Airbyte CDK", "exact", _airbyte_commands("exact"), "loaded.db"),
    Copier("Airbyte CDK", "incremental", _airbyte_commands("incremental"), "loaded.db"),
)
