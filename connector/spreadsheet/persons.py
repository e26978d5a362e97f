"""People in tables: the rows that are about somebody or name them, and taking the person out.

A row stays where it is, so that the numbers of the others stay right. The cells of a row about the
person are emptied, but for those in which a report says what became of it; of a row about somebody
else those cells are scrubbed that name the person.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from openpyxl import load_workbook

from connector.errors import DamagedSpreadsheet, naming
from connector.spreadsheet import source_file as container
from connector.spreadsheet import workbook_parts as parts
from connector.spreadsheet.row import Problem
from connector.spreadsheet.row_reader import RowDraft
from connector.spreadsheet.source_file import find
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.suppression.listed import Suppressed
from connector.system.atomic_files import replacing


class PersonSearch(parts.Naming, Protocol):
    """Somebody whom a table may be about."""

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Whether a row of these cells is about them."""


_KEPT = frozenset(("_row", "_outcome", "_code", "_id"))


@dataclass(frozen=True, slots=True)
class InTable:
    """A person in a table: how many rows are about them, with how many of its other
    parts can be corrected; and the names of the parts that cannot.
    """

    rows: int
    stuck: tuple[str, ...] = ()


def rows_about(path: Path, who: PersonSearch) -> InTable:
    """The person in the table. Raises a `SpreadsheetError` for a file that is no such table."""
    if _kind(path) == "xlsx":
        return _in_workbook(path, who, writes=False)
    lines = list(_lines(path, _opened(path)))
    kept = _kept(lines)
    return InTable(sum(_left(line, kept, who) != line for line in lines))


def empty_rows(path: Path, who: PersonSearch) -> int:
    """Take the person out of the rows of the table, and correct a workbook's other parts, in the
    file's own place, encoding and permissions; how many there were. Raises as `rows_about` does,
    and a `WarehouseError`.
    """
    if _kind(path) == "xlsx":
        return _in_workbook(path, who, writes=True).rows
    table = _opened(path)
    lines = list(_lines(path, table))
    kept = _kept(lines)
    left = [_left(line, kept, who) for line in lines]
    emptied = sum(one != other for one, other in zip(left, lines, strict=True))
    if emptied:
        encoding = _written_encoding(path, table)
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=table.delimiter or ",", lineterminator="\r\n").writerows(left)
        _put(path, lambda file: file.write(text.getvalue().encode(encoding)))
    return emptied


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _opened(path: Path) -> Spreadsheet:
    return open_table(path)


def _lines(path: Path, table: Spreadsheet) -> Iterator[list[str]]:
    assert table.encoding is not None, path
    try:
        with path.open(encoding=_written_encoding(path, table), newline="") as file:
            yield from csv.reader(file, delimiter=table.delimiter or ",")
    except OSError as error:
        raise naming(path, error) from error


def _written_encoding(path: Path, table: Spreadsheet) -> str:
    """The text's encoding, with the mark at its beginning where it has one."""
    assert table.encoding is not None, path
    name = table.encoding.lower().replace("_", "-")
    with path.open("rb") as file:
        has_mark = file.read(3) == b"\xef\xbb\xbf"
    return "utf-8-sig" if name in ("utf-8", "utf8", "ascii") and has_mark else table.encoding


def _kept(lines: Sequence[Sequence[str]]) -> list[int]:
    """The columns in which a report says what became of a row."""
    return [index for index, each in enumerate(lines[0] if lines else ()) if each in _KEPT]


def _left(line: Sequence[str], kept: Sequence[int], who: PersonSearch) -> list[str]:
    """What remains of a row. What a report says of it stays: an id alone tells of nobody."""
    is_about = who.is_in_row(line)
    return [
        each if index in kept else "" if is_about else who.without(each)
        for index, each in enumerate(line)
    ]


def _measured(path: Path) -> bytes:
    """The workbook's bytes, which can be unpacked. Raises as `measure` does."""
    source = find(path)
    container.refuse_other_kinds(source)
    container.measure(source)
    with source.open() as file:
        return file.read()


