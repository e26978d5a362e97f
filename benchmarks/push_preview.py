"""A dry run from the file to its report: rows a second, memory, beside pandas.

`python -m benchmarks push_preview`; `python -m benchmarks.push_preview 1000000` takes that many
rows of csv.

A csv of candidates, of which one in a hundred is wrong, is previewed as `connector push` without
`--apply` does it, in a process of its own, against a warehouse with 20,000 candidates landed; the
report is written beside it. Every row must be in the report once, and the peak of the resident set
must stay below the target at a million rows, of which the default is a part.

A workbook of the same rows is previewed as well, and pandas reads it: each a whole process, in
seconds of the processor. pandas reads and does no more; the preview also scans the XML, checks each
row and writes a workbook with each row, so its target is some times pandas'.
"""

from __future__ import annotations

import asyncio
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openpyxl import Workbook

from benchmarks.scale import peak_bytes
from benchmarks.spreadsheet_checking import MEGABYTES_MAX, land, write
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.settings.model import load_settings

ROWS = 100_000
WORKBOOK_ROWS = 50_000
PANDAS_TIMES_MAX = 5.5
_ROOT = Path(__file__).parents[1]
_PANDAS = "import pandas, sys; pandas.read_excel(sys.argv[1], engine='calamine')"


def measure_here(count: int, path: Path) -> dict[str, float]:
    """Preview a file of so many rows in this process."""
    environ = {
        "CONNECTOR_BASE_URL": "http://127.0.0.1:9",
        "CONNECTOR_API_KEY": "nobody",
        "CONNECTOR_DATA_DIR": str(path.parent),
        "CONNECTOR_MODELS": "off",
    }
    settings = load_settings({}, environ, path.parent)
    began, wall = time.process_time(), time.monotonic()
    (report,) = asyncio.run(
        push(settings, [PushFile("candidates", path, "create")], PushRunOptions())
    )
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    wrong = -(-count // 100)
    assert {"create": count - wrong, "invalid": wrong} == report.counts, report.counts
    assert report.file is not None
    if path.suffix == ".csv":
        with report.file.open("rb") as file:
            assert count + 1 == sum(1 for _ in file)
    return {"bytes": peak_bytes(), "seconds": seconds, "wall": waited}


def compare(count: int) -> int:
    """Print the figures; 0 if every target is met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        land(folder)
        write(folder / "people.csv", count, 1_000_000)
        measured = json.loads(_run(_here(count, folder / "people.csv"))[0])
        is_beside_pandas = _compare_with_pandas(folder)
    rate, megabytes = count / measured["seconds"], measured["bytes"] / 1e6
    is_met = megabytes < MEGABYTES_MAX
    print(
        f"{count:,} rows previewed and reported on, {rate:,.0f} rows/s of the processor"
        f" ({measured['wall']:.1f} s in all), {megabytes:.1f} MB (below {MEGABYTES_MAX} MB)"
        f" {'ok' if is_met else 'MISSED'}"
    )
    return 0 if is_met and is_beside_pandas else 1


def _compare_with_pandas(folder: Path) -> bool:
    """Print what a workbook takes, whole processes; True if the target is met."""
    path = folder / "book.csv"
    write(path, WORKBOOK_ROWS, 2_000_000)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            sheet.append(row)
    book.save(path.with_suffix(".xlsx"))
    _, ours = _run(_here(WORKBOOK_ROWS, path.with_suffix(".xlsx")))
    _, theirs = _run([sys.executable, "-c", _PANDAS, str(path.with_suffix(".xlsx"))])
    is_met = ours <= PANDAS_TIMES_MAX * theirs
    print(
        f"{WORKBOOK_ROWS:,} rows of a workbook previewed in {ours:.1f} s of the processor, read by"
        f" pandas in {theirs:.1f} s: {ours / theirs:.1f} times (at most {PANDAS_TIMES_MAX})"
        f" {'ok' if is_met else 'MISSED'}"
    )
    return is_met


def _here(count: int, path: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.push_preview", "--here", str(count), str(path)]


def _run(command: list[str]) -> tuple[str, float]:
    """What the command prints, and its seconds of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603 # our own
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Preview files of the default sizes."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), Path(sys.argv[3]))))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))
