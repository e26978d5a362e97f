"""Writer of workbooks: reports, and templates to be filled in.

Text is written in cells of type text, so no cell is a formula. If a text looks like a formula, the
cell is also marked as typed after an apostrophe, so that it stays text when the user edits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from connector.errors import ReportRefused
from connector.spreadsheet.headings import REPORT_HEADINGS
from connector.spreadsheet.problems import Amount, PartlyVisibleCell, SheetRow
from connector.spreadsheet.report import RowWithResult, not_calculated, report_cells
from connector.spreadsheet.template import TemplateColumn
from connector.spreadsheet.texts import escape_workbook_cell, is_hazard
from connector.spreadsheet.workbooks import AUTHOR, create_workbook, is_too_long, write_by_number

_WIDTHS = (8, 14, 24, 60, 60, 38)
_OWN_WIDTH = 20
_WRONG = "FFC7CE"
_DATE_FORMATS: Mapping[type, str] = {
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    datetime: "yyyy-mm-dd h:mm:ss",
}
BOLD, _WRAPPED = Font(bold=True), Alignment(wrap_text=True, vertical="top")


# -- Reports ---------------------------------------------------------------------------------------


def write_report_workbook(
    file: IO[bytes], path: Path, headings: Sequence[str], rows: Iterable[RowWithResult]
) -> None:
    """Write a workbook with the rows. `path` names the report in errors.

    Raises `ReportRefused` if a text is longer than a cell may be.
    """
    index = {heading: n for n, heading in enumerate(headings)}
    with create_workbook(file) as book:
        sheet = book.create_sheet("Report")
        for number, width in enumerate([*[_OWN_WIDTH] * len(headings), *_WIDTHS], 1):
            sheet.column_dimensions[get_column_letter(number)].width = width
        sheet.freeze_panes = "A2"
        texts = (*headings, *REPORT_HEADINGS)
        sheet.append([make_cell(sheet, escape_workbook_cell(each), font=BOLD) for each in texts])
        last = 1
        for row, result in rows:
            last += 1
            wrong = {index.get(each.column or "") for each in result.problems}
            own = [
                _own_cell(sheet, row, n, color=_WRONG if n in wrong else None, path=path)
                for n in range(0 if row.is_misshapen else len(headings))
            ]
            own.extend([None] * (len(headings) - len(own)))
            number, outcome, *rest = report_cells(row, result)
            told = (escape_workbook_cell(each) for each in rest)
            cells = (make_cell(sheet, each, alignment=_WRAPPED) if each else None for each in told)
            middle = (number, make_cell(sheet, outcome), *cells)
            sheet.append([*own, *middle])
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(texts))}{last}"


def make_cell(sheet: Any, value: Any, color: str | None = None, **styles: Any) -> Any:
    """Return a cell with this value, which is never a formula; None keeps a style's default."""
    cell = WriteOnlyCell(sheet, write_by_number(value) if isinstance(value, str) else value)
    if isinstance(value, str):
        # The library makes a formula of a text that begins with =, and an error of #N/A.
        cell.data_type, cell.number_format = "s", "@"
        if is_hazard(value):
            cell.quotePrefix = True
    if color is not None:
        cell.fill = PatternFill("solid", fgColor=color)
    for name, style in styles.items():
        if style is not None:
            setattr(cell, name, style)
    return cell


def _own_cell(sheet: Any, row: SheetRow, index: int, *, color: str | None, path: Path) -> Any:
    """Return one cell of the input with its type, or the mark of a formula without a value."""
    shown = not_calculated(row, index)
    if shown is not None:
        return make_cell(sheet, shown, color)
    if row.flaws.get(index, ("",))[0] == "spreadsheet_error":
        return make_cell(sheet, row.flaws[index][1], color, data_type="e")
    value: Any = row.cells[index]
    number_format = _DATE_FORMATS.get(type(value))
    match value:
        case str():
            text = escape_workbook_cell(value)
            if is_too_long(write_by_number(text)):
                place = f"{get_column_letter(index + 1)}{row.number}"
                message = f"{path}: cell {place} of the input has more text than a cell of a"
                action = "Write the report as csv."
                raise ReportRefused(f"{message} workbook can contain", action=action)
            return make_cell(sheet, text, color) if text or color else None
        case Amount():
            number_format = value.number_format
            value = value.value / 100 if value.unit == "%" else value.value
        case PartlyVisibleCell():
            number_format, value = value.number_format, value.value
    return make_cell(sheet, value, color, number_format=number_format)


# -- Templates -------------------------------------------------------------------------------------

_LAST_ROW = 1_048_576
_WIDTH = 24
_REQUIRED_COLOR = "F8CBAD"


def write_template_workbook(file: IO[bytes], columns: Sequence[TemplateColumn]) -> None:
    """Write the workbook of a template: headings with comments, and lists of values."""
    with create_workbook(file) as book:
        sheet = book.create_sheet("Rows")
        sheet.freeze_panes = "A2"
        for index, column in enumerate(columns, 1):
            dimension = sheet.column_dimensions[get_column_letter(index)]
            dimension.width = max(_WIDTH, len(column.heading) + 2)
            # Format of cells that do not exist yet; the cells below have their own.
            dimension.number_format = "@"
        sheet.append([_heading_cell(sheet, each) for each in columns])
        for index, column in enumerate(columns, 1):
            if column.allowed:
                choice = DataValidation(
                    type="list",
                    formula1=f'"{",".join(column.allowed)}"',
                    allow_blank=True,
                    showErrorMessage=True,
                    errorTitle="Not one of the list",
                    error="Choose a value from the list.",
                )
                choice.add(f"{get_column_letter(index)}2:{get_column_letter(index)}{_LAST_ROW}")
                sheet.data_validations.append(choice)


def _heading_cell(sheet: Any, column: TemplateColumn) -> Any:
    parts = ["Required." if column.is_required else "Optional.", column.rule]
    if column.allowed:
        parts.append(f"Allowed: {', '.join(column.allowed)}.")
    color = _REQUIRED_COLOR if column.is_required else None
    comment = Comment("\n".join(filter(None, parts)), AUTHOR, 160, 320)
    return make_cell(sheet, column.heading, color, font=BOLD, comment=comment)
