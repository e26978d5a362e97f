"""Reports: the input's own columns as they were, and behind them what became of each row.

A report is made to be corrected and pushed again. So it opens as a table whose cells are
exactly those of the input, whatever they hold, and knows which rows were applied. No cell in it
runs as a formula. It has one line for each of the input's rows, in order, blank ones too: a row
without a result, or with two, is an error and no report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import IO

from connector.errors.spreadsheet import NotASpreadsheet, ReportRefused
from connector.spreadsheet.columns import REPORT_HEADINGS
from connector.spreadsheet.form import TableRow
from connector.spreadsheet.formula import EMPTY, MISSING, NOT_CALCULATED, mark
from connector.spreadsheet.result import RowResult, told
from connector.spreadsheet.row import Cell
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX, Table, text_of
from connector.spreadsheet.writing import replacing

_MARK = ".report"


def report_path(table: Table) -> Path:
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


def write_report(path: Path, table: Table, results: Iterable[RowResult]) -> int:
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
            from connector.spreadsheet.report_sheet import write_sheet  # noqa: PLC0415

            write_sheet(file, path, table.headings, iter(pairs))
        else:
            delimiter = "\t" if suffix == ".tsv" else table.delimiter or ","
            _write_text(file, delimiter, table.headings, iter(pairs))
    return pairs.results


class _Pairs:
    """Each row with its result, None for a blank one; anything else is refused."""

    def __init__(self, table: Table, results: Iterable[RowResult]) -> None:
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
