"""Reading spreadsheets: a csv of a million rows, streamed, in its own process.

`python -m benchmarks spreadsheet_reading`; `python -m benchmarks.spreadsheet_reading 100000`
takes another size.

Beside the peak of the resident set and the rows a second stands a workbook of a tenth as many
cells, which is held in memory while it is read; it has no target.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openpyxl import Workbook

from benchmarks.scale import peak_bytes
from connector.spreadsheet.table import open_table

ROWS = 1_000_000
PEAK_MEGABYTES_MAX = 200
ROWS_PER_SECOND_MIN = 20_000
_COLUMNS = 10
_SHARE_OF_WORKBOOK = 10
_ROOT = Path(__file__).parents[1]


def cells_of(number: int) -> list[str]:
    """A row as agencies have them: a name, addresses, a date, and a note of two lines."""
    return [
        f"Jördis {number}",
        "van der Meer",
        f"jordis{number}@example.com",
        f"+44 20 {number:08}",
        "Köln; Nippes",
        "2025-03-04",
        "active",
        f"{number % 90_000}",
        'said "later",\nthen nothing',
        "web",
    ]


def write_csv(path: Path, rows: int) -> None:
    """A csv of so many rows, written in pieces."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(f"column {index}" for index in range(_COLUMNS)) + "\r\n")
        for number in range(rows):
            quoted = ('"' + cell.replace('"', '""') + '"' for cell in cells_of(number))
            file.write(",".join(quoted) + "\r\n")


def write_workbook(path: Path, rows: int) -> None:
    """A workbook of so many rows."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    sheet.append([f"column {index}" for index in range(_COLUMNS)])
    for number in range(rows):
        sheet.append(cells_of(number))
    book.save(path)


def measure_here(path: Path) -> dict[str, float]:
    """Open the file and read all its rows, in this process."""
    before = peak_bytes()
    began = time.monotonic()
    table = open_table(path)
    opened = time.monotonic()
    rows = sum(1 for row in table.rows() if not row.problems)
    ended = time.monotonic()
    return {
        "rows": rows,
        "opening": opened - began,
        "reading": ended - opened,
        "before": before,
        "bytes": peak_bytes(),
    }


def measure(path: Path) -> dict[str, float]:
    """Read the file in a process of its own, and print what it took."""
    command = [sys.executable, "-m", "benchmarks.spreadsheet_reading", "--here", str(path)]
    printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603  # our own
    measured: dict[str, float] = json.loads(printed)
    print(
        f"{path.suffix[1:]:<5} {measured['rows']:>9,.0f} rows"
        f"  opened in {measured['opening']:.1f} s"
        f"  read at {measured['rows'] / measured['reading']:,.0f} rows/s"
        f"  peak {measured['bytes'] / 1e6:.1f} MB"
        f" ({measured['before'] / 1e6:.1f} MB before the file was opened)",
        flush=True,
    )
    return measured


def compare(rows: int) -> int:
    """Measure both kinds of file; 0 if the csv is within its targets."""
    with tempfile.TemporaryDirectory() as name:
        text, book = Path(name) / "rows.csv", Path(name) / "rows.xlsx"
        write_csv(text, rows)
        measured = measure(text)
        write_workbook(book, rows // _SHARE_OF_WORKBOOK)
        in_book = measure(book)
    assert (rows, rows // _SHARE_OF_WORKBOOK) == (measured["rows"], in_book["rows"])
    speed = rows / (measured["opening"] + measured["reading"])
    print(
        f"csv, opening included: {speed:,.0f} rows/s (at least {ROWS_PER_SECOND_MIN:,}),"
        f" peak {measured['bytes'] / 1e6:.1f} MB (at most {PEAK_MEGABYTES_MAX})"
    )
    is_met = measured["bytes"] <= PEAK_MEGABYTES_MAX * 1e6 and speed >= ROWS_PER_SECOND_MIN
    return 0 if is_met else 1


def main() -> int:
    """Measure the default size."""
    return compare(ROWS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(Path(sys.argv[2]))))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else ROWS))
