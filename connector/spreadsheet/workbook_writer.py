"""Writer of workbooks: reports, and templates to be filled in."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import IO, cast
from xml.sax.saxutils import escape

from openpyxl import Workbook
from openpyxl.cell import Cell as BookCell
from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter, quote_sheetname
from openpyxl.utils.datetime import to_excel
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from connector.errors import ReportRefused
from connector.ledger.push_plan import Problem, RowResult
from connector.ledger.push_states import PreviewOutcome
from connector.log import escape_control_characters
from connector.spreadsheet.columns import column_letter
from connector.spreadsheet.problems import Amount, Cell, PartlyVisibleCell, SheetRow
from connector.spreadsheet.report import (
    ReportWords,
    RowsWithResults,
    Summary,
    placeholder,
    report_cells,
)
from connector.spreadsheet.table import Spreadsheet
from connector.spreadsheet.template_sheet import TemplateColumn
from connector.spreadsheet.texts import escape_workbook_cell, is_hazard

# -- Reports ---------------------------------------------------------------------------------------
# Text is written in cells of type text, so no cell is a formula. If a text looks like a formula,
# the cell is also marked as typed after an apostrophe, so that it stays text when the user edits
# it.
#
# The library writes the workbook without its rows: styles, widths, comments. The rows are added as
# XML here, because an object for each cell takes ten times as long as reading the file.


TEXT_CHARACTERS_MAX = 32_767
"""Maximum number of characters in a cell of a workbook."""

_COMMENTS_MAX = 10_000
"""Maximum number of comments, because more make workbooks open slowly. Further problems only have a
color. `_problem` contains all of them.
"""

_AUTHOR = "connector"
_COMMENT_CHARACTERS_MAX = 1_000
_WIDTHS = {"_row": 8, "_outcome": 14, "_code": 24, "_problem": 60, "_fix": 60, "_id": 38}
_OWN_WIDTH = 20
_WRONG = "FFC7CE"
_COLORS: Mapping[str, tuple[PreviewOutcome, ...]] = {
    "DDEBF7": ("create", "update", "convert"),
    "C6EFCE": ("created", "updated", "converted"),
    "EDEDED": ("unchanged", "not_sent"),
    "FFEB9C": ("duplicate", "conflict", "held"),
    _WRONG: ("invalid", "rejected", "not_applied"),
}
DATE_FORMATS: Mapping[type, str] = {
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    datetime: "yyyy-mm-dd h:mm:ss",
}
_COLOR_OF = {outcome: color for color, outcomes in _COLORS.items() for outcome in outcomes}
# XML cannot contain some characters and changes others when it is read. They are written by number,
# as workbooks do, and so is text that looks like such a number.
_NOT_IN_XML = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]")
_BY_NUMBER = re.compile(rf"{_NOT_IN_XML.pattern}|_(?=x[0-9A-Fa-f]{{4}}_)")
_ANY = re.compile(".", re.DOTALL)
# The first sheet is the summary, and the second has the rows.
_SHEET_PART = "xl/worksheets/sheet2.xml"
_SUMMARY_WIDTHS = (8, 18, 24, 80, 60)
ROWS = re.compile(rb"<sheetData\s*/>|<sheetData>.*</sheetData>", re.DOTALL)
# The library knows only the rows with comments.
SIZE = re.compile(rb"<dimension [^>]*/>")
PACKING = 1
"""Compression level. Higher levels take twice the time and save a fifth of the bytes."""

_CELLS_REMEMBERED, _TEXTS_REMEMBERED = 10_000, 1_000
_PIECE_BYTES = 256 * 1024
_LARGE_BYTES = 32 * 1024 * 1024
"""Size of the input above which the sheet may exceed 2 GiB, which a zip must declare beforehand."""


def write_report_workbook(
    file: IO[bytes],
    path: Path,
    table: Spreadsheet,
    pairs: RowsWithResults,
    *,
    words: ReportWords,
    summary: Summary | None = None,
) -> None:
    """Write the sheet with the rows, and the sheet with the summary.

    With a `summary` of the whole table, the rows are some of its rows and are written
    consecutively. Without one, they are all rows, and each keeps its number.

    Raises:
        ReportRefused: A text is longer than a cell may be.
    """
    sheet = _ReportWorkbook(path, table.headings, words, summary)
    is_large = table.path.stat().st_size > _LARGE_BYTES
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=PACKING) as archive:
        packed = archive.open(_SHEET_PART, "w", force_zip64=is_large)
        # Many rows are compressed together.
        with io.BufferedWriter(cast("io.RawIOBase", packed), _PIECE_BYTES) as part:
            before, _ = ROWS.split(sheet.parts()[_SHEET_PART])
            part.write(SIZE.sub(b"", before) + b"<sheetData>")
            part.write(sheet.heading_row_xml().encode())
            for row, result in pairs:
                part.write(sheet.row_xml(row, result).encode())
            sheet.fill_summary()
            parts = sheet.parts()
            _, behind = ROWS.split(parts.pop(_SHEET_PART))
            part.write(b"</sheetData>" + behind)
        for name, content in parts.items():
            archive.writestr(name, content)


class TextTooLong(Exception):
    """Error for a text that no cell of a workbook can hold."""


class _ReportWorkbook:
    """Workbook of a report: the XML of its rows, and its other parts by the library.

    The XML of a cell is cached without its reference, so that repeated texts are converted once.
    """

    def __init__(
        self, path: Path, headings: Sequence[str], words: ReportWords, summary: Summary | None
    ) -> None:
        self._path, self._headings, self._words = path, headings, words
        self._index = {heading: index for index, heading in enumerate(headings)}
        self._width = len(headings) + len(words.headings)
        self._letters = [column_letter(i) for i in range(self._width)]
        self._book = Workbook()
        self._book.properties.creator = _AUTHOR
        sheet = self._book.active
        assert isinstance(sheet, Worksheet)
        self._sheet = sheet
        first, second = words.sheets
        sheet.title, sheet.freeze_panes = second, "A2"
        self._book.create_sheet(first, 0)
        self._book.active = 0
        self._has_all_rows = summary is None
        self._summary, self._last = summary or Summary(), 1
        widths = [*[_OWN_WIDTH] * len(headings), *_WIDTHS.values()]
        for letters, width in zip(self._letters, widths, strict=True):
            sheet.column_dimensions[letters].width = width
        self._comments = 0
        self._style = cache(partial(style_number, sheet))
        self._text = lru_cache(_TEXTS_REMEMBERED)(self._text_xml)
        # Python considers True and 1 equal, so the type is part of the key.
        self._cell = lru_cache(_CELLS_REMEMBERED, typed=True)(self._value_xml)

    def parts(self) -> dict[str, bytes]:
        """Return the members of the workbook as the library writes them, without the rows."""
        written = io.BytesIO()
        self._book.save(written)
        with zipfile.ZipFile(written) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def fill_summary(self) -> None:
        """Fill the first sheet with the number of rows by outcome, and of problems by kind."""
        words, summary = self._words, self._summary
        sheet = self._book[words.sheets[0]]
        lines: list[tuple[object, ...]] = [words.summary]
        counts = summary.counts.most_common()
        lines += [(count, words.outcome(name), "", "", "") for name, count in counts]
        kinds = zip(words.kinds, (summary.problems, summary.warnings), strict=True)
        for kind_name, groups in kinds:
            for each in sorted(groups.values(), key=lambda group: -group.count):
                found = (
                    words.place(each.problem),
                    "\n".join(each.describe(words)),
                    each.describe_fix(words),
                )
                lines.append((each.count, kind_name, *found))
        for index, line in enumerate(lines, 1):
            for column, value in enumerate(line, 1):
                cell = sheet.cell(index, column)
                cell.alignment = Alignment(wrap_text=True, vertical="top")
                cell.font = Font(bold=index == 1)
                if isinstance(value, int):
                    cell.value = value
                else:
                    # It is text even if it begins like a formula.
                    text = _NOT_IN_XML.sub(
                        "\N{REPLACEMENT CHARACTER}", escape_workbook_cell(str(value))
                    )
                    cell.value, cell.data_type = text, "s"
                    cell.quotePrefix = is_hazard(text)
        for number, width in enumerate(_SUMMARY_WIDTHS):
            sheet.column_dimensions[column_letter(number)].width = width
        sheet.freeze_panes = "A2"
        self._sheet.auto_filter.ref = f"A1:{self._letters[self._width - 1]}{self._last}"

    def heading_row_xml(self) -> str:
        """Return the XML of the row with the headings."""
        texts = (*self._headings, *self._words.headings)
        return self._join_row(
            1, [self._text(escape_workbook_cell(each), is_bold=True) for each in texts]
        )

    def row_xml(self, row: SheetRow, result: RowResult | None) -> str:
        """Return the XML of a row: its own cells, its result, and cells without a heading.

        It also counts the row in the summary and adds comments for its problems.
        """
        self._last = place = row.number if self._has_all_rows else self._last + 1
        if result is None:
            return self._join_row(place, self._input_cells_xml(row) if row.is_outside else ())
        if self._has_all_rows:
            self._summary.add(result)
        own = self._input_cells_xml(row)
        for problem in result.problems:
            index = self._index.get(problem.column or "")
            if index is not None:
                own[index] = self._input_cell_xml(row, index, _WRONG)
                self._add_comment(place, index, problem)
        number, outcome, *rest = report_cells(result, self._words)
        width = len(self._headings)
        cells = [
            *own[:width],
            value_cell_xml("n", number),
            self._text(outcome, _COLOR_OF[result.outcome]),
            *(self._text(escape_workbook_cell(each), wraps=True) if each else "" for each in rest),
            *own[width:],
        ]
        return self._join_row(place, cells)

    def _join_row(self, number: int, cells: Sequence[str]) -> str:
        """Return the XML of row `number` with the XML of its cells."""
        while len(self._letters) < len(cells):
            self._letters.append(column_letter(len(self._letters)))
        return row_xml(number, self._letters, cells)

    def _input_cells_xml(self, row: SheetRow) -> list[str]:
        """Return the XML of a row's own cells."""
        if not (row.flaws or row.missing_cells or len(row.cells) != len(self._headings)):
            # The plain case must be fast: there may be a million rows.
            with suppress(TextTooLong):
                return list(map(self._cell, row.cells))
        return [self._input_cell_xml(row, index) for index in range(len(row.cells))]

    def _input_cell_xml(self, row: SheetRow, index: int, color: str | None = None) -> str:
        """Return the XML of one cell of the input, or of its placeholder.

        Raises `ReportRefused` for a text that is too long.
        """
        if (shown := placeholder(row, index, len(self._headings))) is not None:
            return self._text(shown, color)
        if row.flaws.get(index, ("",))[0] == "error":
            return value_cell_xml("e", escape(row.flaws[index][1]), self._style(None, color))
        try:
            return self._cell(row.cells[index], color)
        except TextTooLong:
            cell = f"{column_letter(index)}{row.number}"
            raise ReportRefused(
                f"{self._path}: cell {cell} of the input has more text than a cell of a workbook "
                f"can contain",
                action="Write the report as csv.",
            ) from None

    def _value_xml(self, value: Cell, color: str | None = None) -> str:
        """Return the XML of a cell with the type of the value. Raises `TextTooLong`."""
        match value:
            case str():
                return self._text_xml(escape_workbook_cell(value), color)
            case bool():
                return value_cell_xml("b", int(value), self._style(None, color))
            case int() | float():
                return value_cell_xml("n", value, self._style(None, color))
            case Amount():
                raw = value.value / 100 if value.unit == "%" else value.value
                return value_cell_xml("n", raw, self._style(value.number_format, color))
            case PartlyVisibleCell():
                return self._partly_visible_xml(value, color)
        days = to_excel(value)  # type: ignore[no-untyped-call]
        return value_cell_xml("n", days, self._style(DATE_FORMATS[type(value)], color))

    def _partly_visible_xml(self, cell: PartlyVisibleCell, color: str | None) -> str:
        """Return the XML of a cell with the value, whose number format shows as little as in the
        input.
        """
        if isinstance(cell.value, str):
            return self._value_xml(cell.value, color)
        is_date = isinstance(cell.value, date)
        number = to_excel(cell.value) if is_date else cell.value  # type: ignore[no-untyped-call]
        return value_cell_xml("n", number, self._style(cell.number_format, color))

    def _text_xml(
        self, text: str, color: str | None = None, *, is_bold: bool = False, wraps: bool = False
    ) -> str:
        """Return the XML of a text cell, which no program runs as a formula."""
        return text_cell_xml(
            text, self._style("@", color, is_bold=is_bold, wraps=wraps, is_quoted=is_hazard(text))
        )

    def _add_comment(self, number: int, index: int, problem: Problem) -> None:
        """Add the problem to the comment of a cell: row `number` from 1, column `index` from 0."""
        cell = self._sheet.cell(number, index + 1)
        parts = (self._words.text(problem), self._words.fix(problem))
        lines = "\n".join(part for part in parts if part)
        lines = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", lines)[:_COMMENT_CHARACTERS_MAX]
        if cell.comment is not None:
            cell.comment.text += f"\n{lines}"
        elif self._comments < _COMMENTS_MAX:
            self._comments += 1
            cell.comment = Comment(lines, _AUTHOR, height=120, width=320)


