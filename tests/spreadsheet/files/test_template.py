"""Templates keep digits, offer the allowed values, and can be read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from connector.catalog import CATALOG
from connector.errors import SpreadsheetError
from connector.spreadsheet.table import open_table
from connector.spreadsheet.template import TemplateColumn, write_template
from tests.spreadsheet.files.reported import list_sheet_cells
from tests.support.errors import has_code

COLUMNS = (
    TemplateColumn("first name", "Any text.", (), True),
    TemplateColumn("phone", "Any text.", (), False),
    TemplateColumn("reference", "Any text.", (), False),
    TemplateColumn("status", "One of three.", ("new", "open", "closed"), False),
)


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.txt", "rows.xlsx"])
def test_a_template_is_a_table_that_has_no_rows_yet(tmp_path: Path, name: str) -> None:
    write_template(tmp_path / name, COLUMNS)
    with pytest.raises(SpreadsheetError, match="headings and no row", check=has_code("no_rows")):
        open_table(tmp_path / name)

    assert 0o600 == stat.S_IMODE((tmp_path / name).stat().st_mode)


def write_and_load(folder: Path) -> Worksheet:
    """Write a workbook template, and return its sheet as openpyxl loads it."""
    write_template(folder / "rows.xlsx", COLUMNS)
    sheet = load_workbook(folder / "rows.xlsx").active
    assert isinstance(sheet, Worksheet)
    return sheet


def test_all_cells_of_a_template_have_the_text_format(tmp_path: Path) -> None:
    sheet = write_and_load(tmp_path)
    kinds = {kind for _, kind, _, _ in list_sheet_cells(tmp_path / "rows.xlsx")}

    assert {"@"} == {sheet.column_dimensions[each].number_format for each in "ABCD"}
    assert {"@"} == {cell.number_format for row in sheet.iter_rows() for cell in row}
    assert {"inlineStr"} == kinds


def test_template_headings_have_a_comment_with_their_rule(tmp_path: Path) -> None:
    sheet = write_and_load(tmp_path)
    comments = [cell.comment.text if cell.comment else None for cell in sheet[1]]
    fills = [cell.fill.fgColor.rgb for cell in sheet[1]]

    assert "Required.\nAny text." == comments[0]
    assert "Optional.\nOne of three.\nAllowed: new, open, closed." == comments[3]
    assert fills[0] not in fills[1:]
    assert 1 == len(set(fills[1:]))


def test_template_cells_offer_the_allowed_values(tmp_path: Path) -> None:
    sheet = write_and_load(tmp_path)
    offered = {str(each.sqref): each.formula1 for each in sheet.data_validations.dataValidation}

    assert {"D2:D1048576": '"new,open,closed"'} == offered


def test_every_list_of_values_fits_into_a_rule_of_a_cell() -> None:
    fields = [field for declared in CATALOG.values() for field in declared.fields.values()]
    assert max(len(",".join(each.values)) for each in fields) < 255
    assert not any("," in value or '"' in value for each in fields for value in each.values)


def test_a_template_is_a_csv_or_an_xlsx_file(tmp_path: Path) -> None:
    refused = r"rows\.ods: a template must be a csv"
    with pytest.raises(SpreadsheetError, match=refused, check=has_code("not_a_spreadsheet")):
        write_template(tmp_path / "rows.ods", COLUMNS)
    assert [] == list(tmp_path.iterdir())
