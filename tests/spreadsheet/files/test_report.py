"""Reports have the input's columns and six more, and can be pushed again."""

from __future__ import annotations

import csv
import datetime as d
import errno
import gc
import os
import stat
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from connector.errors import ReportRefused, SpreadsheetError, WarehouseError
from connector.spreadsheet.headings import REPORT_HEADINGS
from connector.spreadsheet.report import pair_rows, report_path, write_report
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.state.row import Problem
from tests.spreadsheet.files.made import list_cells, make_text_row, write_file, write_workbook_file
from tests.spreadsheet.files.reported import (
    HOSTILE,
    make_csv,
    make_result,
    make_results,
    report_and_reopen,
)
from tests.support.errors import has_code

EMAIL = Problem(
    "email_format", "It is not an email address.", "email", "x", "an address", "Fix it."
)
WIDE = Problem("row_width", "The row is too wide.", fix="Fix it.")


def write_people(folder: Path) -> Spreadsheet:
    """Return a table of three rows and a blank one, read from a CSV file with semicolons."""
    return open_table(
        write_file(folder, "name;email\nJörg;j@x.de\nZoë;x\n;\nAnn;a@x.de\n".encode())
    )


RESULTS = (
    make_result(2, "created", (), "", "id-2"),
    make_result(3, "invalid", (EMAIL, WIDE), "invalid"),
    make_result(5, "held", (), "in_doubt"),
)


