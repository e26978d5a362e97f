"""Cells that the reader's library cannot handle affect only themselves, or are reported."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connector.errors import DamagedSpreadsheet, SpreadsheetError
from connector.ledger.push_plan import RowResult
from connector.page.words import error_note, load_language
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.problems import Cell, PartlyVisibleCell
from connector.spreadsheet.report import write_report
from connector.spreadsheet.table import open_table
from connector.spreadsheet.workbook import SheetFile
from tests.spreadsheet.corpus.files import make_ods, make_workbook
from tests.spreadsheet.files.made import (
    list_cells,
    make_sheet_part,
    make_text_row,
    make_workbook_parts,
    make_zip,
    write_file,
)
from tests.spreadsheet.files.old_books import make_xls
from tests.spreadsheet.meaning.sheet import check_table, list_problems, list_warnings, make_target
from tests.support.errors import has_code

HEAD = ("First name", "Last name", "Email", "Employment type", "Available from", "Expected salary")
ANN = ("Ann", "Poe", "ann@people.example", "permanent")
BOB = ("Bob", "Ray", "bob@people.example", "permanent")


def check_file(folder: Path, content: bytes, name: str = "rows.xlsx") -> list[CheckedRow]:
    """Open this file as candidates to create, and return its checked rows."""
    return check_table(open_table(write_file(folder, content, name)), make_target())


def list_fields(row: CheckedRow) -> dict[str, Any]:
    """Return the fields that the row sends. The row must be valid."""
    assert row.task is not None
    return dict(row.task.fields)


def make_styles(*formats: str) -> str:
    """Return the part with cell styles: style 0 is General, the next have these number formats."""
    codes = "".join(
        f'<numFmt numFmtId="{n}" formatCode="{f}"/>' for n, f in enumerate(formats, 164)
    )
    styles = "".join(f'<xf numFmtId="{n}"/>' for n in (0, *range(164, 164 + len(formats))))
    return f"<styleSheet><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"


@pytest.mark.parametrize(
    "empty_cell",
    ['<c r="D2" s="1"/>', '<c r="D2" t="e"/>', '<c r="XFD2" s="1"></c>'],
    ids=["formatted", "error without value", "last column"],
)
@pytest.mark.parametrize(
    "formula_cell", ["<f>1+1</f><v>2</v>", "<f>1+1</f>"], ids=["value", "none"]
)
def test_a_cell_without_a_value_next_to_a_formula_is_empty(
    tmp_path: Path, empty_cell: str, formula_cell: str
) -> None:
    row = f'<row r="2"><c r="A2" t="str"><v>x</v></c><c r="B2">{formula_cell}</c>{empty_cell}</row>'
    made = make_workbook_parts({"People": make_sheet_part(make_text_row(1, "a", "b"), row)})
    made["xl/styles.xml"] = make_styles("0.00%")
    table = open_table(write_file(tmp_path, make_zip(made), "rows.xlsx"))

    (read,) = table.rows()
    assert ["not_calculated"] * ("<v>" not in formula_cell) == [
        kind for kind, _ in read.flaws.values()
    ]
    assert (("x", 2) if "<v>" in formula_cell else ("x", "=1+1")) == read.cells


def test_workbook_members_with_backslashes_in_their_names_are_read(tmp_path: Path) -> None:
    made = make_workbook_parts(
        {"People": make_sheet_part(make_text_row(1, "a"), make_text_row(2, "x"))}
    )
    content = make_zip({name.replace("/", "\\"): part for name, part in made.items()})

    assert [("x",)] == list_cells(open_table(write_file(tmp_path, content, "rows.xlsx")))


def test_an_unexpected_library_error_names_the_file(tmp_path: Path) -> None:
    made = make_workbook_parts(
        {"People": make_sheet_part(make_text_row(1, "a"), make_text_row(2, "x"))}
    )
    content = make_zip(
        {name.upper() if "workbook" in name else name: p for name, p in made.items()}
    )

    with pytest.raises(DamagedSpreadsheet, match=r"rows\.xlsx cannot be read"):
        open_table(write_file(tmp_path, content, "rows.xlsx"))


def test_an_unexpected_library_error_names_the_sheet_and_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_workbook_parts(
        {"People": make_sheet_part(*(make_text_row(n, "x") for n in range(1, 5)))}
    )
    table = open_table(write_file(tmp_path, make_zip(made), "rows.xlsx"))

    def fail_at_third_row(sheet: SheetFile) -> Iterator[tuple[int, list[Cell], dict[int, Any]]]:
        for index in range(3):
            yield index, ["x"], {}
        raise IndexError

    monkeypatch.setattr(SheetFile, "rows", fail_at_third_row)
    with pytest.raises(DamagedSpreadsheet, match=r"sheet 'People', row 4 cannot be read"):
        list(table.rows())


def test_formatted_cells_without_values_add_no_rows_or_columns(tmp_path: Path) -> None:
    rows = [make_text_row(1, "a", "b"), make_text_row(2, "x", "y")]
    rows += [f'<row r="{n}"><c r="A{n}" s="1"/><c r="E{n}" s="1"/></row>' for n in range(3, 2000)]
    rows.append('<row r="1048576"><c r="XFD1048576" s="1"/></row>')
    made = make_workbook_parts({"People": make_sheet_part(*rows, used_range="A1:XFD1048576")})
    made["xl/styles.xml"] = make_styles("0.00%")
    table = open_table(write_file(tmp_path, make_zip(made), "rows.xlsx"))

    assert (("a", "b"), [("x", "y")]) == (table.headings, list_cells(table))


# -- Workbooks of before 2007 ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected_value", "expected_flaw"),
    [
        ((1.5625, "[h]:mm"), "37:30:00", None),
        ((-0.5, "[h]:mm"), "-12:00:00", None),
        ((-1.0, "yyyy-mm-dd"), "-1", ("unreadable", "-1")),
        ((32.0, "yyyy-mm-dd"), "32", ("unreadable", "32")),
        ((9e9, "yyyy-mm-dd"), "9000000000", ("unreadable", "9000000000")),
    ],
)
def test_an_invalid_date_in_an_xls_file_affects_only_its_cell(
    tmp_path: Path,
    cell: tuple[float, str],
    expected_value: Cell,
    expected_flaw: tuple[str, str] | None,
) -> None:
    path = write_file(
        tmp_path, make_xls([["Name", "Hours"], ["Ann", cell], ["Bob", 2]]), "rows.xls"
    )
    first, second = open_table(path).rows()

    assert ("Ann", expected_value) == first.cells
    assert ({} if expected_flaw is None else {1: expected_flaw}) == first.flaws
    assert (("Bob", 2), {}) == (second.cells, second.flaws)


def test_an_invalid_date_rejects_only_its_row(tmp_path: Path) -> None:
    content = make_xls([HEAD, [*ANN, (-5, "yyyy-mm-dd"), 1], [*BOB, (46143, "yyyy-mm-dd"), 2]])
    first, second = check_file(tmp_path, content, "rows.xls")

    assert [(2, "Available from", "unreadable_cell")] == list_problems([first])
    assert "2026-05-01" == list_fields(second)["available_from"]


def test_an_invalid_date_in_an_unmapped_column_is_ignored(tmp_path: Path) -> None:
    content = make_xls([[*HEAD[:4], "Hours"], [*ANN, (-5, "yyyy-mm-dd")]])
    (row,) = check_file(tmp_path, content, "rows.xls")

    assert "Ann" == list_fields(row)["first_name"]


def test_a_password_protected_xls_file_is_reported_in_each_language(tmp_path: Path) -> None:
    content = make_xls([HEAD, [*ANN, "", ""]], is_encrypted=True)
    with pytest.raises(SpreadsheetError, check=has_code("password_protected")) as refused:
        open_table(write_file(tmp_path, content, "rows.xls"))

    assert "is encrypted with a password" in str(refused.value)
    for code, word in (("en", "password"), ("de", "Passwort"), ("fr", "mot de passe")):
        message, action = load_language(code).describe_note(error_note(refused.value))
        assert word in message
        assert word in action


# -- Values that a number format hides -------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number_format"),
    [(45000, ";;;"), (0, "#,##0;-#,##0;"), (-5, "0;;0")],
    ids=["all", "zeros", "negative"],
)
@pytest.mark.parametrize("extension", ["xlsx", "xls"])
def test_a_value_hidden_by_its_format_is_empty_with_a_warning(
    tmp_path: Path, extension: str, value: float, number_format: str
) -> None:
    if extension == "xls":
        content = make_xls(
            [HEAD, [*ANN, "", (value, number_format)], [*BOB, "", (52000.0, number_format)]]
        )
    else:
        content = make_workbook([HEAD, [*ANN, "", value], [*BOB, "", 52000]], {"F": number_format})
    first, second = check_file(tmp_path, content, f"rows.{extension}")

    assert "expected_salary" not in list_fields(first)
    assert ["hidden_value"] == list_warnings(first)
    assert [] == list_warnings(second) or number_format == ";;;"
    assert str(value) in first.warnings[0].text


def test_hidden_texts_and_hidden_numbers_of_ods_files_are_empty(tmp_path: Path) -> None:
    (hidden,) = check_file(tmp_path, make_workbook([HEAD, [*ANN, "", ""]], {"A": ";;;"}))
    assert [(2, "First name", "required")] == list_problems([hidden])

    content = make_ods([HEAD, [*ANN, "", ("float", 45000)]])
    whole = zipfile.ZipFile(io.BytesIO(content))
    members = {name: whole.read(name) for name in whole.namelist()}
    members["content.xml"] = members["content.xml"].replace(b">45000</text:p>", b"></text:p>")
    (row,) = check_file(tmp_path, make_zip(members), "rows.ods")
    assert ["hidden_value"] == list_warnings(row)


# -- Dates that are shown in part ------------------------------------------------------------------


@pytest.mark.parametrize("extension", ["xlsx", "xls"])
@pytest.mark.parametrize("number_format", ["dd-mmm", "d/m", "d. mmmm"])
def test_a_date_shown_without_its_year_is_read_with_a_warning(
    tmp_path: Path, extension: str, number_format: str
) -> None:
    if extension == "xls":
        content = make_xls([HEAD, [*ANN, (46386.0, number_format), ""]])
    else:
        content = make_workbook([HEAD, [*ANN, date(2026, 12, 30), ""]], {"E": number_format})
    (row,) = check_file(tmp_path, content, f"rows.{extension}")

    assert "2026-12-30" == list_fields(row)["available_from"]
    assert ["partly_shown"] == list_warnings(row)


def test_a_date_shown_as_a_month_is_rejected(tmp_path: Path) -> None:
    (row,) = check_file(
        tmp_path, make_workbook([HEAD, [*ANN, date(2026, 12, 1), ""]], {"E": "mmm-yy"})
    )

    assert [(2, "Available from", "date_format")] == list_problems([row])


def test_a_zero_in_a_date_cell_is_rejected_and_shown_as_zero(tmp_path: Path) -> None:
    for kind in ("xlsx", "xls"):
        form = "dd/mm/yyyy"
        rows: list[Any] = [HEAD, [*ANN, (0.0, form) if kind == "xls" else 0, ""]]
        content = make_xls(rows) if kind == "xls" else make_workbook(rows, {"E": form})
        (row,) = check_file(tmp_path, content, f"rows.{kind}")

        assert [(2, "Available from", "date_format")] == list_problems([row])
        assert "contains 0" in row.problems[0].message


@pytest.mark.parametrize(("heading", "number_format"), [("E", "dd-mmm"), ("F", ";;;")])
def test_a_report_keeps_the_value_and_format_of_each_cell(
    tmp_path: Path, heading: str, number_format: str
) -> None:
    content = make_workbook([HEAD, [*ANN, date(2026, 12, 30), 45000]], {heading: number_format})
    table = open_table(write_file(tmp_path, content, "rows.xlsx"))
    report = tmp_path / "report.xlsx"
    write_report(report, table, [RowResult(2, "create")])

    assert list_cells(table) == list_cells(open_table(report))
    assert any(isinstance(cell, PartlyVisibleCell) for cell in list_cells(table)[0])
