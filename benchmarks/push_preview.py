"""A dry run, from the file to its report: rows a second and memory: `python -m benchmarks
push_preview`; `python -m benchmarks.push_preview 1000000` takes that many rows.

A csv of candidates, of which one in a hundred is wrong, is previewed as `connector push` without
`--apply` does it, in a process of its own, against a warehouse with 20,000 candidates landed; the
report is written beside it. Every row must be in the report once, and the peak of the resident set
must stay below the target at a million rows, of which the default is a part.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory import peak_bytes
from benchmarks.spreadsheet_checking import MEGABYTES_MAX, land, write
from connector.pushes.dry_run import Asked
from connector.pushes.push import Manner, push
from connector.settings.model import load_settings

ROWS = 100_000
_ROOT = Path(__file__).parents[1]


def measure_here(count: int, folder: Path) -> dict[str, float]:
    """Preview so many rows in this process."""
    environ = {
        "CONNECTOR_BASE_URL": "http://127.0.0.1:9",
        "CONNECTOR_API_KEY": "nobody",
        "CONNECTOR_DATA_DIR": str(folder),
        "CONNECTOR_MODELS": "off",
    }
    settings = load_settings({}, environ, folder)
    began, wall = time.process_time(), time.monotonic()
    asked = Asked("candidates", folder / "people.csv", "create")
    (report,) = asyncio.run(push(settings, [asked], Manner()))
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    wrong = -(-count // 100)
    assert {"create": count - wrong, "invalid": wrong} == report.counts, report.counts
    assert report.file is not None
    with report.file.open("rb") as file:
        assert count + 1 == sum(1 for _ in file)
    return {"bytes": peak_bytes(), "seconds": seconds, "wall": waited}


def compare(count: int) -> int:
    """Print the figures; 0 if the peak is below the target."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        land(folder)
        write(folder / "people.csv", count, 1_000_000)
        here = ["--here", str(count), str(folder)]
        command = [sys.executable, "-m", "benchmarks.push_preview", *here]
        printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603 # our own
        measured = json.loads(printed)
    rate, megabytes = count / measured["seconds"], measured["bytes"] / 1e6
    is_met = megabytes < MEGABYTES_MAX
    print(
        f"{count:,} rows previewed and reported on, {rate:,.0f} rows/s of the processor"
        f" ({measured['wall']:.1f} s in all), {megabytes:.1f} MB (below {MEGABYTES_MAX} MB)"
        f" {'ok' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


def main() -> int:
    """Preview a file of the default size."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), Path(sys.argv[3]))))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))
