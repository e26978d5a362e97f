"""Writer of workbooks: reports, and templates to be filled in.

Text is written in cells of type text, so no cell is a formula. If a text looks like a formula, the
cell is also marked as typed after an apostrophe, so that it stays text when the user edits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter, quote_sheetname
from openpyxl.worksheet.datavalidation import DataValidation

from connector.errors import ReportRefused
from connector.ledger.push_plan import Problem, RowResult
from connector.ledger.push_states import PreviewOutcome
from connector.log import escape_control_characters
from connector.spreadsheet.headings import REPORT_HEADINGS, column_letter
from connector.spreadsheet.problems import Amount, Cell, PartlyVisibleCell, SheetRow
from connector.spreadsheet.report import (
    RowsWithResults,
    Summary,
    placeholder,
    problem_text,
    report_cells,
)
from connector.spreadsheet.template import TemplateColumn
from connector.spreadsheet.texts import escape_workbook_cell, is_hazard
from connector.spreadsheet.workbooks import (
    AUTHOR,
    BY_NUMBER,
    create_workbook,
    is_too_long,
    write_by_number,
)

_COMMENTS_MAX = 10_000
"""Maximum number of comments, because more make workbooks open slowly. Further problems only have a
color. `_problem` contains all of them.
"""

_COMMENT_CHARACTERS_MAX = 1_000
_WIDTHS = (8, 14, 24, 60, 60, 38)
_OWN_WIDTH = 20
_WRONG = "FFC7CE"
_COLORS: Mapping[str, tuple[PreviewOutcome, ...]] = {
    "DDEBF7": ("create", "update", "convert"),
    "C6EFCE": ("created", "updated", "converted"),
    "EDEDED": ("unchanged", "not_sent"),
    "FFEB9C": ("duplicate", "conflict", "held"),
    _WRONG: ("invalid", "rejected", "not_applied"),
}
_COLOR_OF = {outcome: color for color, outcomes in _COLORS.items() for outcome in outcomes}
_DATE_FORMATS: Mapping[type, str] = {
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    datetime: "yyyy-mm-dd h:mm:ss",
}
_SUMMARY = ("Rows", "What", "Column", "Problem", "What to do")
_SUMMARY_WIDTHS = (8, 18, 24, 80, 60)
_BOLD, _WRAPPED = Font(bold=True), Alignment(wrap_text=True, vertical="top")


# -- Reports ---------------------------------------------------------------------------------------


def write_report_workbook(
    file: IO[bytes],
    path: Path,
    headings: Sequence[str],
    pairs: RowsWithResults,
    summary: Summary | None,
) -> None:
    """Write the sheet with the rows, and the sheet with the summary.

    With a `summary` of the whole table, the rows are some of its rows and are written
    consecutively. Without one, they are all rows, and each keeps its number.

    Raises:
        ReportRefused: A text is longer than a cell may be.
    """
    with create_workbook(file) as book:
        first, sheet = book.create_sheet("Summary"), book.create_sheet("Report")
        writer = _RowWriter(path, sheet, headings)
        texts = (*headings, *REPORT_HEADINGS)
        _set_widths(sheet, [*[_OWN_WIDTH] * len(headings), *_WIDTHS])
        sheet.append([_cell(sheet, escape_workbook_cell(each), font=_BOLD) for each in texts])
        counted, last = summary or Summary(), 1
        for row, result in pairs:
            while summary is None and last + 1 < row.number:
                sheet.append([])
                last += 1
            sheet.append(writer.row(row, result))
            last += 1
            if summary is None and result is not None:
                counted.add(result)
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(texts))}{last}"
        _fill_summary(first, counted)


def _set_widths(sheet: Any, widths: Sequence[int]) -> None:
    for number, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(number)].width = width
    sheet.freeze_panes = "A2"


def _fill_summary(sheet: Any, summary: Summary) -> None:
    """Fill the first sheet with the number of rows by outcome, and of problems by kind."""
    _set_widths(sheet, _SUMMARY_WIDTHS)
    lines: list[tuple[Any, ...]] = [_SUMMARY]
    lines += [(count, name, "", "", "") for name, count in summary.counts.most_common()]
    for kind, groups in (("problem", summary.problems), ("warning", summary.warnings)):
        for each in sorted(groups.values(), key=lambda group: -group.count):
            text = "\n".join(each.describe())
            lines.append((each.count, kind, each.problem.column or "", text, each.fix or ""))
    for index, line in enumerate(lines):
        sheet.append(
            [
                _cell(
                    sheet,
                    value if isinstance(value, int) else escape_workbook_cell(value),
                    font=None if index else _BOLD,
                    alignment=_WRAPPED,
                )
                for value in line
            ]
        )


def _cell(sheet: Any, value: Any, color: str | None = None, **styles: Any) -> Any:
    """Return a cell with this value, which is never a formula.

    `styles` are attributes of the cell, such as its `font`; None keeps the default.
    """
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


class _RowWriter:
    """Writer of a report's rows."""

    def __init__(self, path: Path, sheet: Any, headings: Sequence[str]) -> None:
        self._path, self._sheet, self._width = path, sheet, len(headings)
        self._index = {heading: index for index, heading in enumerate(headings)}
        self._comments = 0

    def row(self, row: SheetRow, result: RowResult | None) -> list[Any]:
        """Return the cells of a row: its own, its result, and cells without a heading."""
        if result is None:
            return [self._own_cell(row, i) for i in range(len(row.cells))] if row.is_outside else []
        by_column: dict[int, list[Problem]] = {}
        for problem in result.problems:
            if (index := self._index.get(problem.column or "")) is not None:
                by_column.setdefault(index, []).append(problem)
        own = [self._own_cell(row, i, by_column.get(i, ())) for i in range(len(row.cells))]
        number, outcome, *rest = report_cells(result)
        texts = (escape_workbook_cell(each) for each in rest)
        return [
            *own[: self._width],
            number,
            _cell(self._sheet, outcome, _COLOR_OF[result.outcome]),
            *(_cell(self._sheet, each, alignment=_WRAPPED) if each else None for each in texts),
            *own[self._width :],
        ]

    def _own_cell(self, row: SheetRow, index: int, problems: Sequence[Problem] = ()) -> Any:
        """Return one cell of the input, or its placeholder, with its problems as a comment."""
        color = _WRONG if problems else None
        shown = placeholder(row, index, self._width)
        if shown is not None:
            cell = _cell(self._sheet, shown, color)
        elif row.flaws.get(index, ("",))[0] == "error":
            cell = _cell(self._sheet, row.flaws[index][1], color, data_type="e")
        else:
            cell = self._value(row.cells[index], color, f"{column_letter(index)}{row.number}")
        if problems and self._comments < _COMMENTS_MAX:
            self._comments += 1
            parts = [part for each in problems for part in (problem_text(each), each.fix) if part]
            text = BY_NUMBER.sub("\N{REPLACEMENT CHARACTER}", "\n".join(parts))
            cell.comment = Comment(text[:_COMMENT_CHARACTERS_MAX], AUTHOR, height=120, width=320)
        return cell

    def _value(self, value: Cell, color: str | None, place: str) -> Any:
        """Return a cell with the type of the value. Raises `ReportRefused` for too long a text."""
        number_format = _DATE_FORMATS.get(type(value))
        match value:
            case str():
                text = escape_workbook_cell(value)
                # Excel counts UTF-16 units; a character has one or two.
                if is_too_long(write_by_number(text)):
                    message = f"{self._path}: cell {place} of the input has more text than a cell"
                    raise ReportRefused(
                        f"{message} of a workbook can contain", action="Write the report as csv."
                    )
                return _cell(self._sheet, text, color) if text or color else None
            case Amount():
                number_format = value.number_format
                value = value.value / 100 if value.unit == "%" else value.value
            case PartlyVisibleCell():
                number_format, value = value.number_format, value.value
        return _cell(self._sheet, value, color, number_format=number_format)


