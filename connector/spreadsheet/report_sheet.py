"""A report as a workbook: cells of their own types, and problems shown where they are.

Text is written as text, in cells that say so, and so no cell has a formula; where a text looks like
one, the cell also says that it was typed behind an apostrophe, so that it stays text when somebody
edits it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter

from connector.engine.task import Foreseen
from connector.errors.spreadsheet import ReportRefused
from connector.spreadsheet.columns import REPORT_HEADINGS, letter
from connector.spreadsheet.form import TableRow
from connector.spreadsheet.formula import (
    EMPTY,
    MISSING,
    NOT_CALCULATED,
    is_hazard,
    mark_text_cell,
)
from connector.spreadsheet.result import RowResult, told
from connector.spreadsheet.row import Cell, Problem

TEXT_CHARACTERS_MAX = 32_767
"""As much text as a workbook's cell holds."""

COMMENTS_MAX = 10_000
"""Beyond so many comments workbooks open slowly; the further problems have their colour alone, and
all of them stand in `_problem`.
"""

_SHEET = "Report"
_AUTHOR = "connector"
_COMMENT_CHARACTERS_MAX = 1_000
_WIDTHS = {"_row": 8, "_outcome": 14, "_code": 24, "_problem": 60, "_fix": 60, "_id": 38}
_OWN_WIDTH = 20
_WRONG = PatternFill("solid", fgColor="FFC7CE")
_DOUBTFUL = PatternFill("solid", fgColor="FFEB9C")
_DONE = PatternFill("solid", fgColor="C6EFCE")
_NOTHING = PatternFill("solid", fgColor="EDEDED")
_FORESEEN = PatternFill("solid", fgColor="DDEBF7")
_FILLS: Mapping[Foreseen, PatternFill] = {
    "create": _FORESEEN,
    "update": _FORESEEN,
    "convert": _FORESEEN,
    "created": _DONE,
    "updated": _DONE,
    "converted": _DONE,
    "unchanged": _NOTHING,
    "duplicate": _DOUBTFUL,
    "invalid": _WRONG,
    "rejected": _WRONG,
    "not_applied": _WRONG,
    "conflict": _DOUBTFUL,
    "held": _DOUBTFUL,
    "not_sent": _NOTHING,
}
# What XML cannot hold, or changes when it is read, is written by number, as workbooks do; and so is
# what looks as if it were.
_BY_NUMBER = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_ANY = re.compile(".", re.DOTALL)
_NOT_IN_XML = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]")


def write_sheet(
    file: IO[bytes],
    path: Path,
    headings: Sequence[str],
    pairs: Iterator[tuple[TableRow, RowResult | None]],
) -> None:
    """Write the report's one sheet. Raises `ReportRefused` for text that no cell can hold."""
    book = Workbook(write_only=True)
    book.properties.creator = _AUTHOR
    sheet = book.create_sheet(_SHEET)
    sheet.freeze_panes = "A2"
    for index, width in enumerate([*[_OWN_WIDTH] * len(headings), *_WIDTHS.values()], 1):
        sheet.column_dimensions[get_column_letter(index)].width = width
    writer = _Writer(sheet, path, headings)
    target: IO[bytes] = io.BytesIO()
    try:
        sheet.append([writer.heading(each) for each in (*headings, *REPORT_HEADINGS)])
        for row, result in pairs:
            sheet.append([] if result is None else writer.cells(row, result))
        target = file
    finally:
        # The library keeps the rows in a file of its own until it has saved them somewhere.
        book.save(target)


class _Writer:
    """Makes the cells of one report."""

    def __init__(self, sheet: Any, path: Path, headings: Sequence[str]) -> None:
        self._sheet, self._path = sheet, path
        self._index = {heading: index for index, heading in enumerate(headings)}
        self._comments = 0

    def heading(self, text: str) -> Any:
        """A cell of the first row."""
        cell = self._text(mark_text_cell(text))
        cell.font = Font(bold=True)
        return cell

    def cells(self, row: TableRow, result: RowResult) -> list[Any]:
        """A row's cells: its own, what became of it, and those that no heading stands above."""
        own = [self._own(row, index) for index in range(len(row.cells))]
        for problem in result.problems:
            index = self._index.get(problem.column or "")
            if index is not None:
                self._show(own[index], problem)
        number, *rest = told(result)
        words = [self._text(mark_text_cell(each)) for each in rest]
        words[0].fill = _FILLS[result.outcome]
        for each in words[2:4]:
            each.alignment = Alignment(wrap_text=True, vertical="top")
        width = len(self._index)
        return [*own[:width], number, *words, *own[width:]]

    def _own(self, row: TableRow, index: int) -> Any:
        """One of the input's cells, with its own type."""
        value = row.cells[index]
        if index >= row.width:
            return self._text(MISSING)
        if (flaw := row.flaws.get(index)) is not None:
            kind, what = flaw
            if kind == "not_calculated":
                return self._text(NOT_CALCULATED + what)
            cell = self._cell(what)
            cell.data_type = "e"
            return cell
        if value == "" and index >= len(self._index):
            return self._text(EMPTY)
        if isinstance(value, str):
            return self._text(mark_text_cell(value), row.number, index)
        return self._typed(value)

    def _text(self, text: str, number: int = 0, index: int = 0) -> Any:
        # Blanks that stand alone would be dropped by whoever reads the XML.
        by_number = _BY_NUMBER if text.strip() else _ANY
        written = by_number.sub(lambda found: f"_x{ord(found.group()):04X}_", text)
        if len(written) > TEXT_CHARACTERS_MAX:
            raise ReportRefused(
                f"{self._path}: cell {letter(index)}{number} of the input has more text than a"
                " workbook's cell can hold",
                action="Write the report as csv.",
            )
        cell = self._cell(written)
        # Without this, text that begins as a formula or an error does would become one.
        cell.data_type = "s"
        cell.number_format = "@"
        if is_hazard(text):
            cell.quotePrefix = True
        return cell

    def _typed(self, value: Cell) -> Any:
        if isinstance(value, float):
            # All digits, where the library would round to sixteen.
            cell = self._cell(repr(value))
            cell.data_type = "n"
            return cell
        cell = self._cell(value)
        if isinstance(value, date | time) and not isinstance(value, datetime):
            cell.number_format = "yyyy-mm-dd" if isinstance(value, date) else "hh:mm:ss"
        return cell

    def _cell(self, value: Any) -> Any:
        return WriteOnlyCell(self._sheet, value=value)

    def _show(self, cell: Any, problem: Problem) -> None:
        """Colour the cell and say at it what is wrong."""
        cell.fill = _WRONG
        said = "\n".join(part for part in (problem.message, problem.fix) if part)
        said = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", said)[:_COMMENT_CHARACTERS_MAX]
        if cell.comment is not None:
            cell.comment.text += f"\n{said}"
        elif self._comments < COMMENTS_MAX:
            self._comments += 1
            cell.comment = Comment(said, _AUTHOR, height=120, width=320)
