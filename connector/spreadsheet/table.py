"""A table, from a csv, tsv, txt or xlsx: headings, and rows that stream.

Opening reads the whole file once or twice: to know its encoding and its delimiter for certain, or
to measure a workbook. `rows` reads it again each time, and refuses if it is not the same file any
more. What a row's cells mean is not known here; all text is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from connector.engine.push_states import RowOutcome
from connector.errors import HeadingsRefused, Misused, NoRows, NotASpreadsheet, count_noun
from connector.spreadsheet import delimited, workbook
from connector.spreadsheet import delimited as encoding
from connector.spreadsheet.columns import Columns, letter, read_headings
from connector.spreadsheet.row import Cell, Problem, SheetRow
from connector.spreadsheet.source_file import SourceFile, find
from connector.spreadsheet.texts import EMPTY, MISSING, NOT_CALCULATED, unmark
from connector.spreadsheet.workbook import Flaw

# -- Form ------------------------------------------------------------------------------------------
# The form of rows: as many cells as there are headings, and each cell one that can be read.
#
# Nothing is dropped here and nothing is put right. A row that has another form is a row with
# problems; what its cells mean is for others to say.


CELL_CHARACTERS_MAX = 1_000_000
"""A longer cell is a problem: no field of the API takes so much, and no spreadsheet shows it."""

FORM_PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "row_width": "The row has more or fewer cells than there are headings: put each cell below"
        " its heading.",
        "spreadsheet_error": "The cell holds a formula's error, such as #N/A: correct the formula"
        " or clear the cell.",
        "formula_without_value": "The cell holds a formula that was never calculated: open and save"
        " the file in a spreadsheet program, or put in the value.",
        "cell_too_long": "The cell is longer than any field of the API: shorten it.",
    }
)
"""Every code that a row's form gives, with one sentence on what it means and what to do."""

