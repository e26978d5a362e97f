"""Table in a csv, tsv, txt, xlsx, xls or ods file: its headings and its rows.

Opening reads the whole file once or twice: to detect its encoding, its delimiter and the position
of its table, or to measure a workbook. The content determines the format, not the name. `rows`
reads the file again each time, and raises an error if it has changed. This module does not
interpret cells; all text is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal

from connector.errors import (
    ConnectorError,
    DamagedSpreadsheet,
    Misused,
    SpreadsheetError,
    count_noun,
)
from connector.ledger.push_plan import Problem
from connector.spreadsheet import delimited, workbook
from connector.spreadsheet.columns import (
    LOOKED_AT,
    Columns,
    HeadingRows,
    LeftOutRows,
    NonTableRowMarker,
    find_headings,
    read_headings,
)
from connector.spreadsheet.delimited import QuoteDamage
from connector.spreadsheet.legacy_workbooks import LegacySheet, find_ods, find_xls
from connector.spreadsheet.problems import (
    Cell,
    FileQuestion,
    Flaw,
    SheetRow,
    is_blank,
    problem_of,
    text_of,
)
from connector.spreadsheet.source_file import BookKind, SourceFile, detect_kind, open_source
from connector.spreadsheet.texts import EMPTY, MISSING, NOT_CALCULATED, unescape_cell
from connector.spreadsheet.workbook import SheetFile

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
WORKBOOK_SUFFIX = ".xlsx"

CELL_CHARACTERS_MAX = 1_000_000
"""Maximum length of a cell; no field of the API and no spreadsheet program accepts more."""

BOOK_SUFFIXES = (WORKBOOK_SUFFIX, ".xlsm", ".xls", ".ods")
"""Suffixes of workbooks that can be read; only xlsx can be written."""

_HEADINGS_SHOWN = 6
_FLAW_CODES = {
    "error": "spreadsheet_error",
    "not_calculated": "formula_without_value",
    "unreadable": "unreadable_cell",
}
_SIGNS = frozenset("'(")
"""First characters of cells that a report has changed."""

_NO_FLAWS: Mapping[int, Flaw] = {}


@dataclass(frozen=True)
class Spreadsheet:
    """Table of an opened file.

    Attributes:
        kind: Format. tsv is any text with tabs as delimiter.
        headings: Headings of the input. A report (`is_report`) has the headings of its table.
        digest: SHA-256 of the file, in hexadecimal digits.
        rows: Yields every row below the headings, in order, including blank ones. Rows of a text
            are read one by one; the sheet of a workbook is kept in memory. Raises
            `SpreadsheetChanged` if the file has changed, or `DamagedSpreadsheet`.
        sheet: Name of a workbook's sheet.
        merged_ranges: First ranges of merged cells; only the first cell of a range has a value.
        hidden_headings: Headings of hidden columns.
        delimiter: Delimiter of a text (one character).
        heading_rows: Rows that contain the headings, and their position.
        notices: Sentences on what was assumed.
        questions: Questions that the user has to answer.
        left_out: Rows that do not belong to the table, once the rows have been read.
    """

    path: Path
    kind: Literal["csv", "tsv", "xlsx", "xls", "ods"]
    headings: tuple[str, ...]
    digest: str
    is_report: bool
    rows: Callable[[], Iterator[SheetRow]] = field(repr=False)
    sheet: str | None = None
    merged_ranges: tuple[str, ...] = ()
    hidden_headings: tuple[str, ...] = ()
    encoding: str | None = None
    delimiter: str | None = None
    heading_rows: HeadingRows = field(default_factory=lambda: HeadingRows(()))
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()
    left_out: LeftOutRows = field(default_factory=LeftOutRows, repr=False)

    def release(self) -> None:
        """Free the memory of a workbook's values, which can be read again."""
        if self.kind == "xlsx":
            workbook.release_loaded_sheet()


