"""Table in a csv, tsv, txt, xlsx, xls or ods file: its headings and its rows, in memory.

The content determines the format, not the name. This module does not interpret cells; all text is
text. A row of another shape than the headings is a row with problems: no cell is dropped or
corrected here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from openpyxl.utils import get_column_letter

from connector.errors import Misused, SpreadsheetError, count_noun
from connector.spreadsheet import delimited
from connector.spreadsheet.books import ROWS_MAX, BookKind, read_sheet, too_many_rows_error
from connector.spreadsheet.headings import (
    REPORT_HEADINGS,
    HeadingRows,
    Sheet,
    find_headings,
    has_report_headings,
    mark_rows_outside,
    name_columns,
)
from connector.spreadsheet.problems import (
    Cell,
    FileQuestion,
    Flaw,
    SheetRow,
    is_blank,
    problem_of,
    text_of,
)
from connector.spreadsheet.texts import NOT_CALCULATED, unescape_cell

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
WORKBOOK_SUFFIX = ".xlsx"
BOOK_SUFFIXES = (WORKBOOK_SUFFIX, ".xlsm", ".xls", ".ods")
"""Suffixes of workbooks that can be read; only xlsx can be written."""

_BYTES_MAX = 256 * 1024 * 1024
_HEADINGS_SHOWN = 6
_NO_FLAWS: Mapping[int, Flaw] = {}
_MISSHAPEN = ("row_width", "quote_not_closed", "quote_in_cell")


@dataclass(frozen=True)
class Spreadsheet:
    """Table of an opened file.

    Attributes:
        headings: Headings of the input, also if the file is a report.
        digest: SHA-256 of the file, in hexadecimal digits.
        sheet: Name of a workbook's sheet.
        merged_ranges: Ranges of merged cells over several rows, with their headings.
        notices: Sentences on what was assumed.
        questions: Questions that the user has to answer.
    """

    path: Path
    headings: tuple[str, ...]
    digest: str
    is_report: bool
    all_rows: Sequence[SheetRow] = field(repr=False)
    sheet: str | None = None
    merged_ranges: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    heading_rows: HeadingRows = field(default_factory=lambda: HeadingRows(()))
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()

    def rows(self) -> Iterator[SheetRow]:
        """Yield every row below the headings, in order, including blank ones."""
        return iter(self.all_rows)


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
        sheet: Sheet of a workbook. Default: the only visible sheet with a table.
        encoding: Encoding of a text. Default: detected in the whole file.
        delimiter: Delimiter of a text, as a character or a name. Default: detected.
        header_row: Row of the headings, numbered as in spreadsheet programs. Default: detected.

    Raises:
        SpreadsheetError: The file cannot be read. The message names the file and the place.
        UnknownName: The encoding or the delimiter is unknown.
        Misused: An option does not apply to the format.
    """
    content = _read_file(path)
    kind = _detect_kind(path, content)
    is_text, given = kind == "text", {"--encoding": encoding, "--delimiter": delimiter}
    for name, value in ({"--sheet": sheet} if is_text else given).items():
        if value is not None:
            message = f"{path} is {'text' if is_text else 'a workbook'}, so {name} cannot be used"
            raise Misused(message, action=f"Leave out {name}.")
    if is_text:
        decoded = delimited.decode(path, content, encoding)
        read = delimited.read_delimited(path, decoded.text, delimiter, header_row)
        return _build_table(path, content, read, decoded)
    assert kind != "text"
    read = read_sheet(path, content, kind, sheet)
    read.headings = find_headings(read.rows, header_row)
    return _build_table(path, content, read, delimited.Decoded("", None))


# -- Files -----------------------------------------------------------------------------------------

_ZIP_MAGIC, _OLE_MAGIC = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_START_BYTES = 1_024
_EXPORT = "Save or export its table as xlsx or csv, and use that file."
_NO_TABLES = (b"<", b"%pdf", b"{\\rtf", b"\x89png", b"\xff\xd8\xff", b"begin:vcard")
"""First bytes, in lower case, of web pages and other files that may have the name of a table."""


