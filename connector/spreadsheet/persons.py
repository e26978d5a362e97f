"""People in tables: the rows that are about somebody, and emptying them.

A row stays where it is, so that the numbers of the others stay right; its cells are emptied, but
for those in which a report says what became of it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from connector.disk import replacing
from connector.errors.files import naming
from connector.spreadsheet.table import Table, open_table

IsAbout = Callable[[Iterable[str]], bool]
"""Whether a row of these cells is about the person."""

_KEPT = frozenset(("_row", "_outcome", "_code", "_id"))


def rows_about(path: Path, is_about: IsAbout) -> int:
    """How many rows of the table are about the person. Raises a `SpreadsheetError` for what is no
    table that can be read.
    """
    if _kind(path) == "xlsx":
        return _in_workbook(path, is_about, writes=False)
    lines = list(_lines(path, _opened(path)))
    kept = _kept(lines)
    return sum(_is_to_empty(line, kept, is_about) for line in lines)


def empty_rows(path: Path, is_about: IsAbout) -> int:
    """Empty the rows of the table that are about the person, in the file's own place, encoding and
    permissions; how many there were. Raises as `rows_about` does, and a `WarehouseError`.
    """
    if _kind(path) == "xlsx":
        return _in_workbook(path, is_about, writes=True)
    table = _opened(path)
    lines = list(_lines(path, table))
    kept = _kept(lines)
    emptied = 0
    for line in lines:
        if _is_to_empty(line, kept, is_about):
            emptied += 1
            _empty(line, kept)
    if emptied:
        encoding = _written_encoding(path, table)
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=table.delimiter or ",", lineterminator="\r\n").writerows(lines)
        _put(path, lambda file: file.write(text.getvalue().encode(encoding)))
    return emptied


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _opened(path: Path) -> Table:
    return open_table(path)


def _lines(path: Path, table: Table) -> Iterator[list[str]]:
    assert table.encoding is not None, path
    try:
        with path.open(encoding=_written_encoding(path, table), newline="") as file:
            yield from csv.reader(file, delimiter=table.delimiter or ",")
    except OSError as error:
        raise naming(path, error) from error


def _written_encoding(path: Path, table: Table) -> str:
    """The text's encoding, with the mark at its beginning where it has one."""
    assert table.encoding is not None, path
    name = table.encoding.lower().replace("_", "-")
    with path.open("rb") as file:
        has_mark = file.read(3) == b"\xef\xbb\xbf"
    return "utf-8-sig" if name in ("utf-8", "utf8", "ascii") and has_mark else table.encoding


def _kept(lines: Sequence[Sequence[str]]) -> list[int]:
    """The columns in which a report says what became of a row."""
    return [index for index, each in enumerate(lines[0] if lines else ()) if each in _KEPT]


def _is_to_empty(line: Sequence[str], kept: Sequence[int], is_about: IsAbout) -> bool:
    """Whether the row is about the person, and holds more than what stays of it: an id alone tells
    of nobody.
    """
    holds_more = any(each for index, each in enumerate(line) if index not in kept)
    return holds_more and is_about(line)


def _empty(line: list[str], kept: Sequence[int]) -> None:
    for index in range(len(line)):
        if index not in kept:
            line[index] = ""


def _in_workbook(path: Path, is_about: IsAbout, *, writes: bool) -> int:
    # Opened once by the careful reader, which refuses what would grow without measure.
    open_table(path)
    workbook = load_workbook(path, read_only=not writes)
    emptied = 0
    try:
        for sheet in workbook.worksheets:
            rows = sheet.iter_rows()
            first = next(rows, ())
            kept = _kept([_texts(first)])
            for row in (first, *rows):
                if _is_to_empty(_texts(row), kept, is_about):
                    emptied += 1
                    if writes:
                        _empty_cells(row, kept)
        if writes and emptied:
            _put(path, workbook.save)
    finally:
        workbook.close()
    return emptied


def _texts(row: Sequence[Any]) -> list[str]:
    return ["" if cell.value is None else str(cell.value) for cell in row]


def _empty_cells(row: Sequence[Any], kept: Sequence[int]) -> None:
    for index, cell in enumerate(row):
        if index not in kept:
            cell.value = None
            cell.comment = None
            cell.hyperlink = None


def _put(path: Path, write: Callable[[Any], object]) -> None:
    """Write the file anew in its place, with the permissions that it had."""
    try:
        with replacing(path, path.stat().st_mode & 0o777) as file:
            write(file)
    except OSError as error:
        raise naming(path, error) from error