def open_table(
    path: Path,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    header_row: int | None = None,
) -> Spreadsheet:
    """Open the table in a csv, tsv, txt, xlsx, xls or ods file.

    Args:
        path: File to open.
        sheet: Sheet of a workbook, ignoring letter case. Default: the only visible sheet with a
            table.
        encoding: Encoding of a text. Default: detected in the whole file.
        delimiter: Delimiter of a text, as a character or a name. Default: detected.
        header_row: Row of the headings, numbered as in spreadsheet programs. Default: detected.

    Raises:
        SpreadsheetError: The file cannot be read. The message names the file and the place.
        UnknownName: The encoding or the delimiter is unknown.
        Misused: An option does not apply to the format.
    """
    source = open_source(path)
    if not source.size:
        raise SpreadsheetError(
            f"{path} is empty",
            action="Check that it was saved completely.",
            code="not_a_spreadsheet",
        )
    suffix = path.suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, *BOOK_SUFFIXES):
        raise SpreadsheetError(
            f"{path}: a table is a csv, tsv, txt, xlsx, xls or ods, not {suffix or path.name!r}",
            code="not_a_spreadsheet",
        )
    with _ErrorContext(path):
        kind = detect_kind(source)
        if kind != "text":
            _refuse_options(path, "a workbook", {"--encoding": encoding, "--delimiter": delimiter})
            return _open_workbook(source, kind, sheet, header_row)
        _refuse_options(path, "text", {"--sheet": sheet})
        return _open_text(source, encoding, delimiter, header_row)


class _ErrorContext:
    """Context that converts a library's errors to `DamagedSpreadsheet` with file, sheet and row."""

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        self._where = str(path) if sheet is None else f"{path}, sheet {sheet!r}"
        self.row: int | None = None

    def __enter__(self) -> _ErrorContext:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ConnectorError | MemoryError) or kind is None:
            return
        # A panic of a library in Rust is not a subclass of Exception.
        if issubclass(kind, Exception) or kind.__name__ == "PanicException":
            row = "" if self.row is None else f", row {self.row + 1}"
            raise DamagedSpreadsheet(
                f"{self._where}{row} cannot be read: the content is damaged or unusual"
                f" ({kind.__name__})",
                action="Copy the table to a new workbook or save it as csv, and use that file.",
            ) from error


def _refuse_options(path: Path, format_name: str, options: Mapping[str, str | None]) -> None:
    """Raise `Misused` if one of the options has a value, because the file is `format_name`."""
    for name, value in options.items():
        if value is not None:
            raise Misused(
                f"{path} is {format_name}, so {name} cannot be used", action=f"Leave out {name}."
            )


def _open_text(
    source: SourceFile, encoding: str | None, delimiter: str | None, header_row: int | None
) -> Spreadsheet:
    """Return the table in a text file; what the user did not give is detected."""
    encoded = delimited.detect_encoding(source, encoding)
    fit = delimited.detect_delimiter(source, encoded, delimiter, header_row)
    heading_rows = fit.heading_rows
    columns = read_headings(source.path, heading_rows.headings, fit.filled_columns)
    left_out = LeftOutRows()

    def rows() -> Iterator[SheetRow]:
        outside = NonTableRowMarker(columns.headings, left_out)
        form = RowBuilder(columns, max(fit.max_width, columns.count), outside)
        reading = delimited.read_rows(source, encoded, fit.delimiter, fit.shape)
        with _ErrorContext(source.path) as progress:
            for number, (_, cells, damage) in enumerate(reading, 1):
                if number > heading_rows.first_row:
                    yield form.build(number, cells, None, damage)
                progress.row = number

    return Spreadsheet(
        path=source.path,
        kind="tsv" if fit.delimiter == "\t" else "csv",
        headings=columns.headings,
        digest=source.digest(),
        is_report=columns.is_report,
        rows=lambda: _mark_split_rows(rows()),
        encoding=encoded.name,
        delimiter=fit.delimiter,
        heading_rows=heading_rows,
        notices=(*encoded.notices, *_heading_notices(heading_rows, columns)),
        questions=encoded.questions,
        left_out=left_out,
    )


def _mark_split_rows(rows: Iterator[SheetRow]) -> Iterator[SheetRow]:
    """Yield the rows, and mark rows that are next to a line with a single cell.

    A line break within a row splits it in two lines. If it is in the first or the last cell, one of
    the lines has all cells of a row, and the other has one.
    """
    before = next(rows, None)
    for row in rows:
        assert before is not None
        if row.missing_cells or before.missing_cells:
            if _has_single_cell(row) and not before.is_left_out:
                before = replace(before, may_be_split=True)
            elif _has_single_cell(before) and not row.is_left_out:
                row = replace(row, may_be_split=True)  # noqa: PLW2901 # the same row, marked
        yield before
        before = row
    if before is not None:
        yield before


def _has_single_cell(row: SheetRow) -> bool:
    """Return True if the line has one cell of several and is no total or note."""
    return 0 < row.missing_cells == len(row.cells) - 1 and not row.is_left_out


_FINDERS: Mapping[str, Callable[[SourceFile, str | None], SheetFile | LegacySheet]] = {
    "xlsx": workbook.find_sheet,
    "xls": find_xls,
    "ods": find_ods,
}


