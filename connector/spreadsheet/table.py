"""A table, from a csv, tsv, txt or xlsx: headings, and rows that stream.

Opening reads the whole file once or twice: to know its encoding and its delimiter for certain, or
to measure a workbook. `rows` reads it again each time, and refuses if it is not the same file any
more. The meaning of cells is not known here; all text is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from connector.errors import HeadingsRefused, Misused, NoRows, NotASpreadsheet, count_noun
from connector.spreadsheet import delimited, workbook
from connector.spreadsheet.columns import Columns, letter, read_headings
from connector.spreadsheet.problems import (
    Cell,
    Flaw,
    Problem,
    SheetRow,
    is_blank,
    problem_of,
    text_of,
)
from connector.spreadsheet.source_file import SourceFile, find
from connector.spreadsheet.texts import EMPTY, MISSING, NOT_CALCULATED, unmark

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
WORKBOOK_SUFFIX = ".xlsx"

CELL_CHARACTERS_MAX = 1_000_000
"""A longer cell is a problem: no field of the API takes so much, and no spreadsheet shows it."""

_NO_FLAWS: Mapping[int, Flaw] = {}


@dataclass(frozen=True)
class Spreadsheet:
    """A table that was opened.

    `kind` is tsv for text whose cells are parted by tabs. `headings` are the input's own, as they
    stand in the file; of a report (`is_report`), those of the table that it reports on. `sheet` is
    a workbook's, and `merged` the first of its ranges whose cells are merged: only the first cell
    of each has a value. `encoding`, `delimiter` (one character) and `samples` (cells with letters
    beyond ASCII) are a text's. `is_encoding_guessed` says that the encoding was neither given, nor
    marked, nor proven by the bytes. `digest` is the SHA-256 of the file, in hexadecimal digits.
    """

    path: Path
    kind: Literal["csv", "tsv", "xlsx"]
    headings: tuple[str, ...]
    digest: str
    is_report: bool
    _read: Callable[[], Iterator[SheetRow]] = field(repr=False)
    sheet: str | None = None
    merged: tuple[str, ...] = ()
    encoding: str | None = None
    is_encoding_guessed: bool = False
    samples: tuple[str, ...] = ()
    delimiter: str | None = None

    def rows(self) -> Iterator[SheetRow]:
        """Every row below the headings, in order, blank ones too; may be called again.

        A text's rows are read one by one; a workbook's sheet is in memory meanwhile. Raises
        `SpreadsheetChanged` if the file is not the same any more, `DamagedSpreadsheet`.
        """
        return self._read()

    def release(self) -> None:
        """Free the memory of a workbook's values, which can be read again."""
        if self.kind == "xlsx":
            workbook.forget_sheet()


