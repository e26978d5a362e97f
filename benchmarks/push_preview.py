"""A preview from the file to its report: rows per second, memory, and time beside pandas.

`python -m benchmarks push_preview`; `python -m benchmarks.push_preview 1000000` takes that many
rows of csv.

A csv of candidates, of which one in a hundred is wrong, is previewed as `connector push` without
`--apply` does it, in a separate process, against a warehouse with 20,000 candidates landed. The
report has the wrong rows, and all rows are counted. The peak of the resident set must stay below
the target at a million rows. The default is a part of them.

A csv and a workbook of 50,000 rows and 12 columns are previewed, and read and checked by pandas
with the same five checks: required names, form of the email address, allowed values, dates of
birth, and duplicates. Times are seconds of the processor. Two ratios are printed: of whole
processes, which is what a person waits for, and of the work alone, without starting Python and
importing modules. pandas checks a column of text in Arrow, in 2 microseconds per row of a csv; the
preview reads each cell of 12 columns in Python and compares each row with the local copy.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from benchmarks.scale import peak_bytes
from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.page import PER_PAGE_MAX
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushRunOptions, push
from connector.settings.model import load_settings
from connector.warehouse.bookmark import Stream
from connector.warehouse.pull_commands import Commit, Found
from connector.warehouse.warehouse import Warehouse

ROWS = 100_000
WIDE_ROWS = 50_000
TIMES_MAX = {".csv": 5.0, ".xlsx": 3.0}
"""Seconds of the processor of a whole process, beside pandas with the same five checks.

The aim is 3 and 2.5. A row of 12 cells takes some 30 calls of Python functions in the preview, and
none in pandas, which checks whole columns in Arrow.
"""

LANDED = 20_000
MEGABYTES_MAX = 220
HEADINGS = ("Forename", "Surname", "E-mail", "Mobile No.", "Current Employer", "employment_type")
WIDE_HEADINGS = (
    *("First Name", "Last Name", "Email", "Phone", "City", "Current Employer", "Job Title"),
    *("Employment Type", "Date of Birth", "Expected Salary", "Salary Currency", "Available From"),
)
_ROOT = Path(__file__).parents[1]
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_CONNECTOR = "from connector.cli import main; main()"
_PANDAS = """
import sys
import pandas as pd

def check(path):
    options = {"dtype": str, "keep_default_na": False}
    options |= {} if path.endswith(".csv") else {"engine": "calamine"}
    read = (pd.read_csv if path.endswith(".csv") else pd.read_excel)(path, **options)
    wrong = (read["First Name"].str.strip() == "") | (read["Last Name"].str.strip() == "")
    wrong |= ~read["Email"].str.fullmatch(r"[^@\\s]+@[^@\\s]+\\.[^@\\s]+")
    wrong |= ~read["Employment Type"].str.lower().isin(["permanent", "contractor", "interim"])
    born = pd.to_datetime(read["Date of Birth"], format="%Y-%m-%d", errors="coerce")
    wrong |= born.isna() | read["Email"].str.lower().duplicated()
    assert 500 == wrong.sum(), wrong.sum()
    read[wrong].to_csv(path + ".wrong", index=False)

check(sys.argv[1])
"""


def write(path: Path, count: int, first: int) -> None:
    """Write a file with `count` candidates, numbered from `first`."""
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
    with warehouse.keep_open():
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


def _environ(folder: Path) -> dict[str, str]:
    return {
        "CONNECTOR_BASE_URL": "http://127.0.0.1:9",
        "CONNECTOR_API_KEY": "nobody",
        "CONNECTOR_DATA_DIR": str(folder),
        "CONNECTOR_MODELS": "off",
    }


def measure_here(count: int, path: Path) -> dict[str, float]:
    """Preview a file of `count` rows in this process."""
    settings = load_settings({}, _environ(path.parent), path.parent)
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
            assert wrong + 1 == sum(1 for _ in file)
    report.file.unlink()
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
    """Print the ratios to pandas for a csv and a workbook; True if the targets are met."""
    path = folder / "table.csv"
    _write_wide(path, 2_000_000)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            sheet.append([int(cell) if cell.isdecimal() else cell for cell in row])
    book.save(path.with_suffix(".xlsx"))
    are_met = True
    for suffix, most in TIMES_MAX.items():
        source = path.with_suffix(suffix)
        _, ours = _run(_command(source), folder)
        _, theirs = _run([sys.executable, "-c", _PANDAS, str(source)])
        work = json.loads(_run([*_here(WIDE_ROWS, source)[:3], "--work", str(source)])[0])
        is_met = ours <= most * theirs
        are_met &= is_met
        print(
            f"{WIDE_ROWS:,} rows of {suffix[1:]}: previewed in {ours:.1f} s of the processor, read"
            f" and checked by pandas in {theirs:.1f} s: {ours / theirs:.1f} times (at most {most})"
            f" {'ok' if is_met else 'MISSED'}; work alone {work['ours']:.2f} s and"
            f" {work['pandas']:.2f} s: {work['ours'] / work['pandas']:.1f} times"
        )
    return are_met


def _write_wide(path: Path, first: int) -> None:
    """Write a csv of candidates with 12 columns, beginning with this number."""
    with path.open("w", encoding="utf-8", newline="") as file:
        made = csv.writer(file)
        made.writerow(WIDE_HEADINGS)
        for n in range(first, first + WIDE_ROWS):
            kind = "Sometimes" if n % 100 == 0 else ("permanent", "contractor", "interim")[n % 3]
            names = ("Zoë", f"N{n}", f"p{n}@people.example", f"+44 7700 {n % 1_000_000:06d}")
            work = (("London", "Leeds", "Köln")[n % 3], f"Wren & Co {n % 500}", "Engineer", kind)
            born, free = f"{1950 + n % 50}", f"2026-{1 + n % 12:02d}-{1 + n % 28:02d}"
            made.writerow((*names, *work, born + free[4:], 30_000 + n % 400 * 100, "GBP", free))


def measure_work(path: Path) -> dict[str, float]:
    """Seconds of the processor of both in this process, the least of three times each."""
    checks: dict[str, Any] = {}
    exec(_PANDAS.partition("check(sys.argv[1])")[0], checks)  # noqa: S102 # our own text
    seconds: dict[str, list[float]] = {"pandas": [], "ours": []}
    for _ in range(3):
        began = time.process_time()
        checks["check"](str(path))
        seconds["pandas"].append(time.process_time() - began)
        seconds["ours"].append(measure_here(WIDE_ROWS, path)["seconds"])
    return {name: min(times) for name, times in seconds.items()}


def _here(count: int, path: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.push_preview", "--here", str(count), str(path)]


def _command(path: Path) -> list[str]:
    return [sys.executable, "-c", _CONNECTOR, "push", "candidates", str(path), "--mode", "create"]


def _run(command: list[str], data: Path | None = None) -> tuple[str, float]:
    """What the command prints, and its seconds of the processor; `data` is its data folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = os.environ | ({} if data is None else _environ(data))
    printed = subprocess.run(  # noqa: S603 # our own
        command, cwd=_ROOT, text=True, env=environ, check=data is None, capture_output=True
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Preview files of the default sizes."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(measure_work(Path(sys.argv[2]))))
    elif sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), Path(sys.argv[3]))))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))