def _open_workbook(
    source: SourceFile, kind: BookKind, name: str | None, header_row: int | None
) -> Spreadsheet:
    """Return the table in a workbook, in the sheet `name` or in the only one with a table."""
    sheet = _FINDERS[kind](source, name)
    first = [
        [text_of(cell) for cell in cells]
        for _, cells, _ in islice(sheet.rows(), header_row or LOOKED_AT)
    ]
    heading_rows = find_headings(first, header_row)
    columns = _columns_of(source, sheet, heading_rows)
    left_out, hidden = LeftOutRows(), sheet.outline.hidden_rows

    def rows() -> Iterator[SheetRow]:
        outside = NonTableRowMarker(columns.headings, left_out)
        form = RowBuilder(columns, max(sheet.outline.columns, columns.count), outside)
        with _ErrorContext(source.path, sheet.name) as progress:
            for index, cells, flaws in islice(sheet.rows(), heading_rows.first_row, None):
                row = form.build(index + 1, cells, flaws)
                yield replace(row, is_hidden=True) if index in hidden else row
                progress.row = index + 1

    return Spreadsheet(
        path=source.path,
        kind=kind,
        headings=columns.headings,
        digest=source.digest(),
        is_report=columns.is_report,
        rows=rows,
        sheet=sheet.name,
        merged_ranges=tuple(sheet.outline.merged_ranges),
        hidden_headings=tuple(
            heading
            for index, heading in enumerate(columns.headings)
            if index in sheet.outline.hidden_columns
        ),
        heading_rows=heading_rows,
        notices=tuple(_heading_notices(heading_rows, columns)),
        left_out=left_out,
    )


def _heading_notices(heading_rows: HeadingRows, columns: Columns) -> Iterator[str]:
    """Yield a sentence if the headings are not in the first row alone."""
    if not heading_rows.is_first:
        rows = f"row {heading_rows.index + 1}"
        if heading_rows.depth > 1:
            rows = f"rows {heading_rows.index + 1} and {heading_rows.first_row}, combined"
        shown = ", ".join(columns.headings[:_HEADINGS_SHOWN])
        yield f"The headings are read from {rows}: {shown} (change this with --header-row)."


def _columns_of(
    source: SourceFile, sheet: SheetFile | LegacySheet, heading_rows: HeadingRows
) -> Columns:
    """Return the columns of a sheet; columns with cells beyond the headings are added.

    Raises `SpreadsheetError` if no row is below the headings, and as `read_headings` does.
    """
    columns = read_headings(source.path, heading_rows.headings)
    may_be_wider = sheet.outline.columns > columns.count and not columns.is_report
    is_filled, filled = False, columns.count
    for _, cells, _ in islice(sheet.rows(), heading_rows.first_row, None):
        is_filled = is_filled or any(cell != "" for cell in cells)
        if is_filled and not may_be_wider:
            return columns
        while filled < len(cells) and any(cell != "" for cell in cells[filled:]):
            filled += 1
    if not is_filled:
        raise SpreadsheetError(
            f"{source.path}, sheet {sheet.name!r}, has headings and no row below them",
            code="no_rows",
        )
    return read_headings(source.path, heading_rows.headings, filled) if may_be_wider else columns


# -- Shape of rows ---------------------------------------------------------------------------------
# A row has as many cells as there are headings, and each cell can be read. No cell is dropped or
# corrected here: a row of another shape is a row with problems.