# -- Templates -------------------------------------------------------------------------------------

_LISTS_SHEET = "Allowed values"
_INLINE_CHARACTERS_MAX = 255
_LAST_ROW = 1_048_576
_WIDTH = 24
_MESSAGE_CHARACTERS_MAX = 225
_REQUIRED = PatternFill("solid", fgColor="F8CBAD")
_OPTIONAL = PatternFill("solid", fgColor="EDEDED")


def write_template_workbook(file: IO[bytes], columns: Sequence[TemplateColumn]) -> None:
    """Write the workbook of a template: headings with comments, an example row, and lists of
    values.
    """
    book = Workbook()
    book.properties.creator = AUTHOR
    sheet: Any = book.active
    sheet.title = "Rows"
    sheet.freeze_panes = "A2"
    lists: Any = book.create_sheet(_LISTS_SHEET)
    # Hidden, so that only the sheet with the rows is read.
    lists.sheet_state = "hidden"
    for index, column in enumerate(columns, 1):
        letters = get_column_letter(index)
        dimension = sheet.column_dimensions[letters]
        dimension.width = max(_WIDTH, len(column.heading) + 2)
        # Format of cells that do not exist yet; the cells below have their own.
        dimension.number_format = "@"
        _write_heading(sheet, index, column)
        _write_text(sheet, 2, index, column.example).font = Font(italic=True, color="7F7F7F")
        if column.allowed:
            _add_list(sheet, lists, letters, column)
    if lists["A1"].value is None:
        book.remove(lists)
    book.save(file)


