"""Pulls next to a script, at three sizes, and the start of short commands.

A sandbox in a separate process serves the candidates and a small agency. Its time is not counted.
Each round measures all commands in turn, because the speed of a machine changes within minutes.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from benchmarks.measure import (
    KEY,
    Bound,
    Cost,
    Line,
    account_environ,
    connector_command,
    measured_line,
    measured_rounds,
    module_command,
    run,
    serve_sandbox,
)

SIZES = (200, 2_000, 20_000)
OTHERS = 1_164
"""Records of the other resources of the sandbox."""

CHANGED = 65


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for pulls at each size, or only at the smallest."""
    sizes = SIZES[:1] if is_quick else SIZES
    for size in sizes:
        with (
            tempfile.TemporaryDirectory() as name,
            serve_sandbox(Path(name), "--candidates", size) as base_url,
        ):
            costs = _measure_size(Path(name), base_url, size, sizes)
        seconds = {what: [each.processor for each in every] for what, every in costs.items()}
        yield from _first_load_lines(size, seconds, [each.memory for each in costs["load"]])
        yield from _later_pull_lines(size, seconds, [each.wall for each in costs["quiet"]])


def _measure_size(
    folder: Path, base_url: str, size: int, sizes: tuple[int, ...]
) -> dict[str, list[Cost]]:
    """Run each command in every round; return the costs by the name of the measurement."""
    costs: dict[str, list[Cost]] = defaultdict(list)
    naive, data = folder / "naive.duckdb", account_environ(folder / "data", base_url, models="on")
    run(connector_command("pull"), data)
    for number in measured_rounds(size, sizes):
        costs["script"].append(run(module_command("naive", "pull", base_url, KEY, naive)))
        load = connector_command("pull", "candidates")
        costs["load"].append(run(load, account_environ(folder / f"loaded{number}", base_url)))
        costs["quiet"].append(run(connector_command("pull"), data))
        costs["status"].append(run(connector_command("status"), data))
        if size == min(sizes):
            costs["python"].append(run([sys.executable, "-c", "pass"]))
            costs["help"].append(run(connector_command("--help")))
            costs["version"].append(run(connector_command("--version")))
    # Changes come last: for two minutes after a change, a pull reads the changed records again.
    for number in measured_rounds(size, sizes):
        _change_candidates(base_url, number, size)
        costs["changed"].append(run(connector_command("pull"), data))
    return costs


def _first_load_lines(
    size: int, seconds: Mapping[str, list[float]], memory: list[float]
) -> Iterator[Line]:
    """Yield the lines for a first load. `seconds` is by measurement, `memory` in megabytes."""
    what, shown = "first load, models off", f"{size:,} candidates"
    yield measured_line(
        what,
        shown,
        seconds["load"],
        seconds["script"],
        "script with httpx",
        bound=Bound(1.0, "ratio", _FIRST_LOAD) if size == max(SIZES) else None,
    )
    yield measured_line(f"{what}: memory", shown, memory, unit="MB")


_FIRST_LOAD = (
    "The connector also keeps a history of each record, paces its requests and counts them."
)


_QUIET = (
    "Imports take half of the time. Opening the database files, their transactions, and the check "
    "for a change in the published data take most of the rest."
)
_STATUS = "Imports and opening the database files take the time."


def _later_pull_lines(
    size: int, seconds: Mapping[str, list[float]], quiet_wall: list[float]
) -> Iterator[Line]:
    """Yield the lines for pulls after the first load, and for commands that make no requests."""
    shown = f"{size + OTHERS:,} records"
    script = seconds["script"], "script with httpx"
    is_middle, is_largest = size == 2_000, size == 20_000
    yield measured_line(
        "pull without changes, models on",
        shown,
        seconds["quiet"],
        *script,
        bound=Bound(1.0, reason=_QUIET) if is_middle else None,
    )
    if is_middle:
        yield measured_line(
            "pull without changes, models on",
            shown,
            quiet_wall,
            bound=Bound(1.2, reason=_QUIET),
            unit="s (wall)",
        )
    yield measured_line(
        f"pull of {CHANGED} changes, models on",
        shown,
        seconds["changed"],
        *script,
        bound=Bound(4.0) if is_largest else None,
    )
    yield measured_line(
        "`connector status`",
        shown,
        seconds["status"],
        bound=Bound(0.6, reason=_STATUS) if is_middle else None,
    )
    for name in ("help", "version"):
        if name in seconds:
            start = seconds["python"], "start of Python"
            yield measured_line(
                f"`connector --{name}`", "", seconds[name], *start, bound=Bound(0.15)
            )


def _change_candidates(base_url: str, number: int, size: int) -> None:
    """Change `CHANGED` of the `size` candidates, spread over the list."""
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client:
        for place in range(CHANGED):
            query = {"page": 1 + place * size // CHANGED, "per_page": 1}
            id = client.get("/candidates", params=query).json()["data"][0]["id"]
            client.put(f"/candidates/{id}", json={"city": f"City {number}"}).raise_for_status()
