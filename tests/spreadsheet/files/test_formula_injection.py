"""No cell of a report runs as a formula in a spreadsheet program."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from connector.ledger.push_plan import Problem, RowResult
from connector.spreadsheet.report import pair_rows, write_report
from connector.spreadsheet.table import open_table
from connector.spreadsheet.texts import escape_cell, escape_workbook_cell, unescape_cell
from tests.spreadsheet.files.made import list_cells, write_file
from tests.spreadsheet.files.reported import (
    HOSTILE,
    RUNS,
    list_sheet_cells,
    make_csv,
    report_and_reopen,
)

TRICKY = st.text(st.sampled_from("'=+-@\uff1d \t\r\n\0a1()\u200b"), max_size=6) | st.text(
    max_size=8
)


def test_csv_reports_have_no_cell_that_runs_as_a_formula(tmp_path: Path) -> None:
    table = open_table(write_file(tmp_path, make_csv([["a", "-b"], *([c, "x"] for c in HOSTILE)])))
    problem = Problem("=code", "=message", None, "=received", None, "=fix")
    results = (
        RowResult(row.number, "rejected", (problem,), "+code", "=id")
        for row in table.rows()
        if not row.is_left_out
    )
    path = tmp_path / "report.csv"
    write_report(path, table, pair_rows(table, results))
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]

    assert [] == [cell for cell in cells if RUNS.match(cell)]
    assert {"'=1+1", "'-b", "'+code, =code", "'=message.", "'=fix.", "'=id"} < set(cells)


def test_workbook_reports_have_text_and_no_formula(tmp_path: Path) -> None:
    report_and_reopen(tmp_path, [["a", "=b"], *([c, "+1"] for c in HOSTILE)], ".xlsx")
    cells = list_sheet_cells(tmp_path / "report.xlsx")
    texts = [(text, quoted) for place, kind, text, quoted in cells if kind == "inlineStr"]

    # `_row` is a number; an empty cell has no type that matters.
    assert {"A", "n"} >= {"n" if kind == "n" else "A" for _, kind, _, _ in cells}
    assert {"inlineStr", "n"} == {kind for _, kind, text, _ in cells if text}
    assert [] == [text for text, quoted in texts if RUNS.match(text) and not quoted]
    assert {("=1+1", True), ("=b", True), ("+1", True), ("#N/A", False)} < set(texts)


@settings(max_examples=500)
@given(TRICKY)
def test_escaping_and_unescaping_a_cell_are_inverse(text: str) -> None:
    assert text == unescape_cell(escape_cell(text))
    assert text == unescape_cell(escape_workbook_cell(text))
    assert not RUNS.match(escape_cell(text))


def test_cells_of_tables_other_than_reports_are_not_unescaped(tmp_path: Path) -> None:
    rows = [["a"], *([cell] for cell in HOSTILE)]
    table = open_table(write_file(tmp_path, make_csv(rows)), delimiter="comma")

    assert [tuple(row) for row in rows[1:]] == list_cells(table)