def _read_file(path: Path) -> bytes:
    """Return the content of a regular file with the suffix of a table."""
    found, message, action = path.suffix.lower() or path.name, "", "Check the name and the folder."
    try:
        if not path.is_file():
            # Other files are not opened: a pipe would block forever.
            message = f"{path} is not a regular file" if path.exists() else f"{path} does not exist"
        elif found not in (*TEXT_SUFFIXES, *BOOK_SUFFIXES):
            message = f"{path}: a table is a csv, tsv, txt, xlsx, xls or ods, not {found!r}"
            action = _EXPORT
        elif path.stat().st_size > _BYTES_MAX:
            too_large = f"{path} is larger than {_BYTES_MAX / 1e6:,.0f} MB"
            raise SpreadsheetError(too_large, code="unsafe_workbook")
        elif content := path.read_bytes():
            return content
        else:
            message, action = f"{path} is empty", "Check that it was saved completely."
    except OSError as error:
        raise SpreadsheetError(f"{path} cannot be read: {error.strerror or error}") from error
    raise SpreadsheetError(message, action=action, code="not_a_spreadsheet")


def _detect_kind(path: Path, content: bytes) -> Literal["text"] | BookKind:
    """Return the kind of file by its content. Raises `SpreadsheetError` if it is no table."""
    if content.startswith(_OLE_MAGIC):
        if _ENCRYPTED_STREAM in content:
            raise SpreadsheetError(
                f"{path} is encrypted with a password", code="password_protected"
            )
        return "xls"
    if content.startswith(_ZIP_MAGIC):
        # The names of the members are in the directory at the end.
        if b"xl/workbook.xml" in content or b"xl\\workbook.xml" in content:
            return "xlsx"
        if b"content.xml" in content and b"word/document.xml" not in content:
            return "ods"
        message = f"{path} is a zip file, but no xlsx or ods workbook"
        raise SpreadsheetError(message, action=_EXPORT, code="not_a_spreadsheet")
    if content[:_START_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_NO_TABLES):
        message = f"{path} is a web page, a PDF or another document with the file name of a table"
        raise SpreadsheetError(message, action=_EXPORT, code="not_a_spreadsheet")
    has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff"))  # UTF-16 has zero bytes.
    is_binary = not has_mark and re.search(rb"[\x00-\x08\x0e-\x1f]", content[:_START_BYTES])
    if is_binary and path.suffix.lower() in BOOK_SUFFIXES:
        raise SpreadsheetError(f"{path} is no workbook", code="damaged_spreadsheet")
    return "text"


# -- Tables ----------------------------------------------------------------------------------------


def _build_table(
    path: Path, content: bytes, sheet: Sheet, decoded: delimited.Decoded
) -> Spreadsheet:
    found, below, is_text = sheet.headings, sheet.below, sheet.delimiter is not None
    if len(below) > ROWS_MAX:
        raise too_many_rows_error(str(path))
    if all(map(is_blank, below)):
        raise SpreadsheetError(f"{path} has headings and no row below them", code="no_rows")
    end = len(found.headings) if is_text else max(map(len, below))
    fitting = (_filled_width(row) for row in below if len(row) <= end)
    filled = max(fitting, default=0) if is_text else end
    headings, is_report = (
        name_columns(path, found.headings, filled),
        has_report_headings(found.headings),
    )
    count = len(headings) + len(REPORT_HEADINGS) * is_report
    merged = dict(_fill_merged_cells(sheet, headings))
    rows = [
        _build_row(sheet, index, headings, count, max(end, count))
        for index in range(found.first_row, len(sheet.rows))
    ]
    if is_text:
        _mark_split_rows(rows)
    notices = [*decoded.notices]
    if found.first_row > 1:
        read = f"row {found.index + 1}"
        if found.depth > 1:
            read = f"rows {found.index + 1} and {found.first_row}, combined"
        shown = ", ".join(headings[:_HEADINGS_SHOWN])
        notices.append(f"The headings are read from {read}: {shown} (change with --header-row).")
    if not is_report:
        rows, left_out = mark_rows_outside(path, headings, rows)
        notices += left_out
    return Spreadsheet(
        path=path,
        headings=headings,
        digest=hashlib.sha256(content).hexdigest(),
        is_report=is_report,
        all_rows=rows,
        merged_ranges=merged,
        heading_rows=found,
        sheet=sheet.name,
        encoding=decoded.encoding,
        delimiter=sheet.delimiter,
        questions=decoded.questions,
        notices=tuple(notices),
    )


def _filled_width(cells: Sequence[Cell]) -> int:
    return next((n for n in range(len(cells), 0, -1) if str(cells[n - 1]).strip()), 0)