def _in_workbook(path: Path, who: PersonSearch, *, writes: bool) -> InTable:
    """Count the rows about the person and the other parts that name them, in every sheet."""
    content = _measured(path)
    rows, left = _without_rows(content, who, writes=writes)
    # Sheets that are written anew have lost what their rows named.
    found = parts.look(left, who, skips_cells=bool(rows) and not writes)
    if writes and (rows or found.cleaned):
        made = parts.replace_parts(left, found.cleaned)
        _put(path, lambda file: file.write(made))
    return InTable(rows + len(found.cleaned), found.stuck)


def _without_rows(content: bytes, who: PersonSearch, *, writes: bool) -> tuple[int, bytes]:
    """How many rows are about the person, and the workbook; if that `writes`, without them."""
    try:
        workbook = load_workbook(io.BytesIO(content), read_only=not writes)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The library has no error of its own for a workbook that lacks a part.
        raise DamagedSpreadsheet(f"the workbook is damaged: {error}") from error
    emptied = 0
    try:
        for sheet in workbook.worksheets:
            if not writes:
                # What a sheet says of its size may leave cells out.
                sheet.reset_dimensions()
            rows = sheet.iter_rows()
            first = next(rows, ())
            kept = _kept([_texts(first)])
            for row in (first, *rows):
                texts = _texts(row)
                left = _left(texts, kept, who)
                if left != texts:
                    emptied += 1
                    if writes:
                        _empty_cells(row, kept if who.is_in_row(texts) else None, texts, left)
        if writes and emptied:
            made = io.BytesIO()
            workbook.save(made)
            content = made.getvalue()
    finally:
        workbook.close()
    return emptied, content


def _texts(row: Sequence[Any]) -> list[str]:
    return ["" if cell.value is None else str(cell.value) for cell in row]


def _empty_cells(
    row: Sequence[Any], kept: Sequence[int] | None, texts: Sequence[str], left: Sequence[str]
) -> None:
    """Write what remains of a row; of one about the person, notes on all cells but `kept` go."""
    for index, (cell, text, remains) in enumerate(zip(row, texts, left, strict=True)):
        if remains != text or (kept is not None and index not in kept):
            cell.value = remains or None
            cell.comment = None
            cell.hyperlink = None


def _put(path: Path, write: Callable[[Any], object]) -> None:
    """Write the file anew in its place, with the permissions that it had."""
    try:
        with replacing(path, path.stat().st_mode & 0o777) as file:
            write(file)
    except OSError as error:
        raise naming(path, error) from error


# -- Erased ----------------------------------------------------------------------------------------
# Rows about people who were erased: refused, and nothing of them is told again.


PERSON_ERASED = Problem(
    "person_erased",
    "The row is about a person who was erased.",
    fix="Take the row out; 'connector erase --release' lets the person in again.",
)
"""It shows no cell: problems are kept in the journal."""


def refuse_erased(resource: str, drafts: Sequence[RowDraft], suppressed: Suppressed | None) -> None:
    """Refuse the rows that have an id, an address or a number of somebody who was erased, whatever
    else is wrong with them. What was told of such a row before is taken back.
    """
    if suppressed is None:
        return
    for draft in drafts:
        if _is_about(resource, draft, suppressed):
            draft.problems = (PERSON_ERASED,)
            # Nothing more is to be said of it, as if its cells could not be told apart.
            draft.is_misshapen = True


def _is_about(resource: str, draft: RowDraft, suppressed: Suppressed) -> bool:
    values = draft.values
    if draft.record_id is not None:
        values = {**values, "id": draft.record_id}
    if suppressed.met_in(resource, values):
        return True
    # A telephone number that was typed as a number is one all the same.
    texts = (str(cell) for cell in draft.row.cells if isinstance(cell, str | int) and cell)
    return any(suppressed.named_in(each) for each in texts)
