"""Reports: the input's own columns as they were, and behind them what became of each row.

A report is made to be corrected and pushed again. So it opens as a table whose cells are
exactly those of the input, whatever they hold, and knows which rows were applied. No cell in it
runs as a formula. It has one line for each of the input's rows, in order, blank ones too: a row
without a result, or with two, is an error and no report.
"""

from __future__ import annotations

import csv
import errno
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from itertools import count
from pathlib import Path
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter

from connector.engine.push_states import Foreseen
from connector.errors import DiskFull, NotASpreadsheet, ReportRefused, SpreadsheetError
from connector.spreadsheet.columns import REPORT_HEADINGS, letter
from connector.spreadsheet.row import Cell, Problem
from connector.spreadsheet.table import (
    TEXT_SUFFIXES,
    WORKBOOK_SUFFIX,
    Spreadsheet,
    TableRow,
    text_of,
)
from connector.spreadsheet.texts import (
    EMPTY,
    MISSING,
    NOT_CALCULATED,
    is_hazard,
    mark,
    mark_text_cell,
)
from connector.system import atomic_files as disk

# -- Result ----------------------------------------------------------------------------------------
# How a row ended, and the words in which a report says so.


@dataclass(frozen=True, slots=True)
class RowResult:
    """How one row ended, or would: `code` says why, and `record_id` is the id of its record,
    where known. `changes` are a foreseen update's fields, each with its text as it is and as it
    would be.
    """

    number: int
    outcome: Foreseen
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None
    changes: tuple[tuple[str, str, str], ...] = ()


TOLD_MAX = 100
"""As many rows with problems as are remembered one by one."""


@dataclass(slots=True)
class Summary:
    """What a file's rows come to. `codes` counts problems by code, `troubled` the rows that have
    any, of which `first` are the first few.
    """

    counts: Counter[Foreseen] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    troubled: int = 0
    first: list[RowResult] = field(default_factory=list)

    @classmethod
    def of(cls, results: Iterable[RowResult]) -> Summary:
        """The summary of these rows."""
        made = cls()
        for each in results:
            made.add(each)
        return made

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.counts.total()

    def add(self, result: RowResult) -> None:
        """Take in one row more."""
        self.counts[result.outcome] += 1
        if not result.problems:
            return
        self.troubled += 1
        for problem in result.problems:
            self.codes[problem.code] += 1
        if len(self.first) < TOLD_MAX:
            self.first.append(result)


def told(result: RowResult) -> tuple[int, str, str, str, str, str]:
    """What the report's own columns say, in their order."""
    if not result.problems:
        changes = "\n".join(f"{name}: {now} -> {then}" for name, now, then in result.changes)
        return result.number, result.outcome, result.code or "", "", changes, result.record_id or ""
    codes = dict.fromkeys([result.code, *(each.code for each in result.problems)])
    fixes = dict.fromkeys(each.fix for each in result.problems)
    return (
        result.number,
        result.outcome,
        ", ".join(code for code in codes if code),
        "\n".join(_said(each) for each in result.problems),
        "\n".join(fix for fix in fixes if fix),
        result.record_id or "",
    )


def _said(problem: Problem) -> str:
    """A problem in one line: where, what, what was received and what is allowed."""
    parts = [f"{problem.column}: {problem.message}" if problem.column else problem.message]
    if problem.received:
        parts.append(f"Received: {problem.received}.")
    if problem.allowed:
        parts.append(f"Allowed: {problem.allowed}.")
    return " ".join(parts)


# -- Report sheet ----------------------------------------------------------------------------------
# A report as a workbook: cells of their own types, and problems shown where they are.
#
# Text is written as text, in cells that say so, and so no cell has a formula; where a text looks
# like one, the cell also says that it was typed behind an apostrophe, so that it stays text when
# somebody edits it.


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