def _fill_merged_cells(sheet: Sheet, headings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give each row the value of cells merged over several rows, and yield their ranges."""
    for first, last, left, right in sheet.merged_ranges:
        is_below = sheet.headings.first_row <= first < last <= len(sheet.rows)
        value = sheet.rows[first][left] if is_below and left < len(sheet.rows[first]) else ""
        if value == "":
            continue
        for cells in sheet.rows[first + 1 : last + 1]:
            cells.extend([""] * (left + 1 - len(cells)))
            cells[left] = value
        place = f"{get_column_letter(left + 1)}{first + 1}:{get_column_letter(right + 1)}{last + 1}"
        yield place, headings[left] if left < len(headings) else ""


def _mark_split_rows(rows: list[SheetRow]) -> None:
    """Mark rows next to a line with a single cell: a line break may have split a row."""
    for index, row in enumerate(rows):
        if 0 < row.missing_cells == len(row.cells) - 1 and not row.is_left_out:
            for near in (index - 1, index + 1):
                if 0 <= near < len(rows):
                    rows[near] = replace(rows[near], may_be_split=True)


# -- Rows ------------------------------------------------------------------------------------------


def _build_row(
    sheet: Sheet, index: int, headings: tuple[str, ...], count: int, max_width: int
) -> SheetRow:
    """Return the row at this index with problems of its shape; the table has `count` columns.

    Cells after them must be empty, and up to `max_width` they are dropped.
    """
    cells, number, damage = sheet.rows[index], index + 1, sheet.damages.get(index)
    flaws, is_hidden = sheet.flaws.get(index, _NO_FLAWS), index in sheet.hidden_rows
    if sheet.delimiter is None:
        cells = [*cells, *[""] * (count - len(cells))]
    own = len(headings)
    if not (flaws or damage or count > own) and len(cells) == own:
        # True for nearly every row.
        return SheetRow(number, tuple(cells), (), _NO_FLAWS, is_hidden=is_hidden)
    if is_blank(cells):
        return SheetRow(number, ("",) * own, (), _NO_FLAWS)
    behind = list(cells[count:])
    while behind and behind[-1] == "" and len(cells) <= max_width:
        behind.pop()
    own_cells, kinds, record = [*cells[:own], *behind], dict(flaws), ""
    is_emptied = count > own and len(cells) > own + 3 and is_blank(own_cells)
    if is_emptied and text_of(cells[own + 2]).startswith(_MISSHAPEN):
        earlier = unescape_cell(text_of(cells[own + 3]))
        fix = "Write the cells of the row into their columns."
        misshapen = problem_of("row_width", earlier, fix=fix)
        return SheetRow(number, ("",) * own, (misshapen,), _NO_FLAWS)
    if count > own:
        record = unescape_cell(text_of(cells[count - 1])).strip() if len(cells) >= count else ""
        own_cells = _restore_report_cells(own_cells, kinds)
    width = len(own_cells)
    missing = max(0, own - width)
    own_cells.extend([""] * missing)
    problems = [
        problem_of(code, None, headings[index] if index < own else None, received=text)
        for index, (code, text) in sorted(kinds.items())
    ]
    if damage is not None:
        code, first, last = damage
        rows = f"rows {first} to {last}"
        message = f'A quote (") opens in row {first} and closes in row {last}, so {rows} cannot'
        wide = problem_of(code, f"{message} be separated.", fix=f"Correct the quotes in {rows}.")
        problems = [problem_of(code) if first == last else wide]
    elif width != own:
        found = count_noun(width, "cell")
        message = f"The row has {found}, but the file has {count_noun(own, 'column')}."
        problems.insert(0, problem_of("row_width", message, received=found))
    return SheetRow(
        *(number, tuple(own_cells), tuple(problems), kinds, missing),
        is_hidden=is_hidden,
        record_id=record,
    )


def _restore_report_cells(cells: list[Cell], flaws: dict[int, Flaw]) -> list[Cell]:
    """Return the cells of the input from those of a report; may add flaws."""
    for index, cell in enumerate(cells):
        if not isinstance(cell, str) or index in flaws:
            continue
        cells[index] = unescape_cell(cell)
        if cell.startswith(NOT_CALCULATED):
            cells[index] = cell.removeprefix(NOT_CALCULATED)
            flaws[index] = Flaw("formula_without_value", cell.removeprefix(NOT_CALCULATED))
    return cells
