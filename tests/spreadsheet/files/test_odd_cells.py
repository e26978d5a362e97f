"""Cells and parts that a reader's library stumbles over: each costs its own cell, or says where."""

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
from connector.page.words import error_note, language
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.problems import Cell, PartlyVisibleCell
from connector.spreadsheet.report import write_report
from connector.spreadsheet.table import open_table
from connector.spreadsheet.workbook import SheetFile
from tests.spreadsheet.corpus.files import book, ods
from tests.spreadsheet.files.made import cells_of, parts, sheet_xml, text_file, text_row, zipped
from tests.spreadsheet.files.old_books import xls
from tests.spreadsheet.meaning.sheet import aimed, checked, problems
from tests.support.errors import has_code

HEAD = ("First name", "Last name", "Email", "Employment type", "Available from", "Expected salary")
ANN = ("Ann", "Poe", "ann@people.example", "permanent")
BOB = ("Bob", "Ray", "bob@people.example", "permanent")


def checked_file(folder: Path, content: bytes, name: str = "rows.xlsx") -> list[CheckedRow]:
    """Every row of the file after the check."""
    return checked(open_table(text_file(folder, content, name)), aimed())


def sent(row: CheckedRow) -> dict[str, Any]:
    """The fields that a row would send."""
    assert row.task is not None
    return dict(row.task.fields)


def notes(row: CheckedRow) -> list[str]:
    """The codes of a row's warnings."""
    return [each.code for each in row.warnings]


def styled(*forms: str) -> str:
    """The part with the cell styles: style 0 is General, then one for each format."""
    codes = "".join(f'<numFmt numFmtId="{n}" formatCode="{f}"/>' for n, f in enumerate(forms, 164))
    styles = "".join(f'<xf numFmtId="{n}"/>' for n in (0, *range(164, 164 + len(forms))))
    return f"<styleSheet><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"


@pytest.mark.parametrize(
    "ghost",
    ['<c r="D2" s="1"/>', '<c r="D2" t="e"/>', '<c r="XFD2" s="1"></c>'],
    ids=["formatted", "error without value", "last column"],
)
@pytest.mark.parametrize("formula", ["<f>1+1</f><v>2</v>", "<f>1+1</f>"], ids=["value", "none"])
def test_an_empty_cell_right_of_a_formula_is_nothing(
    tmp_path: Path, ghost: str, formula: str
) -> None:
    row = f'<row r="2"><c r="A2" t="str"><v>x</v></c><c r="B2">{formula}</c>{ghost}</row>'
    made = parts({"People": sheet_xml(text_row(1, "a", "b"), row)})
    made["xl/styles.xml"] = styled("0.00%")
    table = open_table(text_file(tmp_path, zipped(made), "rows.xlsx"))

    (read,) = table.rows()
    assert ["not_calculated"] * ("<v>" not in formula) == [kind for kind, _ in read.flaws.values()]
    assert (("x", 2) if "<v>" in formula else ("x", "=1+1")) == read.cells


def test_members_with_backslashes_are_read(tmp_path: Path) -> None:
    made = parts({"People": sheet_xml(text_row(1, "a"), text_row(2, "x"))})
    content = zipped({name.replace("/", "\\"): part for name, part in made.items()})

    assert [("x",)] == cells_of(open_table(text_file(tmp_path, content, "rows.xlsx")))


def test_an_exception_of_a_library_names_the_file(tmp_path: Path) -> None:
    made = parts({"People": sheet_xml(text_row(1, "a"), text_row(2, "x"))})
    content = zipped({name.upper() if "workbook" in name else name: p for name, p in made.items()})

    with pytest.raises(DamagedSpreadsheet, match=r"rows\.xlsx cannot be read"):
        open_table(text_file(tmp_path, content, "rows.xlsx"))


def test_an_exception_of_a_library_names_the_sheet_and_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parts({"People": sheet_xml(*(text_row(n, "x") for n in range(1, 5)))})
    table = open_table(text_file(tmp_path, zipped(made), "rows.xlsx"))

    def stumbling(sheet: SheetFile) -> Iterator[tuple[int, list[Cell], dict[int, Any]]]:
        for index in range(3):
            yield index, ["x"], {}
        raise IndexError

    monkeypatch.setattr(SheetFile, "rows", stumbling)
    with pytest.raises(DamagedSpreadsheet, match=r"sheet 'People', row 4 cannot be read"):
        list(table.rows())


def test_formats_that_reach_to_the_last_row_are_nothing(tmp_path: Path) -> None:
    rows = [text_row(1, "a", "b"), text_row(2, "x", "y")]
    rows += [f'<row r="{n}"><c r="A{n}" s="1"/><c r="E{n}" s="1"/></row>' for n in range(3, 2000)]
    rows.append('<row r="1048576"><c r="XFD1048576" s="1"/></row>')
    made = parts({"People": sheet_xml(*rows, claim="A1:XFD1048576")})
    made["xl/styles.xml"] = styled("0.00%")
    table = open_table(text_file(tmp_path, zipped(made), "rows.xlsx"))

    assert (("a", "b"), [("x", "y")]) == (table.headings, cells_of(table))


# -- Workbooks of before 2007 ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "read", "flaw"),
    [
        ((1.5625, "[h]:mm"), "37:30:00", None),
        ((-0.5, "[h]:mm"), "-12:00:00", None),
        ((-1.0, "yyyy-mm-dd"), "-1", ("unreadable", "-1")),
        ((32.0, "yyyy-mm-dd"), "32", ("unreadable", "32")),
        ((9e9, "yyyy-mm-dd"), "9000000000", ("unreadable", "9000000000")),
    ],
)
def test_an_odd_date_of_an_old_workbook_costs_its_cell(
    tmp_path: Path, cell: tuple[float, str], read: Cell, flaw: tuple[str, str] | None
) -> None:
    path = text_file(tmp_path, xls([["Name", "Hours"], ["Ann", cell], ["Bob", 2]]), "rows.xls")
    first, second = open_table(path).rows()

    assert ("Ann", read) == first.cells
    assert ({} if flaw is None else {1: flaw}) == first.flaws
    assert (("Bob", 2), {}) == (second.cells, second.flaws)