def open_table(
    path: Path,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Spreadsheet:
    """Open the table in a csv, tsv, txt or xlsx, whose first row has the headings.

    `sheet` names a workbook's sheet, without regard to case; without it, the only visible one with
    anything in it is meant. `encoding` and `delimiter` (by character or name) are for text; without
    them they are what fits the whole file. Raises a `SpreadsheetError` whose message names the
    file and the place, `UnknownName`, or `Misused` for an option of the other kind.
    """
    source = find(path)
    suffix = path.suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise NotASpreadsheet(
            f"{path}: a table is a csv, tsv, txt or xlsx, not {suffix or path.name!r}"
        )
    if not source.size:
        raise NotASpreadsheet(f"{path} is empty", action="Check that it was saved whole.")
    if suffix == WORKBOOK_SUFFIX:
        _refuse_options(path, "a workbook", {"--encoding": encoding, "--delimiter": delimiter})
        return _open_workbook(source, sheet)
    _refuse_options(path, "text", {"--sheet": sheet})
    return _open_text(source, encoding, delimiter)


def _refuse_options(path: Path, what: str, options: Mapping[str, str | None]) -> None:
    for name, value in options.items():
        if value is not None:
            raise Misused(
                f"{path} is {what}, and {name} says nothing of it", action=f"Leave out {name}."
            )


def _open_text(source: SourceFile, encoding: str | None, delimiter: str | None) -> Spreadsheet:
    with source.open() as file:
        if file.read(4) in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF"):
            raise NotASpreadsheet(f"{source.path} is no text, whatever its name")
    encoded = delimited.recognise(source, encoding)
    fit = delimited.settle(source, encoded, delimiter)
    columns = read_headings(source.path, fit.first_row)
    if fit.filled > columns.count and not columns.is_report:
        raise _without_heading(source.path, columns.count)
    form = RowForm(columns, fit.full_width)

    def rows() -> Iterator[SheetRow]:
        reading = delimited.records(source, encoded, fit.delimiter)
        next(reading, None)
        for number, (_, cells) in enumerate(reading, 2):
            yield form.row(number, cells, None)

    return Spreadsheet(
        path=source.path,
        kind="tsv" if fit.delimiter == "\t" else "csv",
        headings=columns.headings,
        digest=source.digest(),
        is_report=columns.is_report,
        _read=rows,
        encoding=encoded.name,
        is_encoding_guessed=encoded.is_guessed,
        samples=encoded.samples,
        delimiter=fit.delimiter,
    )


def _open_workbook(source: SourceFile, name: str | None) -> Spreadsheet:
    sheet = workbook.find_sheet(source, name)
    reading = sheet.rows()
    _, first, _ = next(reading, (0, [], {}))
    columns = read_headings(source.path, [text_of(cell) for cell in first])
    _check_below(source, sheet, columns, reading)
    form = RowForm(columns, max(sheet.outline.columns, columns.count))

    def rows() -> Iterator[SheetRow]:
        reading = sheet.rows()
        next(reading, None)
        for index, cells, flaws in reading:
            yield form.row(index + 1, cells, flaws)

    return Spreadsheet(
        path=source.path,
        kind="xlsx",
        headings=columns.headings,
        digest=source.digest(),
        is_report=columns.is_report,
        _read=rows,
        sheet=sheet.name,
        merged=tuple(sheet.outline.merged),
    )


def _check_below(
    source: SourceFile,
    sheet: workbook.SheetFile,
    columns: Columns,
    rows: Iterator[workbook.ReadRow],
) -> None:
    """Refuse a sheet without rows, or with cells that no heading stands above."""
    may_be_wider = sheet.outline.columns > columns.count and not columns.is_report
    is_filled = False
    for _, cells, _ in rows:
        is_filled = is_filled or any(cell != "" for cell in cells)
        if may_be_wider and any(cell != "" for cell in cells[columns.count :]):
            raise _without_heading(source.path, columns.count)
        if is_filled and not may_be_wider:
            return
    if not is_filled:
        raise NoRows(f"{source.path}, sheet {sheet.name!r}, has headings and no row below them")


def _without_heading(path: Path, index: int) -> HeadingsRefused:
    return HeadingsRefused(
        f"{path}: in column {letter(index)} or further right, behind the last heading, there are"
        " cells below an empty one"
    )


# -- Form of rows ----------------------------------------------------------------------------------
# A row has as many cells as there are headings, and each cell is one that can be read. Nothing is
# dropped here and nothing is put right: a row of another form is a row with problems.


@dataclass(frozen=True, slots=True)
class RowForm:
    """The form that a table's rows should have.

    `full_width` is how many cells a row may have where those behind the last heading are empty.
    """

    columns: Columns
    full_width: int

    def row(self, number: int, cells: Sequence[Cell], flaws: Mapping[int, Flaw] | None) -> SheetRow:
        """The row of these cells. `flaws` are those that a workbook shows, by column."""
        own, count = len(self.columns.headings), self.columns.count
        if len(cells) == count and not flaws and not self.columns.is_report:
            # The plain case comes first: there may be a million of them.
            kept = tuple(cells)
            problems = self._too_long(kept) if _size(kept) > CELL_CHARACTERS_MAX else ()
            return SheetRow(number, kept, problems, _NO_FLAWS)
        if is_blank(cells):
            return SheetRow(number, ("",) * own, (), _NO_FLAWS)
        behind = list(cells[count:])
        if len(cells) <= self.full_width:
            while behind and behind[-1] == "":
                behind.pop()
        mine = [*cells[:own], *behind]
        kinds = dict(flaws or {})
        if self.columns.is_report:
            mine = self._originals(mine, kinds)
        width = len(mine)
        missing = max(0, own - width)
        mine.extend([""] * missing)
        problems = (*self._width(width), *self._flawed(kinds), *self._too_long(mine))
        return SheetRow(number, tuple(mine), problems, kinds, missing)

    def _originals(self, cells: list[Cell], flaws: dict[int, Flaw]) -> list[Cell]:
        """A report's cells as they were before it was written."""
        while cells and cells[-1] == MISSING:
            cells.pop()
        own = len(self.columns.headings)
        originals: list[Cell] = []
        for index, cell in enumerate(cells):
            original = cell
            if isinstance(cell, str) and index not in flaws:
                original = unmark(cell)
                if cell == EMPTY and index >= own:
                    original = ""
                elif cell.startswith(NOT_CALCULATED):
                    original = cell.removeprefix(NOT_CALCULATED)
                    flaws[index] = ("not_calculated", original)
            originals.append(original)
        return originals

    def _width(self, width: int) -> Iterator[Problem]:
        own = len(self.columns.headings)
        if width != own:
            yield problem_of(
                "row_width",
                f"The row has {count_noun(width, 'cell')} and there are {own} headings.",
                received=count_noun(width, "cell"),
                allowed=count_noun(own, "cell"),
                fix='Put each cell below its heading; in a csv, put quotes (") around a cell that'
                " holds the delimiter.",
            )

    def _flawed(self, flaws: Mapping[int, Flaw]) -> Iterator[Problem]:
        for index, (kind, what) in sorted(flaws.items()):
            code = "spreadsheet_error" if kind == "error" else "formula_without_value"
            yield problem_of(code, None, self._heading(index), received=what, allowed="a value")

    def _too_long(self, cells: Sequence[Cell]) -> tuple[Problem, ...]:
        return tuple(
            problem_of(
                "cell_too_long",
                f"The cell has {len(cell):,} characters.",
                self._heading(index),
                received=cell,
                allowed=f"at most {CELL_CHARACTERS_MAX:,} characters",
            )
            for index, cell in enumerate(cells)
            if isinstance(cell, str) and len(cell) > CELL_CHARACTERS_MAX
        )

    def _heading(self, index: int) -> str | None:
        """The heading above the cell; None for a cell behind the last."""
        headings = self.columns.headings
        return headings[index] if index < len(headings) else None


def _size(cells: Sequence[Cell]) -> int:
    """The characters of all cells together."""
    return len("".join(map(str, cells)))