_RECEIVED_CHARACTERS = 80
_NO_FLAWS: Mapping[int, Flaw] = MappingProxyType({})
_OUTCOMES: Mapping[str, RowOutcome] = {each: each for each in get_args(RowOutcome)}


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a report says of one of its rows: how the row ended when it was last pushed.

    `outcome` is None where there is none, as in a row that somebody added to the report.
    """

    number: int | None
    outcome: RowOutcome | None
    code: str | None
    record_id: str | None


@dataclass(frozen=True, slots=True)
class TableRow(SheetRow):
    """A row with what only its file tells: how many cells it really has, which of them have no
    value to read, and its earlier fate.
    """

    width: int = 0
    flaws: Mapping[int, Flaw] = field(default_factory=dict)
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form that a table's rows should have.

    `full_width` is how many cells a row may have where those behind the last heading are empty.
    """

    columns: Columns
    full_width: int

    def row(self, number: int, cells: Sequence[Cell], flaws: Mapping[int, Flaw] | None) -> TableRow:
        """The row of these cells. `flaws` are those that a workbook tells of, by column."""
        own, count = len(self.columns.headings), self.columns.count
        if len(cells) == count and not flaws and not self.columns.is_report:
            # The plain case comes first: there may be a million of them.
            kept = tuple(cells)
            problems = self._too_long(kept) if _size(kept) > CELL_CHARACTERS_MAX else ()
            return TableRow(number, kept, problems, own, _NO_FLAWS)
        if _is_blank(cells):
            return TableRow(number, ("",) * own, (), own, _NO_FLAWS)
        behind = list(cells[count:])
        if len(cells) <= self.full_width:
            while behind and behind[-1] == "":
                behind.pop()
        mine = [*cells[: min(own, len(cells))], *behind]
        kinds = dict(flaws or {})
        earlier = None
        if self.columns.is_report:
            earlier = _earlier(cells[own:count])
            mine = self._originals(mine, kinds)
        width = len(mine)
        mine.extend([""] * (own - width))
        problems = (*self._width(width), *self._flawed(kinds), *self._too_long(mine))
        return TableRow(number, tuple(mine), problems, width, kinds, earlier)

    def _originals(self, cells: list[Cell], flaws: dict[int, Flaw]) -> list[Cell]:
        """A report's cells as they were before it was written."""
        while cells and cells[-1] == MISSING:
            cells.pop()
        own = len(self.columns.headings)
        originals: list[Cell] = []
        for index, cell in enumerate(cells):
            if isinstance(cell, str) and index not in flaws:
                if cell == EMPTY and index >= own:
                    cell = ""  # noqa: PLW2901 # what it stands for
                elif cell.startswith(NOT_CALCULATED):
                    cell = cell[len(NOT_CALCULATED) :]  # noqa: PLW2901 # what it stands for
                    flaws[index] = ("not_calculated", cell)
                else:
                    cell = unmark(cell)  # noqa: PLW2901 # what it stands for
            originals.append(cell)
        return originals

    def _width(self, width: int) -> tuple[Problem, ...]:
        own = len(self.columns.headings)
        if width == own:
            return ()
        return (
            Problem(
                code="row_width",
                message=f"The row has {count_noun(width, 'cell')} and there are {own} headings.",
                received=count_noun(width, "cell"),
                allowed=count_noun(own, "cell"),
                fix='Put each cell below its heading; in a csv, put quotes (") around a cell that'
                " holds the delimiter.",
            ),
        )

    def _flawed(self, flaws: Mapping[int, Flaw]) -> tuple[Problem, ...]:
        return tuple(
            _failed(self._heading(index), what)
            if kind == "error"
            else Problem(
                code="formula_without_value",
                message="The cell has a formula and no value: it was never calculated.",
                column=self._heading(index),
                received=what[:_RECEIVED_CHARACTERS],
                allowed="a value",
                fix="Open and save the file in a spreadsheet program, or put in the value.",
            )
            for index, (kind, what) in sorted(flaws.items())
        )

    def _too_long(self, cells: Sequence[Cell]) -> tuple[Problem, ...]:
        return tuple(
            Problem(
                code="cell_too_long",
                message=f"The cell has {len(cell):,} characters.",
                column=self._heading(index),
                received=cell[:_RECEIVED_CHARACTERS],
                allowed=f"at most {CELL_CHARACTERS_MAX:,} characters",
                fix="Shorten the cell.",
            )
            for index, cell in enumerate(cells)
            if isinstance(cell, str) and len(cell) > CELL_CHARACTERS_MAX
        )

    def _heading(self, index: int) -> str | None:
        """The heading above the cell; None for a cell behind the last."""
        headings = self.columns.headings
        return headings[index] if index < len(headings) else None


def _is_blank(cells: Sequence[Cell]) -> bool:
    return all(isinstance(cell, str) and not cell.strip() for cell in cells)


def _size(cells: Sequence[Cell]) -> int:
    """The characters of all texts together."""
    try:
        return len("".join(cells))  # type: ignore[arg-type] # a csv has nothing but text
    except TypeError:
        return sum(len(cell) for cell in cells if isinstance(cell, str))


def _failed(column: str | None, what: str) -> Problem:
    return Problem(
        code="spreadsheet_error",
        message=f"The cell's formula failed with {what[:_RECEIVED_CHARACTERS]}.",
        column=column,
        received=what[:_RECEIVED_CHARACTERS],
        allowed="a value",
        fix="Correct the formula, or put in the value.",
    )


def _earlier(cells: Sequence[Cell]) -> Earlier:
    texts = [unmark(cell) if isinstance(cell, str) else str(cell) for cell in cells]
    number, outcome, code, _, _, record = [*texts, *[""] * 6][:6]
    return Earlier(
        number=int(number) if number.isascii() and number.isdecimal() else None,
        outcome=_OUTCOMES.get(outcome.strip()),
        code=code.strip() or None,
        record_id=record.strip() or None,
    )


# -- Spreadsheet -----------------------------------------------------------------------------------
#


Kind = Literal["csv", "tsv", "xlsx"]
"""What a table is read from; `tsv` is text whose cells are parted by tabs."""

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
WORKBOOK_SUFFIX = ".xlsx"

Record = tuple[int, Sequence[Cell], Mapping[int, Flaw] | None]
"""A row's number, its cells as they are in the file, and a workbook's flaws by column."""


