"""Text with delimiters: csv and its kin, read row by row whatever the file's size.

The delimiter is not sniffed from a sample: each of four is tried on the whole file, and must give
the headings' width on every row. What stands between quotes may hold line breaks and delimiters,
and a quote in it is doubled. A row is numbered as a spreadsheet shows it; an error also tells the
line, which differs behind a cell with line breaks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from connector.errors import UnknownName
from connector.errors.spreadsheet import DamagedSpreadsheet, DelimiterUnknown, NoRows
from connector.spreadsheet.columns import is_of_report
from connector.spreadsheet.encoding import LINE_CHARACTERS_MAX, Encoded
from connector.spreadsheet.source import Source

DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Those that are tried and may be said, by name."""

_NAMES = {character: name for name, character in DELIMITERS.items()}


@dataclass(frozen=True, slots=True)
class Fit:
    """How a file's rows look under one delimiter.

    `first_row` has the cells of the first row, `rows` counts the others that are not blank, and
    `fitting` those of them that are as wide as the first,
    give or take empty cells at its end. `is_ended` says that every row has
    one delimiter more than the first, at its end. `first_misfit` tells one row that does not fit:
    its number, its line and its width. `filled` counts the columns up to the last in which a
    row no wider than the first has a cell that is not empty.
    """

    delimiter: str
    first_row: tuple[str, ...]
    rows: int
    fitting: int
    is_ended: bool
    first_misfit: tuple[int, int, int] | None
    filled: int

    @property
    def full_width(self) -> int:
        """How many cells a row has that fits, an empty one behind the last delimiter included."""
        return len(self.first_row) + (1 if self.is_ended else 0)


def records(
    source: Source, encoded: Encoded, delimiter: str
) -> Generator[tuple[int, list[str]], None, None]:
    """Each row's first line and its cells, the headings' row included; a blank line has none.

    Raises `DamagedSpreadsheet` with the line for a quote that is never closed or is followed by
    other text, `SpreadsheetChanged`.
    """
    # The limit is the whole process's: it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_CHARACTERS_MAX))
    line = 0
    with source.open() as file:
        text = io.TextIOWrapper(file, encoding=encoded.codec, errors="strict", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                yield line + 1, cells
                line = reader.line_num
        except csv.Error as error:
            raise _damaged(source, line + 1, error) from error
        except UnicodeDecodeError as error:
            raise source.changed() from error
    source.check()


def _damaged(source: Source, line: int, error: csv.Error) -> DamagedSpreadsheet:
    said = str(error)
    if "unexpected end" in said or "field larger" in said:
        what = 'a quote (") opens a cell that is not closed'
    elif "expected after" in said:
        what = 'a quote (") inside a cell is neither doubled nor the last character'
    else:
        what = f"the cells cannot be told apart: {said}"
    return DamagedSpreadsheet(f"{source.path}: line {line}: {what}")


def settle(source: Source, encoded: Encoded, said: str | None) -> Fit:
    """The delimiter of the file, and how its rows look under it.

    Raises `DelimiterUnknown` where none fits or more than one, `UnknownName` for one that may
    not be said, `NoRows`, and as `records` does.
    """
    if said is not None:
        fit = _fit(source, encoded, _character(said))
    else:
        fit = _only_one(source, _candidates(source, encoded))
    if not fit.rows and any(fit.first_row):
        raise NoRows(f"{source.path} has headings and no row below them")
    return fit


def _character(said: str) -> str:
    character = DELIMITERS.get(said.lower(), said)
    if character not in _NAMES:
        raise UnknownName("delimiter", said, DELIMITERS)
    return character


def _candidates(source: Source, encoded: Encoded) -> list[Fit]:
    """The fits of those delimiters that part the headings, or of one that parts no row at all."""
    headings = {each: _first_row(source, encoded, each) for each in _NAMES}
    for each, cells in headings.items():
        if is_of_report(cells):
            # Nothing else gives the headings of our reports, however wrong the rows still are.
            return [_fit(source, encoded, each)]
    parting = [each for each, cells in headings.items() if len(cells) > 1]
    fits: list[Fit] = []
    damage = None
    for each in parting or _NAMES:
        try:
            fit = _fit(source, encoded, each)
        except DamagedSpreadsheet as error:
            # Quotes need not fall into place under a delimiter that is not the file's.
            damage = damage or error
            continue
        fits.append(fit)
        # In one column, whichever delimiter is in no row reads the same cells.
        if not parting and fit.fitting == fit.rows:
            return [fit]
    if damage is not None and not fits:
        raise damage
    return fits


def _first_row(source: Source, encoded: Encoded, delimiter: str) -> list[str]:
    """The headings' row; nothing where quotes in it do not fall into place."""
    reading = records(source, encoded, delimiter)
    try:
        return next(reading, (1, []))[1]
    except DamagedSpreadsheet:
        return []
    finally:
        reading.close()


def _only_one(source: Source, fits: list[Fit]) -> Fit:
    """The fit that is without a misfit, else the only one for most rows."""
    if not any(fits[0].first_row):
        return fits[0]  # What is wrong here is the headings.
    if len(fits) == 1 and is_of_report(fits[0].first_row):
        return fits[0]
    whole = [fit for fit in fits if fit.fitting == fit.rows]
    if len(whole) > 1 and source.path.suffix.lower() == ".tsv":
        whole = [fit for fit in whole if fit.delimiter == "\t"] or whole
    chosen = whole or [fit for fit in fits if fit.fitting * 2 > fit.rows]
    if len(chosen) == 1:
        return chosen[0]
    counts = "; ".join(_told(fit) for fit in fits)
    what = "more than one delimiter fits" if chosen else "no delimiter fits"
    raise DelimiterUnknown(f"{source.path}: {what} the rows: {counts}")


def _told(fit: Fit) -> str:
    name, width = _NAMES[fit.delimiter], len(fit.first_row)
    told = f"{name} gives {width} columns and fits {fit.fitting} of {fit.rows} rows"
    if fit.first_misfit is None:
        return told
    row, line, cells = fit.first_misfit
    return f"{told} (row {row}, line {line}, has {cells})"


def _fit(source: Source, encoded: Encoded, delimiter: str) -> Fit:
    """Read the whole file once with this delimiter, and count."""
    first: list[str] = []
    headed = rows = fitting = ended = filled = 0
    misfit = None
    for number, (line, cells) in enumerate(records(source, encoded, delimiter), 1):
        if number == 1:
            first, headed = cells, _last_filled(cells)
            continue
        if not any(map(str.strip, cells)):
            continue
        rows += 1
        width = len(cells)
        fits = headed <= width <= len(first)
        if fits:
            fitting += 1
        elif width == len(first) + 1 and not cells[-1]:
            ended += 1
        if not fits and misfit is None:
            misfit = (number, line, width)
        if filled < width <= len(first):
            filled = max(filled, _last_filled(cells))
    is_ended = bool(rows) and ended == rows
    return Fit(
        delimiter=delimiter,
        first_row=tuple(first),
        rows=rows,
        fitting=rows if is_ended else fitting,
        is_ended=is_ended,
        first_misfit=None if is_ended else misfit,
        filled=filled,
    )


def _last_filled(cells: list[str]) -> int:
    """How many cells there are up to the last that is not empty."""
    width = len(cells)
    while width and not cells[width - 1]:
        width -= 1
    return width


def name_of(delimiter: str) -> str:
    """The delimiter's name, as options and messages have it."""
    return _NAMES[delimiter]
