"""Reports: the input's own columns, and behind them what became of each row.

A report is made to be corrected and pushed again. So it opens as a table whose cells are exactly
those of the input, whatever they hold. No cell in it runs as a formula. It has one line for each of
the input's rows, in order, blank ones too: a row without a result, or with two, is an error and no
report.
"""

from __future__ import annotations

import csv
import errno
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import IO, Any, cast
from xml.sax.saxutils import escape

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils.datetime import to_excel
from openpyxl.worksheet.worksheet import Worksheet

from connector.engine.push_states import PreviewOutcome
from connector.errors import DiskFull, NotASpreadsheet, ReportRefused, SpreadsheetError
from connector.spreadsheet.columns import REPORT_HEADINGS, letter
from connector.spreadsheet.problems import Cell, Problem, SheetRow, text_of
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX, Spreadsheet
from connector.spreadsheet.texts import (
    EMPTY,
    MISSING,
    NOT_CALCULATED,
    is_hazard,
    mark,
    mark_text_cell,
)
from connector.system import atomic_files

# -- Results ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowResult:
    """Result of one row, reached or foreseen.

    `code` says why, and `record_id` is the id of its record, where known. `changes` are a foreseen
    update's fields, each with its text as it is and as it would be.
    """

    number: int
    outcome: PreviewOutcome
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None
    changes: tuple[tuple[str, str, str], ...] = ()


REMEMBERED_MAX = 100
"""As many rows with problems as are remembered one by one."""


@dataclass(slots=True)
class Summary:
    """Counts of a file's rows by outcome.

    `codes` counts problems by code, `troubled` the rows that have any, of which `first` are the
    first few.
    """

    counts: Counter[PreviewOutcome] = field(default_factory=Counter)
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
        """Number of rows."""
        return self.counts.total()

    def add(self, result: RowResult) -> None:
        """Take in one row more."""
        self.counts[result.outcome] += 1
        if result.problems:
            self.troubled += 1
            self.codes.update(problem.code for problem in result.problems)
            if len(self.first) < REMEMBERED_MAX:
                self.first.append(result)


def _report_cells(result: RowResult) -> tuple[int, str, str, str, str, str]:
    """The report's own cells of a row, in their order."""
    codes = dict.fromkeys([result.code, *(each.code for each in result.problems)])
    fixes = dict.fromkeys(each.fix for each in result.problems)
    changes = [f"{name}: {now} -> {then}" for name, now, then in result.changes]
    return (
        result.number,
        result.outcome,
        ", ".join(code for code in codes if code),
        "\n".join(map(_in_one_line, result.problems)),
        "\n".join(fix for fix in fixes if fix) if result.problems else "\n".join(changes),
        result.record_id or "",
    )


def _in_one_line(problem: Problem) -> str:
    """A problem: where, what, what was received and what is allowed."""
    parts = [f"{problem.column}: {problem.message}" if problem.column else problem.message]
    if problem.received:
        parts.append(f"Received: {problem.received}.")
    if problem.allowed:
        parts.append(f"Allowed: {problem.allowed}.")
    return " ".join(parts)


def _stand_in(row: SheetRow, index: int, width: int) -> str | None:
    """The text that stands for a cell that is not there, or has nothing to show."""
    if index >= len(row.cells) - row.missing:
        return MISSING
    kind, formula = row.flaws.get(index, ("", ""))
    if kind == "not_calculated":
        return NOT_CALCULATED + formula
    return EMPTY if index >= width and row.cells[index] == "" else None


_Pairs = Iterator[tuple[SheetRow, RowResult | None]]
"""Each row with its result, None for a blank one."""

