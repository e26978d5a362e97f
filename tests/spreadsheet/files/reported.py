"""Tables with invented results, and reports as spreadsheet programs read them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

from connector.spreadsheet.report import pair_rows, write_report
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.state.row import Outcome, Problem, Row
from tests.spreadsheet.files.made import MAIN, write_file

_RUNNING = [
    "=1+1",
    "+44 20 7946 0000",
    "-5",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "=cmd|' /C calc'!A0",
]
_RUNNING += [" =1", "\u00a0=1", "\u200b=1", "\uff1d1", "\uff0b1", "'=1", "''=1", "' =1", "'\t1"]
_OURS = ["(missing)", "(not calculated) =1", "'(not calculated) =1"]
_TAKEN = ["'", "''", "'x", "#N/A", "#REF!", "TRUE", "00123", "1e5", '"', '""', ";", ",", "|"]
_LOST = ["a\r\nb", "x_x0041_", "_x005F_", "\x01", "\ufeff", " ", "\u200f-1"]
HOSTILE = (*_RUNNING, *_OURS, *_TAKEN, *_LOST)
"""Cells that some program would run, read as another type, or lose."""


def make_result(
    number: int,
    outcome: Outcome,
    problems: tuple[Problem, ...] = (),
    code: str = "",
    record_id: str | None = None,
) -> Row:
    """Return a row with this outcome."""
    return Row(
        number, "candidates", outcome=outcome, problems=problems, code=code, record_id=record_id
    )


def make_results(table: Spreadsheet) -> Iterator[Row]:
    """Yield a result for each row that is not blank: invalid if it has problems, else created."""
    for row in table.rows():
        if not row.is_left_out:
            outcome: Outcome = "invalid" if row.problems else "created"
            identity = None if row.problems else f"id-{row.number}"
            yield make_result(row.number, outcome, row.problems, "", identity)


def make_csv(rows: list[list[str]]) -> bytes:
    """Return a CSV file in UTF-8 with these rows, every cell quoted."""
    made = io.StringIO()
    csv.writer(made, quoting=csv.QUOTE_ALL).writerows(rows)
    return made.getvalue().encode()


def report_and_reopen(
    folder: Path, rows: list[list[str]], suffix: str
) -> tuple[Spreadsheet, Spreadsheet]:
    """Return a table of these rows, headings first, and its report, opened as a table."""
    table = open_table(write_file(folder, make_csv(rows)), delimiter="comma")
    path = folder / f"report{suffix}"
    write_report(path, table, pair_rows(table, make_results(table)))
    return table, open_table(path)


def list_sheet_cells(path: Path) -> list[tuple[str, str, str, bool]]:
    """Return reference, type, text and quote prefix of each cell of a workbook.

    A cell with a formula has the type `f`.
    """
    with zipfile.ZipFile(path) as archive:
        sheet = Xml.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314 # our own
        styles = Xml.fromstring(archive.read("xl/styles.xml"))  # noqa: S314 # our own
    formats = styles.findall(f"{{{MAIN}}}cellXfs/{{{MAIN}}}xf")
    found = []
    for cell in sheet.iter(f"{{{MAIN}}}c"):
        kind = "f" if cell.find(f"{{{MAIN}}}f") is not None else cell.get("t", "")
        text = "".join(each.text or "" for each in cell if each.tag.endswith("}v"))
        text += "".join(each.text or "" for each in cell.iter(f"{{{MAIN}}}t"))
        quoted = formats[int(cell.get("s", "0"))].get("quotePrefix") == "1"
        found.append((cell.get("r", ""), kind, text, quoted))
    return found


RUNS = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\0]")
"""Texts that a spreadsheet program may run as a formula, defined independently of the connector."""