def style_number(
    sheet: Worksheet,
    number_format: str | None = None,
    color: str | None = None,
    *,
    is_bold: bool = False,
    wraps: bool = False,
    is_quoted: bool = False,
) -> int:
    """Return the number of a style in the workbook's library, for cells with these properties."""
    cell = WriteOnlyCell(sheet)
    if number_format is not None:
        cell.number_format = number_format
    if color is not None:
        cell.fill = PatternFill("solid", fgColor=color)
    if is_bold:
        cell.font = Font(bold=True)
    if wraps:
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.quotePrefix = is_quoted
    return int(cell.style_id)


def row_xml(number: int, letters: Sequence[str], cells: Sequence[str]) -> str:
    """Return the XML of row `number` with the XML of its cells; empty cells are left out."""
    assert len(cells) <= len(letters), f"row {number} has more cells than columns"
    placed = zip(letters, cells, strict=False)
    joined = "".join([f'<c r="{column}{number}"{cell}' for column, cell in placed if cell])
    return f'<row r="{number}">{joined}</row>'


def text_cell_xml(text: str, style: int = 0) -> str:
    """Return the XML after the reference of a text cell, which is never a formula.

    Raises:
        TextTooLong: A cell cannot hold the text.
    """
    if not text:
        return f' s="{style}" t="inlineStr"/>'
    # Readers of XML would drop a text of blanks.
    bare = text.strip()
    by_number = _BY_NUMBER if bare else _ANY
    written = by_number.sub(lambda found: f"_x{ord(found.group()):04X}_", text)
    # Excel counts UTF-16 units; a character has one or two.
    units = len(written)
    if units > TEXT_CHARACTERS_MAX // 2:
        units = len(written.encode("utf-16-le")) // 2
    if units > TEXT_CHARACTERS_MAX:
        raise TextTooLong
    keeps = ' xml:space="preserve"' if bare != text else ""
    return f' s="{style}" t="inlineStr"><is><t{keeps}>{escape(written)}</t></is></c>'