# -- Writing ---------------------------------------------------------------------------------------
# Files that are there whole or not at all, with an error that a recruiter understands.


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name at the end. Raises `DiskFull`, `SpreadsheetError`."""
    try:
        with disk.replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"there is no room left to write {path}") from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error


# -- Report ----------------------------------------------------------------------------------------
#


_MARK = ".report"


def report_path(table: Spreadsheet) -> Path:
    """A name for the table's report, beside it, that no file has yet.

    An earlier report may have corrections in it, which are never written over.
    """
    stem = table.path.stem
    first, found, number = stem.rpartition(_MARK)
    if found and table.is_report and (not number or number.removeprefix("-").isdecimal()):
        stem = first
    for each in count(1):
        name = f"{stem}{_MARK}{f'-{each}' if each > 1 else ''}{table.path.suffix}"
        if not table.path.with_name(name).exists():
            return table.path.with_name(name)
    raise AssertionError  # The count has no end.


def write_report(path: Path, table: Spreadsheet, results: Iterable[RowResult]) -> int:
    """Write the report, csv or xlsx by its name, and return how many rows have a result.

    `results` come in the order of the rows, one for each that is not blank. A csv has the
    input's delimiter, and is in UTF-8 with a mark, by which spreadsheet programs know it. The file
    is there whole or not at all, and only its owner may read it. Raises `ReportRefused` where
    results and rows do not match, `SpreadsheetChanged`, `SpreadsheetError`, `DiskFull`.
    """
    suffix = path.suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise NotASpreadsheet(
            f"{path}: a report is a csv, tsv, txt or xlsx", action="Give a name that ends so."
        )
    if path.exists() and path.samefile(table.path):
        raise ReportRefused(
            f"{path} is the input itself, which is never written over",
            action="Give the report another name.",
        )
    pairs = _Pairs(table, results)
    with replacing(path) as file:
        if suffix == WORKBOOK_SUFFIX:
            # A library comes with it that takes 10 MB, and a csv needs nothing of it.

            write_sheet(file, path, table.headings, iter(pairs))
        else:
            delimiter = "\t" if suffix == ".tsv" else table.delimiter or ","
            _write_text(file, delimiter, table.headings, iter(pairs))
    return pairs.results


class _Pairs:
    """Each row with its result, None for a blank one; anything else is refused."""

    def __init__(self, table: Spreadsheet, results: Iterable[RowResult]) -> None:
        self.results = 0
        self._table, self._given = table, results

    def __iter__(self) -> Iterator[tuple[TableRow, RowResult | None]]:
        given = iter(self._given)
        for row in self._table.rows():
            if row.is_blank:
                yield row, None
                continue
            result = next(given, None)
            if result is None or result.number != row.number:
                found = "none" if result is None else f"that of row {result.number}"
                raise ReportRefused(
                    f"{self._table.path}: the next result should be that of row {row.number},"
                    f" and is {found}"
                )
            self.results += 1
            yield row, result
        if (result := next(given, None)) is not None:
            raise ReportRefused(
                f"{self._table.path}: row {result.number} has a result and is not there, or has two"
            )


def _write_text(
    file: IO[bytes],
    delimiter: str,
    headings: tuple[str, ...],
    pairs: Iterator[tuple[TableRow, RowResult | None]],
) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=False)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([*(mark(each) for each in headings), *REPORT_HEADINGS])
    for row, result in pairs:
        if result is None:
            writer.writerow([""] * (len(headings) + len(REPORT_HEADINGS)))
            continue
        own = _own_cells(row, len(headings))
        number, *rest = told(result)
        # Cells that no heading stands above come behind everything else, as they did.
        mine, beyond = own[: len(headings)], own[len(headings) :]
        writer.writerow([*mine, number, *(mark(each) for each in rest), *beyond])
    text.flush()
    text.detach()


def _own_cells(row: TableRow, width: int) -> list[str]:
    """The row's own cells, as the report has them."""
    if row.flaws or not width == row.width == len(row.cells):
        return list(_text_cells(row, width))
    # The plain case comes first: there may be a million of them.
    return list(map(_text_cell, row.cells))


def _text_cells(row: TableRow, width: int) -> Iterator[str]:
    for index, cell in enumerate(row.cells):
        flaw = row.flaws.get(index)
        if index >= row.width:
            yield MISSING
        elif flaw is not None and flaw[0] == "not_calculated":
            yield NOT_CALCULATED + flaw[1]
        elif cell == "" and index >= width:
            yield EMPTY
        else:
            yield _text_cell(cell)


def _text_cell(cell: Cell) -> str:
    # A number is no text that could be mistaken for a formula.
    return mark(cell) if isinstance(cell, str) else text_of(cell)