@dataclass(frozen=True, slots=True)
class RowBuilder:
    """Builds the rows of a table from their cells, with problems for rows of another shape.

    `max_width` is the maximum number of cells of a row if the cells after the last heading are
    empty. `outside` finds the rows that do not belong to the table.
    """

    columns: Columns
    max_width: int
    outside: NonTableRowMarker

    def build(
        self,
        number: int,
        cells: Sequence[Cell],
        flaws: Mapping[int, Flaw] | None,
        damage: QuoteDamage | None = None,
    ) -> SheetRow:
        """Return the row of these cells; `flaws` are by column index.

        After a wrong quote (`damage`) the cells may belong to other columns, so the row has one
        problem.
        """
        row = self._build_without_damage(number, cells, flaws)
        if damage is not None and not is_blank(row.cells):
            return replace(row, problems=(_quote_problem(number, damage),))
        return row if self.columns.is_report else self.outside.mark(row)

    def _build_without_damage(
        self, number: int, cells: Sequence[Cell], flaws: Mapping[int, Flaw] | None
    ) -> SheetRow:
        """Return the row with as many cells as headings, and problems with its width and cells."""
        own, count = len(self.columns.headings), self.columns.count
        record = ""
        if self.columns.is_report and len(cells) >= count:
            record = unescape_cell(text_of(cells[count - 1])).strip()
        if len(cells) == count and not flaws:
            # The plain case comes first: there may be a million rows.
            found: dict[int, Flaw] = {}
            kept_cells = tuple(
                self._restore_report_cells([*cells[:own]], found)
                if self.columns.is_report
                else cells
            )
            if not found and len(kept_cells) == own:
                is_long = _longest_text(kept_cells) > CELL_CHARACTERS_MAX
                problems = self._length_problems(kept_cells) if is_long else ()
                return SheetRow(number, kept_cells, problems, _NO_FLAWS, record_id=record)
        if is_blank(cells):
            return SheetRow(number, ("",) * own, (), _NO_FLAWS)
        behind = list(cells[count:])
        if len(cells) <= self.max_width:
            while behind and behind[-1] == "":
                behind.pop()
        own_cells = [*cells[:own], *behind]
        kinds = dict(flaws or {})
        if self.columns.is_report:
            own_cells = self._restore_report_cells(own_cells, kinds)
        width = len(own_cells)
        missing = max(0, own - width)
        own_cells.extend([""] * missing)
        problems = (
            *self._width_problems(width),
            *self._flaw_problems(kinds),
            *self._length_problems(own_cells),
        )
        return SheetRow(number, tuple(own_cells), problems, kinds, missing, record_id=record)

    def _restore_report_cells(self, cells: list[Cell], flaws: dict[int, Flaw]) -> list[Cell]:
        """Replace the cells of a report by those of the input, and return them; may add flaws."""
        while cells and cells[-1] == MISSING:
            cells.pop()
        own = len(self.columns.headings)
        for index, cell in enumerate(cells):
            if isinstance(cell, str) and cell[:1] in _SIGNS and index not in flaws:
                original = unescape_cell(cell)
                if cell == EMPTY and index >= own:
                    original = ""
                elif cell.startswith(NOT_CALCULATED):
                    original = cell.removeprefix(NOT_CALCULATED)
                    flaws[index] = ("not_calculated", original)
                cells[index] = original
        return cells

    def _width_problems(self, width: int) -> Iterator[Problem]:
        """Yield a problem if the number of cells differs from the number of headings."""
        own = len(self.columns.headings)
        if width != own:
            yield problem_of(
                "row_width",
                f"The row has {count_noun(width, 'cell')}, but the file has"
                f" {count_noun(own, 'column')}.",
                received=count_noun(width, "cell"),
            )

    def _flaw_problems(self, flaws: Mapping[int, Flaw]) -> Iterator[Problem]:
        """Yield a problem for each cell without a value."""
        for index, (kind, content) in sorted(flaws.items()):
            yield problem_of(_FLAW_CODES[kind], None, self._heading(index), received=content)

    def _length_problems(self, cells: Sequence[Cell]) -> tuple[Problem, ...]:
        """Return a problem for each text that is longer than any field allows."""
        return tuple(
            problem_of(
                "cell_too_long",
                f"The text has {len(cell):,} characters, which no field allows.",
                self._heading(index),
                received=cell,
                fix=f"Shorten the text to at most {CELL_CHARACTERS_MAX:,} characters.",
            )
            for index, cell in enumerate(cells)
            if isinstance(cell, str) and len(cell) > CELL_CHARACTERS_MAX
        )

    def _heading(self, index: int) -> str | None:
        """Return the heading above the cell; None for a cell after the last heading."""
        headings = self.columns.headings
        return headings[index] if index < len(headings) else None


def _quote_problem(number: int, damage: QuoteDamage) -> Problem:
    """Return the problem of row `number`, which a wrong quote in this or another row affects."""
    code, first, last = damage
    if code == "quote_in_cell":
        return problem_of(code)
    if first < last:
        return problem_of(
            code,
            f'A quote (") opens in row {first} and closes in row {last}, so rows {first} '
            f"to {last} cannot be separated.",
            fix=f"Correct the quotes in rows {first} to {last}.",
        )
    if first < number:
        return problem_of(
            code,
            f'A quote (") in row {first} is not closed, so it is not clear where this row begins.',
            fix=f"Correct the quotes in row {first}.",
        )
    return problem_of(code)


def _longest_text(cells: Sequence[Cell]) -> int:
    """Return the number of characters of the longest text."""
    try:
        return max(map(len, cells))  # type: ignore[arg-type] # most rows have texts alone
    except TypeError:
        return max((len(cell) for cell in cells if isinstance(cell, str)), default=0)
