"""Previews next to pandas, at three sizes.

The files have 12 columns, and an invalid email address in every hundredth row. pandas reads the
file and makes the same checks by column.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import (
    Bound,
    Line,
    account_environ,
    connector_command,
    measured_line,
    measured_rounds,
    module_command,
    run,
)

SIZES = (600, 6_000, 60_000)
HEADINGS = (
    *("First name", "Last name", "Email", "Employment type", "Phone", "City", "Current company"),
    *("Current job title", "Date of birth", "Expected salary", "Salary currency", "Available from"),
)
PREVIEW_MAX = {".csv": 3.0, ".xlsx": 2.5}
_BY_ROW = "The preview checks row by row, and pandas checks whole columns."


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for previews at each size, or only at the smallest."""
    sizes = SIZES[:1] if is_quick else SIZES
    for size in sizes:
        is_largest, shown = size == max(SIZES), f"{size:,} rows"
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "people.csv"
            run(module_command("spreadsheets", "--write", file, size))
            seconds: dict[str, list[float]] = {".csv": [], ".xlsx": []}
            pandas: dict[str, list[float]] = {".csv": [], ".xlsx": []}
            for number in measured_rounds(size, sizes):
                for suffix in PREVIEW_MAX:
                    table = file.with_suffix(suffix)
                    pandas[suffix].append(
                        run(module_command("spreadsheets", "--pandas", table)).processor
                    )
                    preview = connector_command("push", "candidates", table, "--mode", "create")
                    cost = run(
                        ["sh", "-c", '"$@"; [ $? -eq 3 ]', "sh", *preview, "--no-pull"],
                        account_environ(Path(name) / f"data{number}"),
                    )
                    seconds[suffix].append(cost.processor)
        for suffix, most in PREVIEW_MAX.items():
            yield measured_line(
                f"preview of {suffix[1:]}",
                shown,
                seconds[suffix],
                pandas[suffix],
                "pandas",
                bound=Bound(most, "ratio", _BY_ROW) if is_largest else None,
            )


def write_files(file: Path, size: int) -> None:
    """Write `size` candidates to a CSV file, and to a workbook with the same name."""
    from openpyxl import Workbook  # noqa: PLC0415

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        for row in [HEADINGS, *(_candidate_row(n) for n in range(size))]:
            writer.writerow(row)
            sheet.append(row)
    book.save(file.with_suffix(".xlsx"))


def _candidate_row(n: int) -> tuple[str | int, ...]:
    """Return the cells of the nth candidate; every hundredth has an invalid email address."""
    at = "@" if n % 100 else " at "
    name = (f"Name{n}", f"Surname{n % 977}", f"p{n}{at}example.com")
    work = (f"City {n % 50}", f"Company {n % 300}", f"Job {n % 80}")
    born, available = f"{1960 + n % 40}-0{1 + n % 9}-1{n % 9}", f"2027-0{1 + n % 9}-15"
    kind, phone = ("permanent", "contractor")[n % 2], f"+44 20 7946 {n % 10_000:04d}"
    return (*name, kind, phone, *work, born, 30_000 + n % 500, "GBP", available)


def check_with_pandas(file: Path) -> None:
    """Make the checks of the preview for whole columns, and write the invalid rows to a file."""
    import pandas as pd  # noqa: PLC0415

    if file.suffix == ".csv":
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    else:
        rows = pd.read_excel(file, dtype=str, keep_default_na=False, engine="openpyxl")
    invalid = (rows["First name"].str.strip() == "") | (rows["Last name"].str.strip() == "")
    invalid |= ~rows["Email"].str.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+")
    invalid |= ~rows["Employment type"].str.lower().isin(["permanent", "contractor", "interim"])
    invalid |= pd.to_datetime(rows["Date of birth"], format="%Y-%m-%d", errors="coerce").isna()
    invalid |= rows["Email"].str.lower().duplicated()
    assert invalid.sum() == -(-len(rows) // 100)
    rows[invalid].to_csv(f"{file}.invalid", index=False)


if __name__ == "__main__":
    action, path = sys.argv[1], Path(sys.argv[2])
    if action == "--write":
        write_files(path, int(sys.argv[3]))
    else:
        check_with_pandas(path)
