"""Opening and checking a spreadsheet: rows a second and memory.

`python -m benchmarks spreadsheet_checking`; `python -m benchmarks.spreadsheet_checking 1000000`
takes that many rows.

A csv of six columns is opened, read and checked for creating candidates, against a warehouse with
20,000 candidates landed, in a process of its own; nothing of it is kept. One row in a hundred is
wrong. The rate is in seconds of the processor, so that another program does not count as ours. The
peak is the resident set's, and must stay below the target at a million rows, of which the default
is a part: what grows with the rows is a digest for each.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale import peak_bytes
from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.page import PER_PAGE_MAX
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Found
from connector.spreadsheet.check import check
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.table import open_table
from connector.spreadsheet.target_columns import folded, push_target
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

ROWS = 200_000
LANDED = 20_000
RATE_MIN = 20_000
MEGABYTES_MAX = 220
HEADINGS = ("Forename", "Surname", "E-mail", "Mobile No.", "Current Employer", "employment_type")
MODES = ("create", "update")
_ROOT = Path(__file__).parents[1]
_AT = datetime(2026, 1, 1, tzinfo=UTC)


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


def measure_here(count: int, mode: str, folder: Path) -> dict[str, float]:
    """Open and check so many rows in this process."""
    with WarehouseLookups(Warehouse(folder), folded) as lookups:
        match = ("email",) if mode == "update" else ()
        wanted = push_target("candidates", "update" if match else "create", lookups, match=match)
        began, wall = time.process_time(), time.monotonic()
        table = open_table(folder / f"{mode}.csv")
        columns = map_headings(table.headings, wanted)
        outcomes = Counter(each.outcome for each in check(table.rows(), columns, wanted, lookups))
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    assert count == outcomes.total(), outcomes
    assert -(-count // 100) == outcomes["invalid"], outcomes
    return {"bytes": peak_bytes(), "seconds": seconds, "wall": waited}


def compare(count: int) -> int:
    """Print the figures of creates and updates; 0 if every target is met."""
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        land(folder)
        for mode in MODES:
            # Updates are of records that are there, which are fewer.
            rows = count if mode == "create" else min(count, LANDED)
            write(folder / f"{mode}.csv", rows, 1_000_000 if mode == "create" else 0)
            here = ["--here", str(rows), mode, str(folder)]
            command = [sys.executable, "-m", "benchmarks.spreadsheet_checking", *here]
            printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603 # our own
            measured = json.loads(printed)
            rate, megabytes = rows / measured["seconds"], measured["bytes"] / 1e6
            is_met = megabytes < MEGABYTES_MAX and (mode != "create" or rate >= RATE_MIN)
            missed |= not is_met
            print(
                f"{mode:<7} {rows:>9,} rows {rate:>8,.0f} rows/s of the processor "
                f"({measured['wall']:.1f} s in all), {megabytes:>6.1f} MB "
                f"(at least {RATE_MIN:,} for creates, below {MEGABYTES_MAX} MB) "
                f"{'ok' if is_met else 'MISSED'}",
                flush=True,
            )
    return 1 if missed else 0


def main() -> int:
    """Check a file of the default size."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))