def value_cell_xml(kind: str, value: object, style: int = 0) -> str:
    """Return the XML after the reference of a cell with a number ("n"), boolean ("b") or error
    ("e").
    """
    return f' s="{style}" t="{kind}"><v>{value}</v></c>'


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
    book.properties.creator = _AUTHOR
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Rows"
    sheet.freeze_panes = "A2"
    lists = book.create_sheet(_LISTS_SHEET)
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


def _write_heading(sheet: Worksheet, index: int, column: TemplateColumn) -> None:
    """Write the heading of a column, with its rule as a comment and a color if it is required."""
    cell = _write_text(sheet, 1, index, column.heading)
    cell.font = Font(bold=True)
    cell.fill = _REQUIRED if column.is_required else _OPTIONAL
    parts = ["Required." if column.is_required else "Optional.", column.rule]
    if column.allowed:
        parts.append(f"Allowed: {', '.join(column.allowed)}.")
    about = escape_control_characters("\n".join(filter(None, parts)), except_for="\n")
    cell.comment = Comment(about, _AUTHOR, 160, 320)


def _write_text(sheet: Worksheet, row: int, column: int, text: str) -> BookCell:
    """Write a text cell that is no formula, and return it; row and column count from 1."""
    cell = sheet.cell(row, column)
    assert isinstance(cell, BookCell)
    # The platform may offer values with characters that a workbook cannot contain.
    cell.value = escape_control_characters(text, except_for="\n")
    # An example such as =x or #N/A would not be read as text.
    cell.data_type = "s"
    cell.number_format = "@"
    return cell


def _add_list(
    sheet: Worksheet, lists: Worksheet, column_letters: str, column: TemplateColumn
) -> None:
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