def _write_heading(sheet: Any, index: int, column: TemplateColumn) -> None:
    """Write the heading of a column, with its rule as a comment and a color if it is required."""
    cell = _write_text(sheet, 1, index, column.heading)
    cell.font = Font(bold=True)
    cell.fill = _REQUIRED if column.is_required else _OPTIONAL
    parts = ["Required." if column.is_required else "Optional.", column.rule]
    if column.allowed:
        parts.append(f"Allowed: {', '.join(column.allowed)}.")
    about = escape_control_characters("\n".join(filter(None, parts)), except_for="\n")
    cell.comment = Comment(about, AUTHOR, 160, 320)


def _write_text(sheet: Any, row: int, column: int, text: str) -> Any:
    """Write a text cell that is no formula, and return it; row and column count from 1."""
    cell = sheet.cell(row, column)
    # The platform may offer values with characters that a workbook cannot contain.
    cell.value = escape_control_characters(text, except_for="\n")
    # An example such as =x or #N/A would not be read as text.
    cell.data_type = "s"
    cell.number_format = "@"
    return cell


def _add_list(sheet: Any, lists: Any, column_letters: str, column: TemplateColumn) -> None:
    """Let the user choose one of the allowed values in every cell of the column.

    A long list is written to the hidden sheet `lists`.
    """
    inline = ",".join(column.allowed)
    formula = f'"{inline}"'
    if len(inline) > _INLINE_CHARACTERS_MAX or any(set(v) & set(',"\n') for v in column.allowed):
        place = lists.max_column + (lists["A1"].value is not None)
        for row, value in enumerate(column.allowed, 1):
            _write_text(lists, row, place, value)
        home = get_column_letter(place)
        formula = f"{quote_sheetname(_LISTS_SHEET)}!${home}$1:${home}${len(column.allowed)}"
    choice = DataValidation(
        type="list",
        formula1=formula,
        allow_blank=True,
        showErrorMessage=True,
        errorTitle="Not one of the list",
        error=f"{column.heading}: choose a value from the list."[:_MESSAGE_CHARACTERS_MAX],
    )
    choice.add(f"{column_letters}2:{column_letters}{_LAST_ROW}")
    sheet.add_data_validation(choice)