def test_an_odd_date_refuses_its_row_and_no_other(tmp_path: Path) -> None:
    content = xls([HEAD, [*ANN, (-5, "yyyy-mm-dd"), 1], [*BOB, (46143, "yyyy-mm-dd"), 2]])
    first, second = checked_file(tmp_path, content, "rows.xls")

    assert [(2, "Available from", "unreadable_cell")] == problems([first])
    assert "2026-05-01" == sent(second)["available_from"]


def test_an_odd_date_in_a_column_that_fills_nothing_does_no_harm(tmp_path: Path) -> None:
    content = xls([[*HEAD[:4], "Hours"], [*ANN, (-5, "yyyy-mm-dd")]])
    (row,) = checked_file(tmp_path, content, "rows.xls")

    assert "Ann" == sent(row)["first_name"]


def test_an_old_workbook_with_a_password_is_called_so_in_each_language(tmp_path: Path) -> None:
    content = xls([HEAD, [*ANN, "", ""]], is_encrypted=True)
    with pytest.raises(SpreadsheetError, check=has_code("password_protected")) as refused:
        open_table(text_file(tmp_path, content, "rows.xls"))

    assert "is encrypted with a password" in str(refused.value)
    for code, word in (("en", "password"), ("de", "Passwort"), ("fr", "mot de passe")):
        message, action = language(code).note(error_note(refused.value))
        assert word in message
        assert word in action


# -- Values that a number format hides -------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "form"),
    [(45000, ";;;"), (0, "#,##0;-#,##0;"), (-5, "0;;0")],
    ids=["all", "zeros", "negative"],
)
@pytest.mark.parametrize("kind", ["xlsx", "xls"])
def test_a_hidden_value_is_empty_with_a_note(
    tmp_path: Path, kind: str, value: float, form: str
) -> None:
    if kind == "xls":
        content = xls([HEAD, [*ANN, "", (value, form)], [*BOB, "", (52000.0, form)]])
    else:
        content = book([HEAD, [*ANN, "", value], [*BOB, "", 52000]], {"F": form})
    first, second = checked_file(tmp_path, content, f"rows.{kind}")

    assert "expected_salary" not in sent(first)
    assert ["hidden_value"] == notes(first)
    assert [] == notes(second) or form == ";;;"
    assert str(value) in first.warnings[0].text


def test_a_hidden_text_and_a_hidden_number_of_other_workbooks(tmp_path: Path) -> None:
    (hidden,) = checked_file(tmp_path, book([HEAD, [*ANN, "", ""]], {"A": ";;;"}))
    assert [(2, "First name", "required")] == problems([hidden])

    content = ods([HEAD, [*ANN, "", ("float", 45000)]])
    whole = zipfile.ZipFile(io.BytesIO(content))
    members = {name: whole.read(name) for name in whole.namelist()}
    members["content.xml"] = members["content.xml"].replace(b">45000</text:p>", b"></text:p>")
    (row,) = checked_file(tmp_path, zipped(members), "rows.ods")
    assert ["hidden_value"] == notes(row)


# -- Dates that are shown in part ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["xlsx", "xls"])
@pytest.mark.parametrize("form", ["dd-mmm", "d/m", "d. mmmm"])
def test_a_date_without_its_year_is_read_with_a_note(tmp_path: Path, kind: str, form: str) -> None:
    if kind == "xls":
        content = xls([HEAD, [*ANN, (46386.0, form), ""]])
    else:
        content = book([HEAD, [*ANN, date(2026, 12, 30), ""]], {"E": form})
    (row,) = checked_file(tmp_path, content, f"rows.{kind}")

    assert "2026-12-30" == sent(row)["available_from"]
    assert ["partly_shown"] == notes(row)


def test_a_month_alone_is_not_made_a_day(tmp_path: Path) -> None:
    (row,) = checked_file(tmp_path, book([HEAD, [*ANN, date(2026, 12, 1), ""]], {"E": "mmm-yy"}))

    assert [(2, "Available from", "date_format")] == problems([row])


def test_a_zero_in_a_date_cell_is_reported_as_zero(tmp_path: Path) -> None:
    for kind in ("xlsx", "xls"):
        form = "dd/mm/yyyy"
        rows: list[Any] = [HEAD, [*ANN, (0.0, form) if kind == "xls" else 0, ""]]
        content = xls(rows) if kind == "xls" else book(rows, {"E": form})
        (row,) = checked_file(tmp_path, content, f"rows.{kind}")

        assert [(2, "Available from", "date_format")] == problems([row])
        assert "contains 0" in row.problems[0].message


@pytest.mark.parametrize(("heading", "form"), [("E", "dd-mmm"), ("F", ";;;")])
def test_a_report_keeps_what_a_cell_holds_and_how_it_is_shown(
    tmp_path: Path, heading: str, form: str
) -> None:
    content = book([HEAD, [*ANN, date(2026, 12, 30), 45000]], {heading: form})
    table = open_table(text_file(tmp_path, content, "rows.xlsx"))
    report = tmp_path / "report.xlsx"
    write_report(report, table, [RowResult(2, "create")])

    assert cells_of(table) == cells_of(open_table(report))
    assert any(isinstance(cell, PartlyVisibleCell) for cell in cells_of(table)[0])
