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
from typing import Literal

from connector.errors import Misused
from connector.errors.spreadsheet import HeadingsRefused, NoRows, NotASpreadsheet
from connector.spreadsheet import delimited, encoding, workbook
from connector.spreadsheet.columns import Columns, letter, read_headings
from connector.spreadsheet.form import Earlier, Form, TableRow
from connector.spreadsheet.row import Cell, Row
from connector.spreadsheet.sheet import Flaw
from connector.spreadsheet.source import Source, find

Kind = Literal["csv", "tsv", "xlsx"]
"""What a table is read from; `tsv` is text whose cells are parted by tabs."""

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
WORKBOOK_SUFFIX = ".xlsx"

Record = tuple[int, Sequence[Cell], Mapping[int, Flaw] | None]
"""A row's number, its cells as they are in the file, and a workbook's flaws by column."""


@dataclass(frozen=True)
class Table:
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

    def earlier(self, row: Row) -> Earlier | None:
        """How the row ended when it was last pushed, if this table is a report."""
        return row.earlier if isinstance(row, TableRow) else None


def open_table(
    path: Path,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Table:
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


def _open_text(source: Source, said_encoding: str | None, said_delimiter: str | None) -> Table:
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

    return Table(
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


def _open_workbook(source: Source, said: str | None) -> Table:
    sheet = workbook.find_sheet(source, said)
    reading = sheet.rows()
    first = next(reading, (0, [], None))[1]
    columns = read_headings(source.path, [text_of(cell) for cell in first])
    _check_below(source, sheet, columns, reading)
    return Table(
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
    source: Source, sheet: workbook.SheetFile, columns: Columns, rows: Iterator[workbook.SheetRow]
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
