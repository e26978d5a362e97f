"""Find and remove a person's rows in tables.

A row belongs to a person if one of its cells equals an identifier of the person. Rows of a text
file can be removed; all other bytes stay. A workbook that contains such a row is removed as a
whole.
"""

from __future__ import annotations

import csv
import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter

from connector.atomic_files import write_atomically
from connector.errors import DamagedSpreadsheet, file_error
from connector.spreadsheet.table import WORKBOOK_SUFFIX, open_table

_CELLS = re.compile(r"xl/(?:worksheets/[^/]+|sharedStrings)\.xml", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


class RowOwner(Protocol):
    """Person or people whose rows in a table can be recognized."""

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if a row with these cells is about them."""


class NamedPerson(RowOwner, Protocol):
    """Person whose rows and mentions in texts can be recognized."""

    def is_named_in(self, text: str) -> bool:
        """Return True if the text names the person."""


@dataclass(frozen=True, slots=True)
class TableMatches:
    """Number of a person's rows in a table, and positions of other texts that name the person.

    Each of the `mentions` is a row and a column, or "" and a part of a workbook.
    """

    rows: int
    mentions: tuple[tuple[str, str], ...] = ()


def count_rows_about(path: Path, owner: RowOwner) -> int:
    """Return the number of rows that belong to `owner`. Raises a `SpreadsheetError`."""
    return sum(owner.is_in_row(cells) for _, cells in _positioned_rows(path))


def search_table(path: Path, person: NamedPerson) -> TableMatches:
    """Return the person's matches in a table. Raises a `SpreadsheetError` for other files."""
    count = 0
    mentions = []
    for place, cells in _positioned_rows(path):
        if person.is_in_row(cells):
            count += 1
        else:
            mentions += [
                (place, get_column_letter(column))
                for column, cell in enumerate(cells, 1)
                if person.is_named_in(cell)
            ]
    if path.suffix.lower() == WORKBOOK_SUFFIX:
        mentions += [("", part) for part in _parts_naming(path, person)]
    return TableMatches(count, tuple(mentions))


def remove_rows(path: Path, owner: RowOwner) -> None:
    """Remove the rows of `owner` from a csv, tsv or txt file.

    The file keeps its path, its permissions and every byte of the other rows. Raises a
    `SpreadsheetError` or a `WarehouseError`.
    """
    encoding, lines, rows = _read_text_file(path)
    kept_lines = []
    start = 0
    for end, cells in rows:
        if not owner.is_in_row(cells):
            kept_lines += lines[start:end]
        start = end
    try:
        with write_atomically(path, path.stat().st_mode & 0o777) as file:
            file.write("".join(kept_lines).encode(encoding))
    except OSError as error:
        raise file_error(path, error) from error


def _positioned_rows(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the position of every row in words, and its cells as texts."""
    if path.suffix.lower() == WORKBOOK_SUFFIX:
        yield from _workbook_rows(path)
    else:
        for number, (_, cells) in enumerate(_read_text_file(path)[2], 1):
            yield f"row {number}", cells


def _read_text_file(path: Path) -> tuple[str, list[str], list[tuple[int, list[str]]]]:
    """Return the encoding and lines of a text file, and its rows with their last line numbers."""
    table = open_table(path)
    assert table.encoding is not None, path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise file_error(path, error) from error
    has_mark = table.encoding == "utf-8" and content.startswith(b"\xef\xbb\xbf")
    encoding = "utf-8-sig" if has_mark else table.encoding
    lines = list(io.StringIO(content.decode(encoding), newline=""))
    reader = csv.reader(lines, delimiter=table.delimiter or ",")
    return encoding, lines, [(reader.line_num, cells) for cells in reader]


def _workbook_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the position and the cells of every row, also in hidden sheets."""
    try:
        workbook = load_workbook(io.BytesIO(path.read_bytes()), read_only=True)
    except (
        zipfile.BadZipFile,
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        # The library raises arbitrary errors for a workbook that lacks a part.
        raise DamagedSpreadsheet(f"the workbook is damaged: {error}") from error
    try:
        for index, sheet in enumerate(workbook.worksheets, 1):
            # The declared size of a sheet may omit cells.
            sheet.reset_dimensions()
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                yield (
                    f"sheet {index} row {number}",
                    ["" if each is None else str(each) for each in row],
                )
    finally:
        workbook.close()


def _parts_naming(path: Path, person: NamedPerson) -> Iterator[str]:
    """Yield the names of other parts of a workbook that name the person, such as comments."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not _CELLS.fullmatch(name):
                markup = archive.read(name).decode("utf-8", "ignore")
                # Attributes contain texts, and tags may divide a text.
                texts = (html.unescape(each) for each in (markup, _TAG.sub("", markup)))
                if any(map(person.is_named_in, texts)):
                    yield name