def test_a_csv_report_has_the_columns_of_the_input_and_six_more(tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    table = write_people(tmp_path)
    write_report(path, table, pair_rows(table, RESULTS))

    assert (
        "\ufeffname;email;_row;_outcome;_code;_problem;_fix;_id\r\n"
        "Jörg;j@x.de;2;created;;;;id-2\r\n"
        'Zoë;x;3;invalid;invalid, email_format, row_width;"email: It is not an email address.'
        ' Allowed: an address.\nThe row is too wide.";Fix it.;\r\n'
        "Ann;a@x.de;5;held;in_doubt;;;\r\n"
    ) == path.read_bytes().decode()


def test_a_workbook_report_keeps_types_and_marks_problem_cells(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append(["name", "email", "n"])
    typed = [d.date(2025, 3, 4), 0.1 + 0.2, True, 7, d.time(9, 30), "00123"]
    for each in [*typed, d.datetime(2025, 3, 4, 1, 2, 3)]:
        sheet.append(["Ann", "x", each])
    book.save(tmp_path / "rows.xlsx")
    table = open_table(tmp_path / "rows.xlsx")
    results = [make_result(n, "invalid", (EMAIL, EMAIL, WIDE)) for n in range(2, 9)]
    write_report(tmp_path / "report.xlsx", table, pair_rows(table, results))
    report = open_table(tmp_path / "report.xlsx")

    assert list_cells(table) == list_cells(report)
    assert [d.date, float, bool, int, d.time, str, d.datetime] == [
        type(cells[2]) for cells in list_cells(report)
    ]
    written = load_workbook(tmp_path / "report.xlsx")["Report"]
    assert isinstance(written, Worksheet)
    assert "FFC7CE" == written["B2"].fill.fgColor.rgb[2:]
    assert "00000000" == written["A2"].fill.fgColor.rgb


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_reports_keep_formulas_without_a_value_and_error_cells(tmp_path: Path, suffix: str) -> None:
    path = write_workbook_file(
        tmp_path,
        make_text_row(1, "a", "b"),
        '<row r="2"><c r="A2"><f>A1</f></c><c r="B2" t="e"><v>#N/A</v></c></row>',
    )
    table = open_table(path)
    write_report(tmp_path / f"report{suffix}", table, pair_rows(table, make_results(table)))
    report = open_table(tmp_path / f"report{suffix}")

    assert [("=A1", "#N/A")] == list_cells(table) == list_cells(report)
    codes = [problem.code for row in report.rows() for problem in row.problems]
    # A csv has no errors but their names, which the checks of meaning refuse.
    assert ["formula_without_value", "spreadsheet_error"][: 1 if suffix == ".csv" else 2] == codes


def read_all_cells(path: Path) -> list[list[str]]:
    """Return the cells of a report as a spreadsheet program has them, with the headings."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.reader(file))
    sheet = load_workbook(path).active
    assert isinstance(sheet, Worksheet)
    return [["" if c is None else str(c) for c in row] for row in sheet.iter_rows(values_only=True)]


CELL = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("'=+-@\t\r\n "), max_size=5
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(CELL, min_size=1, max_size=5), min_size=1, max_size=5))
@example(rows=[["1"], ["1", "2", "3", ""], ["(not calculated) ", "x", "y"], ["1", "2", "3"]])
@example(rows=[[cell, "x", cell] for cell in HOSTILE])
def test_a_report_read_back_gives_the_original_rows(
    tmp_path: Path, suffix: str, rows: list[list[str]]
) -> None:
    content = make_csv([["name", "=1+1", "'=x"], ["1", "2", "3"], *rows])
    table = open_table(write_file(tmp_path, content), delimiter="comma")
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    write_report(first, table, pair_rows(table, make_results(table)))
    again = open_table(first)
    write_report(second, again, pair_rows(again, make_results(again)))
    given = [row for row in table.rows() if not row.is_left_out]

    assert not table.is_report
    for report in map(open_table, (first, second)):
        found = [row for row in report.rows() if not row.is_left_out]
        assert (True, table.headings) == (report.is_report, report.headings)
        assert [row.is_misshapen for row in given] == [row.is_misshapen for row in found]
        expected = [(row.cells, row.problems) for row in given if not row.is_misshapen]
        assert expected == [(row.cells, row.problems) for row in found if not row.is_misshapen]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_cells_of_a_row_of_another_shape_are_in_its_problem(
    tmp_path: Path, suffix: str
) -> None:
    rows = [["a", "b", "c"], ["=1", "2"], ["1", "2", "3", ""], ["4", "5", "6"]]
    _, report = report_and_reopen(tmp_path, rows, suffix)
    headings, *cells = read_all_cells(tmp_path / f"report{suffix}")
    problems = [row[headings.index("_problem")] for row in cells]

    assert ["", "", ""] == [str(each or "") for each in cells[0][:3]]
    assert "Cells of the row: =1 | 2" in str(problems[0])
    assert "Cells of the row: 1 | 2 | 3 | " in str(problems[1])
    # Pushed again without a correction, they are refused again, with their cells.
    again = list(report.rows())
    assert [True, True, False] == [row.is_misshapen for row in again]
    assert "Cells of the row: =1 | 2" in again[0].problems[0].message
    assert ("4", "5", "6") == again[2].cells


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_report_is_private_and_replaces_an_earlier_one_only_when_complete(
    tmp_path: Path, suffix: str
) -> None:
    table = write_people(tmp_path)
    path = tmp_path / f"report{suffix}"
    path.write_text("earlier")
    with pytest.raises(ValueError, match="shorter"):
        write_report(path, table, pair_rows(table, RESULTS[:1]))
    assert "earlier" == path.read_text()

    before = os.umask(0)
    try:
        write_report(path, table, pair_rows(table, RESULTS))
    finally:
        os.umask(before)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert {"rows.csv", path.name} == {each.name for each in tmp_path.iterdir()}


def test_an_error_while_writing_a_report_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_people(tmp_path)
    with pytest.raises(SpreadsheetError, match=r"none/report\.csv cannot be written: No such file"):
        write_report(tmp_path / "none" / "report.csv", table, pair_rows(table, RESULTS))
    with pytest.raises(
        SpreadsheetError,
        match=r"report\.ods: a report must be a csv",
        check=has_code("not_a_spreadsheet"),
    ):
        write_report(tmp_path / "report.ods", table, pair_rows(table, RESULTS))
    with pytest.raises(ReportRefused, match=r"rows\.csv is the input file"):
        write_report(table.path, table, pair_rows(table, RESULTS))

    def fail_with_full_disk(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail_with_full_disk)
    with pytest.raises(WarehouseError, match="disk is full", check=has_code("disk_full")):
        write_report(tmp_path / "report.csv", table, pair_rows(table, RESULTS))
    assert ["rows.csv"] == [each.name for each in tmp_path.iterdir()]


def test_a_cell_too_long_for_a_workbook_report_is_rejected_with_an_action(tmp_path: Path) -> None:
    table = open_table(write_file(tmp_path, b"a,b\n1," + b"x" * 40_000 + b"\n"))
    with pytest.raises(ReportRefused, match="cell B2 of the input has more text") as refused:
        write_report(tmp_path / "report.xlsx", table, pair_rows(table, make_results(table)))
    assert "Write the report as csv." == refused.value.action
    del refused
    gc.collect()  # A sheet that is still open complains when Python removes it.

    write_report(tmp_path / "report.csv", table, pair_rows(table, make_results(table)))
    assert list_cells(table) == list_cells(open_table(tmp_path / "report.csv"))


def test_a_report_gets_an_unused_name_next_to_its_input(tmp_path: Path) -> None:
    table = write_people(tmp_path)
    names = []
    for _ in range(2):
        names.append(report_path(table).name)
        write_report(report_path(table), table, pair_rows(table, RESULTS))
    names.append(report_path(open_table(tmp_path / "rows.report-2.csv")).name)

    assert ["rows.report.csv", "rows.report-2.csv", "rows.report-3.csv"] == names


@pytest.mark.parametrize(
    "headings",
    [
        ["a", *REPORT_HEADINGS, "note"],
        ["a", *reversed(REPORT_HEADINGS)],
        ["a", "_ROW"],
        [*REPORT_HEADINGS],
    ],
)
def test_report_columns_in_another_position_are_rejected(
    tmp_path: Path, headings: list[str]
) -> None:
    with pytest.raises(SpreadsheetError, match="a report", check=has_code("headings_refused")):
        open_table(write_file(tmp_path, make_csv([headings, ["x"] * len(headings)])))


def test_a_report_saved_with_additional_empty_cells_is_recognized(tmp_path: Path) -> None:
    table, _ = report_and_reopen(tmp_path, [["a", "b"], ["1", "2"], ["4", "5"]], ".csv")
    padded = [[*row, "", ""] for row in read_all_cells(tmp_path / "report.csv")]
    report = open_table(write_file(tmp_path, make_csv(padded), "saved.csv"))

    assert list_cells(table) == list_cells(report)
    assert [] == list(chain.from_iterable(row.problems for row in report.rows()))


def test_rows_added_to_a_report_are_read_like_others(tmp_path: Path) -> None:
    table = write_people(tmp_path)
    write_report(tmp_path / "first.csv", table, pair_rows(table, RESULTS))
    corrected = (tmp_path / "first.csv").read_text("utf-8").replace("Zoë;x", "Zoë;z@x.de")
    (tmp_path / "first.csv").write_text(corrected + "New;n@x.de;;;;;;\r\n", "utf-8")
    report = open_table(tmp_path / "first.csv")
    write_report(tmp_path / "second.csv", report, pair_rows(report, make_results(report)))

    assert [("Zoë", "z@x.de"), ("New", "n@x.de")] == list_cells(report)[1::2]
    assert list_cells(report) == list_cells(open_table(tmp_path / "second.csv"))
