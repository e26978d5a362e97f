"""Measures the connector beside short scripts (`naive.py`): `python -m benchmarks`, `make bench`.

Prints the lines of the table of `docs/SCALE.md`. `--quick` measures small sizes, and
`python -m benchmarks pulls pushes` these topics only. A sandbox in a separate process serves the
records. Its time is not counted. Each round measures the connector and the script in turn, because
the speed of a machine changes within minutes.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
KEY = "sandbox-key"
ROUNDS = 3
CHANGED = 65
PULLED, PUSHED, PREVIEWED = 20_000, 2_000, 50_000
QUICK_SHARE = 100
"""Part of the sizes that `--quick` measures."""

HEADINGS = ("first_name", "last_name", "email", "phone", "current_company", "employment_type")


@dataclass(frozen=True)
class Cost:
    """Processor and wall time in seconds of a command and its child processes.

    `memory` is the peak resident size of the largest process, in megabytes.
    """

    processor: float
    wall: float
    memory: float


Costs = dict[str, list[Cost]]
"""The costs of all rounds, by what was measured; a script has the suffix `: script`."""


def run(command: Sequence[object], data: Path | None = None, url: str = "http://localhost") -> Cost:
    """Run a command for the account whose folder is `data`, and return its cost.

    Raises:
        RuntimeError: The command failed. A preview with problems (3) is a success.
    """
    environ = {"CONNECTOR_BASE_URL": url, "CONNECTOR_API_KEY": KEY}
    if data is not None:
        environ["CONNECTOR_DATA_DIR"] = str(data)
    began = time.monotonic()
    with subprocess.Popen(  # noqa: S603  # the commands are our own
        [*map(str, command)],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise RuntimeError(f"{command} exited with {process.returncode}: {output}")
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    wall = time.monotonic() - began
    return Cost(used.ru_utime + used.ru_stime, wall, kilobytes * 1024 / 1e6)


def connector(*arguments: object) -> list[object]:
    """Return the command line of a `connector` command."""
    start = "from connector.cli import main; main(prog_name='connector')"
    return [sys.executable, "-c", start, *arguments]


def script(*arguments: object) -> list[object]:
    """Return the command line of a script of `naive.py`."""
    return [sys.executable, "-m", "benchmarks.naive", *arguments]


@contextmanager
def serve_sandbox(folder: Path, *options: object) -> Iterator[str]:
    """Serve a sandbox from a separate process, and yield its address."""
    command = connector("sandbox", "--port", 0, "--data", folder / "sandbox.db", *options)
    with subprocess.Popen(  # noqa: S603  # the command is our own
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def change_candidates(base_url: str, number: int, size: int) -> None:
    """Change `CHANGED` of the `size` candidates, spread over the list."""
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=60) as client:
        for place in range(CHANGED):
            query = {"page": 1 + place * size // CHANGED, "per_page": 1}
            id = client.get("/candidates", params=query).json()["data"][0]["id"]
            client.put(f"/candidates/{id}", json={"city": f"City {number}"}).raise_for_status()


def write_candidates(file: Path, size: int, host: str) -> None:
    """Write new candidates, whose emails end with `HOST.example`; one in a hundred is wrong."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(HEADINGS)
        for n in range(size):
            at = " at " if host == "preview" and n % 100 == 0 else "@"
            name = ("Zoë", f"N{n}", f"p{n}{at}{host}.example", f"+44 20 7946 {n:04d}")
            writer.writerow((*name, "Wren & Co", "permanent"))


def measure_pulls(folder: Path, share: int, costs: Costs) -> None:
    """Measure first loads, pulls without and with changes, and publications of the same account."""
    size = PULLED // share
    with serve_sandbox(folder, "--candidates", size) as url:
        data, naive = folder / "data", folder / "naive.duckdb"
        run(connector("pull"), data, url)
        for number in range(ROUNDS):
            copied = run(script("pull", url, KEY, naive))
            load = connector("pull", "candidates")
            costs[f"first load of {size:,} candidates"].append(
                run(load, folder / f"load{number}", url)
            )
            costs[f"pull without changes, {size:,} candidates"].append(
                run(connector("pull"), data, url)
            )
            costs["`connector status`"].append(run(connector("status"), data, url))
            for what in [*costs][:2]:
                costs[f"{what}: script"].append(copied)
            costs["publication of all models"].append(run(connector("publish"), data, url))
            copy = folder / f"copy{number}.duckdb"
            costs["publication of all models: script"].append(
                run(script("copy", data / "work.duckdb", copy))
            )
        # Changes come last: for two minutes after a change, a pull reads the changed records again.
        for number in range(ROUNDS):
            change_candidates(url, number, size)
            costs[f"pull of {CHANGED} changes"].append(run(connector("pull"), data, url))
        costs[f"pull of {CHANGED} changes: script"] += costs[f"{next(iter(costs))}: script"]


def measure_pushes(folder: Path, share: int, costs: Costs) -> None:
    """Measure pushes of new candidates, and previews of a large file."""
    size, previewed = PUSHED // share, PREVIEWED // share
    file = folder / "people.csv"
    for number in range(ROUNDS):
        place = folder / str(number)
        place.mkdir()
        with serve_sandbox(place, "--candidates", 0, "--jobs", 1) as url:
            what = f"push of {size:,} new candidates"
            write_candidates(file, size, "script")
            costs[f"{what}: script"].append(run(script("push", url, KEY, file)))
            write_candidates(file, size, f"connector{number}")
            push = connector("push", "candidates", file, "--mode", "create", "--no-pull")
            costs[what].append(run([*push, "--apply"], place / "data", url))
        what = f"preview of {previewed:,} rows"
        write_candidates(file, previewed, "preview")
        costs[f"{what}: script"].append(run(script("check", file)))
        costs[what].append(run(push, place / "previewed"))


TOPICS: dict[str, Callable[[Path, int, Costs], None]] = {
    "pulls": measure_pulls,
    "pushes": measure_pushes,
}


def table_lines(costs: Costs) -> Iterator[str]:
    """Yield a line for each measurement: medians, and the median ratio to the script."""
    for what, ours in costs.items():
        if what.endswith(": script"):
            continue
        others = costs.get(f"{what}: script", [])
        pairs = [one.processor / other.processor for one, other in zip(ours, others, strict=False)]
        ratio = f"{statistics.median(pairs):.2f}" if pairs else ""
        seconds, wall, memory = (
            statistics.median(getattr(each, name) for each in ours)
            for name in ("processor", "wall", "memory")
        )
        naive = f"{statistics.median(e.processor for e in others):.2f} s" if others else ""
        yield f"| {what} | {seconds:.2f} s | {wall:.2f} s | {memory:.0f} MB | {naive} | {ratio} |"


def main(arguments: list[str]) -> int:
    """Measure the named topics, or all. Return 0, or 2 for an unknown topic."""
    names = [each for each in arguments if each != "--quick"] or [*TOPICS]
    if unknown := {*names} - TOPICS.keys():
        print(f"Unknown topics: {', '.join(sorted(unknown))}. Allowed: {', '.join(TOPICS)}.")
        return 2
    print(f"Measured on {datetime.now(UTC):%Y-%m-%d}, on a machine with {os.cpu_count()} cores.\n")
    print("| Measured | Processor time | Wall time | Memory | Script | Ratio |")
    print("|---|---|---|---|---|---|")
    for name in names:
        costs: Costs = defaultdict(list)
        with tempfile.TemporaryDirectory() as folder:
            TOPICS[name](Path(folder), QUICK_SHARE if "--quick" in arguments else 1, costs)
        for line in table_lines(costs):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
