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
from datetime import UTC, datetime
from pathlib import Path

from openpyxl import Workbook

from benchmarks.scale import peak_bytes
from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.page import PER_PAGE_MAX
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Found
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.settings.model import load_settings
from connector.warehouse.warehouse import Warehouse

ROWS = 100_000
WORKBOOK_ROWS = 50_000
PANDAS_TIMES_MAX = 5.5
LANDED = 20_000
MEGABYTES_MAX = 220
HEADINGS = ("Forename", "Surname", "E-mail", "Mobile No.", "Current Employer", "employment_type")
_ROOT = Path(__file__).parents[1]
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_PANDAS = "import pandas, sys; pandas.read_excel(sys.argv[1], engine='calamine')"


def write(path: Path, count: int, first: int) -> None:
    """A file of so many candidates, beginning with this number."""
    with path.open("w", encoding="utf-8", newline="") as file:
        made = csv.writer(file)
        made.writerow(HEADINGS)
        for n in range(first, first + count):
            kind = "Sometimes" if n % 100 == 0 else "Permanent"
            phone = f"+44 7700 {n % 1_000_000:06d}"
            made.writerow(("Zoë", f"N{n}", f"p{n}@people.example", phone, "Wren & Co", kind))


def land(folder: Path) -> Warehouse:
    """A warehouse with candidates of the first numbers."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    stream = Stream(CATALOG["candidates"])
    with warehouse.keeping():
        for begin in range(0, LANDED, PER_PAGE_MAX):
            records = (Candidate(_raw(n)) for n in range(begin, begin + PER_PAGE_MAX))
            found = Commit(records=tuple(Found(record, _AT) for record in records))
            warehouse.commit(stream, found, "run", _AT)
    return warehouse


def _raw(number: int) -> dict[str, object]:
    return {
        **dict.fromkeys(CATALOG["candidates"].fields),
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "created_at": _AT.isoformat(),
        "updated_at": _AT.isoformat(),
        "first_name": "Zoë",
        "last_name": f"N{number}",
        "email": f"p{number}@people.example",
        "employment_type": "permanent",
        "skills": "SQL, Python, negotiation, a driving licence",
    }


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