# -- Writing ---------------------------------------------------------------------------------------


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def new_table(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A table's file to write, which takes its name at the end.

    It is there whole or not at all, and for its owner alone.

    Raises `NotASpreadsheet` for a name of another kind, `DiskFull`, `SpreadsheetError`.
    """
    if path.suffix.lower() not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise NotASpreadsheet(
            f"{path}: {what} is a csv, tsv, txt or xlsx", action="Give a name that ends so."
        )
    try:
        with atomic_files.replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"there is no room left to write {path}") from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error


def write_rows(file: IO[bytes], delimiter: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write text with delimiters, in UTF-8 with a mark for spreadsheet programs."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    text.flush()
    text.detach()


def report_path(table: Spreadsheet) -> Path:
    """A name for the table's report, beside it, that no file has yet.

    An earlier report may have corrections in it, which are never written over.
    """
    stem = table.path.stem
    if table.is_report:
        stem = re.sub(r"\.report(-?[0-9]+)?\Z", "", stem)
    names = (f"{stem}.report{f'-{n}' if n > 1 else ''}{table.path.suffix}" for n in count(1))
    return next(path for path in map(table.path.with_name, names) if not path.exists())


def write_report(path: Path, table: Spreadsheet, results: Iterable[RowResult]) -> None:
    """Write the report, csv or xlsx by its name.

    `results` come in the order of the rows, one for each that is not blank. A csv has the
    input's delimiter. The file is there whole or not at all, and only its owner may read it.
    Raises `ReportRefused` where results and rows do not match, `SpreadsheetChanged`, and as
    `new_table` does.
    """
    if path.exists() and path.samefile(table.path):
        raise ReportRefused(
            f"{path} is the input itself, which is never written over",
            action="Give the report another name.",
        )
    suffix, pairs = path.suffix.lower(), _pairs(table, results)
    try:
        with new_table(path, "a report") as file:
            if suffix == WORKBOOK_SUFFIX:
                _write_sheet(file, path, table, pairs)
            else:
                delimiter = "\t" if suffix == ".tsv" else table.delimiter or ","
                write_rows(file, delimiter, _text_rows(table.headings, pairs))
    finally:
        # The report is the last that reads the table.
        table.release()


def _pairs(table: Spreadsheet, results: Iterable[RowResult]) -> _Pairs:
    """Each row with its result; refuses results that do not match the rows."""
    given = iter(results)
    for row in table.rows():
        if row.is_blank:
            yield row, None
            continue
        result = next(given, None)
        if result is None or result.number != row.number:
            found = "none" if result is None else f"that of row {result.number}"
            raise ReportRefused(
                f"{table.path}: the next result should be that of row {row.number}, and is {found}"
            )
        yield row, result
    if (result := next(given, None)) is not None:
        raise ReportRefused(
            f"{table.path}: row {result.number} has a result and is not there, or has two"
        )


def _text_rows(headings: tuple[str, ...], pairs: _Pairs) -> Iterator[Sequence[Any]]:
    width = len(headings)
    yield [*map(mark, headings), *REPORT_HEADINGS]
    for row, result in pairs:
        if result is None:
            yield [""] * (width + len(REPORT_HEADINGS))
            continue
        if row.flaws or row.missing or len(row.cells) != width:
            own = [_stand_in(row, i, width) or _text_cell(c) for i, c in enumerate(row.cells)]
        else:
            # The plain case needs to be fast: there may be a million of them.
            own = list(map(_text_cell, row.cells))
        number, *rest = _report_cells(result)
        # Cells that no heading stands above come behind everything else, as they did.
        yield [*own[:width], number, *map(mark, rest), *own[width:]]


def _text_cell(cell: Cell) -> str:
    # A number is no text that could be mistaken for a formula.
    return mark(cell) if isinstance(cell, str) else text_of(cell)


# -- Workbooks -------------------------------------------------------------------------------------
# Text is written as text, in cells that say so, and so no cell has a formula; where a text looks
# like one, the cell also says that it was typed behind an apostrophe, so that it stays text when
# somebody edits it.
#
# The library writes the workbook without its rows: styles, widths, comments. The rows are put in as
# XML here, since an object for each cell takes ten times as long as reading the file does.


_TEXT_CHARACTERS_MAX = 32_767
"""As much text as a workbook's cell holds."""

_COMMENTS_MAX = 10_000
"""Beyond so many comments workbooks open slowly; the further problems have their colour alone, and
all of them stand in `_problem`.
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
_DATE_FORMATS: Mapping[type, str] = {
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    datetime: "yyyy-mm-dd h:mm:ss",
}
_COLOR_OF = {outcome: color for color, outcomes in _COLORS.items() for outcome in outcomes}
# XML cannot hold some characters, and changes others when it is read: they are written by number,
# as workbooks do, and so is text that looks like such a number.
_NOT_IN_XML = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]")
_BY_NUMBER = re.compile(rf"{_NOT_IN_XML.pattern}|_(?=x[0-9A-Fa-f]{{4}}_)")
_ANY = re.compile(".", re.DOTALL)
_SHEET_PART = "xl/worksheets/sheet1.xml"
_ROWS = re.compile(rb"<sheetData\s*/>|<sheetData>.*</sheetData>", re.DOTALL)
# Of the rows that the library knows, which are those with comments.
_SIZE = re.compile(rb"<dimension [^>]*/>")
_PACKING = 1
"""Level of compression: the next ones take twice the time and save a fifth of the bytes."""

_CELLS_REMEMBERED, _TEXTS_REMEMBERED = 10_000, 1_000
_PIECE_BYTES = 256 * 1024
_LARGE_BYTES = 32 * 1024 * 1024
"""The sheet of a larger input may pass 2 GiB, which a zip must announce before it is written."""


def _write_sheet(file: IO[bytes], path: Path, table: Spreadsheet, pairs: _Pairs) -> None:
    """Write the one sheet. Raises `ReportRefused` for text that no cell can hold."""
    sheet = _ReportSheet(path, table.headings)
    is_large = table.path.stat().st_size > _LARGE_BYTES
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_PACKING) as archive:
        packed = archive.open(_SHEET_PART, "w", force_zip64=is_large)
        # Rows are packed many at a time.
        with io.BufferedWriter(cast("io.RawIOBase", packed), _PIECE_BYTES) as part:
            before, _ = _ROWS.split(sheet.parts()[_SHEET_PART])
            part.write(_SIZE.sub(b"", before) + b"<sheetData>")
            part.write(sheet.heading_row().encode())
            for row, result in pairs:
                part.write(sheet.row(row, result).encode())
            parts = sheet.parts()
            _, behind = _ROWS.split(parts.pop(_SHEET_PART))
            part.write(b"</sheetData>" + behind)
        for name, content in parts.items():
            archive.writestr(name, content)


class _TextTooLong(Exception):
    """A text that no cell of a workbook can hold."""


class _ReportSheet:
    """One workbook's report: its rows as XML, and the parts around them.

    A cell is the XML behind its place, so that a text that comes again is made once.
    """

    def __init__(self, path: Path, headings: Sequence[str]) -> None:
        self._path, self._headings = path, headings
        self._index = {heading: index for index, heading in enumerate(headings)}
        self._letters = [letter(i) for i in range(len(headings) + len(REPORT_HEADINGS))]
        self._book = Workbook()
        self._book.properties.creator = _AUTHOR
        sheet = self._book.active
        assert isinstance(sheet, Worksheet)
        self._sheet = sheet
        sheet.title, sheet.freeze_panes = "Report", "A2"
        widths = [*[_OWN_WIDTH] * len(headings), *_WIDTHS.values()]
        for letters, width in zip(self._letters, widths, strict=True):
            sheet.column_dimensions[letters].width = width
        self._comments = 0
        self._style = cache(self._new_style)
        self._text = lru_cache(_TEXTS_REMEMBERED)(self._new_text)
        # A truth value is no number, though Python calls them equal.
        self._cell = lru_cache(_CELLS_REMEMBERED, typed=True)(self._new_cell)

    def parts(self) -> dict[str, bytes]:
        """The workbook's parts as the library writes them, without the rows."""
        written = io.BytesIO()
        self._book.save(written)
        with zipfile.ZipFile(written) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def heading_row(self) -> str:
        """The first row."""
        texts = (*self._headings, *REPORT_HEADINGS)
        return self._row(1, [self._text(mark_text_cell(each), is_bold=True) for each in texts])

    def row(self, row: SheetRow, result: RowResult | None) -> str:
        """A row: its own cells, its result, and those that no heading stands above."""
        if result is None:
            return self._row(row.number, ())
        own = self._own_cells(row)
        for problem in result.problems:
            index = self._index.get(problem.column or "")
            if index is not None:
                own[index] = self._own(row, index, _WRONG)
                self._comment(row.number, index, problem)
        number, outcome, *words = _report_cells(result)
        code, problems, fixes, identity = map(mark_text_cell, words)
        width = len(self._headings)
        cells = [
            *own[:width],
            _value("n", number),
            self._text(outcome, _COLOR_OF[result.outcome]),
            self._text(code),
            self._text(problems, wraps=True),
            self._text(fixes, wraps=True),
            self._text(identity),
            *own[width:],
        ]
        return self._row(row.number, cells)

    def _row(self, number: int, cells: Sequence[str]) -> str:
        while len(self._letters) < len(cells):
            self._letters.append(letter(len(self._letters)))
        placed = zip(self._letters, cells, strict=False)
        joined = "".join([f'<c r="{letters}{number}"{cell}' for letters, cell in placed])
        return f'<row r="{number}">{joined}</row>'

    def _own_cells(self, row: SheetRow) -> list[str]:
        """The input's cells."""
        if not (row.flaws or row.missing or len(row.cells) != len(self._headings)):
            # The plain case needs to be fast: there may be a million of them.
            with suppress(_TextTooLong):
                return list(map(self._cell, row.cells))
        return [self._own(row, index) for index in range(len(row.cells))]

    def _own(self, row: SheetRow, index: int, color: str | None = None) -> str:
        """One of the input's cells, or what stands in for it."""
        if (stand_in := _stand_in(row, index, len(self._headings))) is not None:
            return self._text(stand_in, color)
        if index in row.flaws:
            return _value("e", escape(row.flaws[index][1]), self._style(None, color))
        try:
            return self._cell(row.cells[index], color)
        except _TextTooLong:
            raise ReportRefused(
                f"{self._path}: cell {letter(index)}{row.number} of the input has more text than a"
                " workbook's cell can hold",
                action="Write the report as csv.",
            ) from None

    def _new_cell(self, value: Cell, color: str | None = None) -> str:
        """A cell of the type that its value has."""
        match value:
            case str():
                return self._new_text(mark_text_cell(value), color)
            case bool():
                return _value("b", int(value), self._style(None, color))
            case int() | float():
                return _value("n", value, self._style(None, color))
        days = to_excel(value)  # type: ignore[no-untyped-call]
        return _value("n", days, self._style(_DATE_FORMATS[type(value)], color))

    def _new_text(
        self, text: str, color: str | None = None, *, is_bold: bool = False, wraps: bool = False
    ) -> str:
        """A cell of text, which its type keeps from being a formula."""
        style = self._style("@", color, is_bold, wraps, is_hazard(text))
        if not text:
            return f' s="{style}" t="inlineStr"/>'
        # Blanks that stand alone would be dropped by whoever reads the XML.
        bare = text.strip()
        by_number = _BY_NUMBER if bare else _ANY
        written = by_number.sub(lambda found: f"_x{ord(found.group()):04X}_", text)
        if len(written) > _TEXT_CHARACTERS_MAX:
            raise _TextTooLong
        keeps = ' xml:space="preserve"' if bare != text else ""
        return f' s="{style}" t="inlineStr"><is><t{keeps}>{escape(written)}</t></is></c>'

    def _new_style(
        self,
        number_format: str | None,
        color: str | None,
        is_bold: bool = False,
        wraps: bool = False,
        is_quoted: bool = False,
    ) -> int:
        """The number of a style, which the library gives to cells that look so."""
        cell = WriteOnlyCell(self._sheet)
        if number_format is not None:
            cell.number_format = number_format
        if color is not None:
            cell.fill = PatternFill("solid", fgColor=color)
        if is_bold:
            cell.font = Font(bold=True)
        if wraps:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
        if is_quoted:
            cell.quotePrefix = True
        return int(cell.style_id)

    def _comment(self, number: int, index: int, problem: Problem) -> None:
        """Say at the cell what is wrong with it."""
        cell = self._sheet.cell(number, index + 1)
        lines = "\n".join(part for part in (problem.message, problem.fix) if part)
        lines = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", lines)[:_COMMENT_CHARACTERS_MAX]
        if cell.comment is not None:
            cell.comment.text += f"\n{lines}"
        elif self._comments < _COMMENTS_MAX:
            self._comments += 1
            cell.comment = Comment(lines, _AUTHOR, height=120, width=320)


def _value(kind: str, value: object, style: int = 0) -> str:
    """A cell that is no text. All digits of a number are written."""
    return f' s="{style}" t="{kind}"><v>{value}</v></c>'