@dataclass(frozen=True)
class Spreadsheet:
    """A table that was opened.

    `headings` are the input's own, as they stand in the file; of a report (`is_report`), those of
    the table that it reports on. `sheet` is a workbook's, and `merged` the first of its ranges
    whose cells are merged: only the first cell of each has a value. `encoding`, `delimiter` (one
    character) and `samples` (cells with letters beyond ASCII) are a text's. `is_encoding_guessed`
    says that the encoding was neither said, nor marked, nor proven by the bytes. `digest` is the
    SHA-256 of the file, in hexadecimal digits.
    """

    path: Path
    kind: Kind
    headings: tuple[str, ...]
    sheet: str | None
    encoding: str | None
    is_encoding_guessed: bool
    samples: tuple[str, ...]
    delimiter: str | None
    digest: str
    is_report: bool
    merged: tuple[str, ...]
    _form: Form = field(repr=False)
    _records: Callable[[], Iterator[Record]] = field(repr=False)

    def rows(self) -> Iterator[TableRow]:
        """Every row below the headings, in order, blank ones too; may be called again.

        A text's rows are read one by one; a workbook's sheet is in memory meanwhile. Raises
        `SpreadsheetChanged` if the file is not the same any more, `DamagedSpreadsheet`.
        """
        records = self._records()
        next(records, None)
        for number, cells, flaws in records:
            yield self._form.row(number, cells, flaws)

    def earlier(self, row: SheetRow) -> Earlier | None:
        """How the row ended when it was last pushed, if this table is a report."""
        return row.earlier if isinstance(row, TableRow) else None


def open_table(
    path: Path,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Spreadsheet:
    """Open the table in a csv, tsv, txt or xlsx. The headings must be in the first row.

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


def _open_text(
    source: SourceFile, said_encoding: str | None, said_delimiter: str | None
) -> Spreadsheet:
    with source.open() as file:
        if file.read(4) in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF"):
            raise NotASpreadsheet(f"{source.path} is no text, whatever its name")
    encoded = encoding.recognise(source, said_encoding)
    fit = delimited.settle(source, encoded, said_delimiter)
    columns = read_headings(source.path, fit.first_row)
    if fit.filled > columns.count and not columns.is_report:
        raise _without_heading(source.path, columns.count)

    def records() -> Iterator[Record]:
        reading = delimited.records(source, encoded, fit.delimiter)
        return ((number, cells, None) for number, (_, cells) in enumerate(reading, 1))

    return Spreadsheet(
        path=source.path,
        kind="tsv" if fit.delimiter == "\t" else "csv",
        headings=columns.headings,
        sheet=None,
        encoding=encoded.name,
        is_encoding_guessed=encoded.is_guessed,
        samples=encoded.samples,
        delimiter=fit.delimiter,
        digest=source.digest(),
        is_report=columns.is_report,
        merged=(),
        _form=Form(columns, fit.full_width),
        _records=records,
    )


def _open_workbook(source: SourceFile, said: str | None) -> Spreadsheet:
    sheet = workbook.find_sheet(source, said)
    reading = sheet.rows()
    first = next(reading, (0, [], None))[1]
    columns = read_headings(source.path, [text_of(cell) for cell in first])
    _check_below(source, sheet, columns, reading)
    return Spreadsheet(
        path=source.path,
        kind="xlsx",
        headings=columns.headings,
        sheet=sheet.name,
        encoding=None,
        is_encoding_guessed=False,
        samples=(),
        delimiter=None,
        digest=source.digest(),
        is_report=columns.is_report,
        merged=tuple(sheet.outline.merged),
        _form=Form(columns, max(sheet.outline.columns, columns.count)),
        _records=lambda: ((index + 1, cells, flaws) for index, cells, flaws in sheet.rows()),
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


def text_of(cell: Cell) -> str:
    """The cell as text: a date in ISO form, a number without needless digits, TRUE or FALSE."""
    match cell:
        case str():
            return cell
        case bool():
            return "TRUE" if cell else "FALSE"
        case datetime():
            return cell.isoformat(sep=" ")
        case date() | time():
            return cell.isoformat()
    return str(cell)
