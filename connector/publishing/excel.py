"""Tables of the published file as an Excel workbook, one sheet each."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape

import duckdb
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import to_excel
from openpyxl.worksheet.worksheet import Worksheet

from connector.atomic_files import write_atomically
from connector.errors import Misused, UnknownName
from connector.spreadsheet.texts import is_hazard
from connector.spreadsheet.workbook_writer import TEXT_CHARACTERS_MAX
from connector.warehouse.duckdb_file import convert_errors, quoted, quoted_table
from connector.warehouse.published_file import open_read_only, require_published, tables_in

ROWS_MAX = 1_048_575
"""Maximum number of rows of a sheet, without the headings."""

_SHEET_NAME_CHARACTERS_MAX = 31
_DIGITS_MAX = 15
"""Digits that Excel keeps of a number. A longer number is written as text."""

_FIRST_DAY = date(1900, 3, 1)
"""Excel counts 29 February 1900, which did not exist. Earlier dates are written as text."""

_AS_THEY_ARE = re.compile(
    r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DOUBLE|FLOAT|DECIMAL.*|DATE|TIME"
)
_BATCH_ROWS, _SAMPLE_ROWS = 2_000, 200
_WIDTH_MIN, _WIDTH_MAX = 10, 60
_LARGE_CELLS = 10_000_000
"""Number of cells above which a sheet may exceed 2 GiB, which a zip must declare beforehand."""


class TextTooLong(ValueError):
    """A text does not fit in a cell of a workbook."""


DATE_FORMATS: Mapping[type, str] = {
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    datetime: "yyyy-mm-dd h:mm:ss",
}
_NOT_IN_XML = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]")
_BY_NUMBER = re.compile(rf"{_NOT_IN_XML.pattern}|_(?=x[0-9A-Fa-f]{{4}}_)")
_ANY = re.compile(".", re.DOTALL)
ROWS = re.compile(rb"<sheetData\s*/>|<sheetData>.*</sheetData>", re.DOTALL)
SIZE = re.compile(rb"<dimension [^>]*/>")
PACKING = 1
"""Compression level. Higher levels take twice the time and save a fifth of the bytes."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Written sheet of a workbook.

    Attributes:
        table: Its table, as `schema.table`.
        name: Its name in the workbook.
        rows: Number of rows without the headings.
        shortened: Number of texts, by column, that were too long for a cell.
    """

    table: str
    name: str
    rows: int
    shortened: Mapping[str, int]


def write_workbook(file: Path, path: Path, tables: Sequence[str]) -> tuple[Sheet, ...]:
    """Write tables (`schema.table`) of the published file to a workbook, one sheet each.

    An earlier workbook is replaced. Raises `Misused` for a table with too many rows, `UnknownName`,
    `NothingPublished` and another `WarehouseError`.
    """
    with open_read_only(require_published(file)) as connection:
        known = tables_in(connection)
        sources = [_SourceTable(connection, each, known) for each in dict.fromkeys(tables)]
        names = _sheet_names([each.table for each in sources])
        book = _WorkbookWriter(list(zip(names, sources, strict=True)))
        with convert_errors(path), write_atomically(path) as written:
            book.write(written)
    return tuple(
        Sheet(each.table, name, each.rows, each.shortened)
        for name, each in zip(names, sources, strict=True)
    )


class _SourceTable:
    """Table to write: its columns, its rows, and the number of shortened texts by column.

    Raises `UnknownName` for a table that does not exist, and `Misused` for too many rows.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, table: str, known: Sequence[str]
    ) -> None:
        if table not in known:
            schema = table.partition(".")[0]
            near = [each for each in known if each.startswith(f"{schema}.")]
            raise UnknownName("table of the published file", table, near or known)
        self.table = table
        self.shortened = Counter[str]()
        self._connection = connection
        self._from = quoted_table(table)
        ((self.rows,),) = connection.execute(f"SELECT count(*) FROM {self._from}").fetchall()
        if self.rows > ROWS_MAX:
            raise Misused(
                f"{table} has {self.rows:,} rows, and a sheet has at most {ROWS_MAX:,}",
                action="Export the table with --parquet, or make a model with fewer rows.",
            )
        described = connection.execute(f"DESCRIBE SELECT * FROM {self._from}").fetchall()
        self._selected = [_column_expression(name, type) for name, type, *_ in described]
        self.columns = [str(name) for name, *_ in described]

    def batches(self, limit: int = ROWS_MAX) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the first `limit` rows in lists of at most 2,000."""
        selected = f"SELECT {', '.join(self._selected)} FROM {self._from} LIMIT {limit}"
        cursor = self._connection.execute(selected)
        while batch := cursor.fetchmany(_BATCH_ROWS):
            yield batch


def _column_expression(name: str, type: str) -> str:
    """Return the SQL for a column: numbers, dates and times unchanged, other types as text."""
    column = quoted(name)
    if type.startswith("TIMESTAMP"):
        return f"CAST({column} AS TIMESTAMP)"
    return column if _AS_THEY_ARE.fullmatch(type) else f"CAST({column} AS VARCHAR)"


def _sheet_names(tables: Sequence[str]) -> list[str]:
    """Return a valid and unique sheet name for each table."""
    # Excel refuses a sheet of the name History.
    found: list[str] = ["history"]
    for table in tables:
        schema, _, name = table.partition(".")
        free = re.sub(r"[\x00-\x1f\[\]:*?/\\']", "_", name)[:_SHEET_NAME_CHARACTERS_MAX]
        number = 1
        while free.lower() in map(str.lower, found):
            number += 1
            ending = f" ({schema})" if number == 2 else f" {number}"
            free = f"{free[: _SHEET_NAME_CHARACTERS_MAX - len(ending)]}{ending}"
        found.append(free)
    return found[1:]


class _WorkbookWriter:
    """Writes rows as XML, ten times faster than openpyxl, which writes all other parts."""

    def __init__(self, sheets: Sequence[tuple[str, _SourceTable]]) -> None:
        self._sheets = sheets
        self._book = Workbook()
        self._book.remove(self._book.worksheets[0])
        self._plain = self._book.create_sheet("plain")
        self._bold = style_number(self._plain, is_bold=True)
        self._quoted = style_number(self._plain, is_quoted=True)
        self._dates = {
            kind: style_number(self._plain, number_format=form)
            for kind, form in DATE_FORMATS.items()
        }

    def write(self, file: IO[bytes]) -> None:
        """Write the workbook to an open file."""
        self._book.remove(self._plain)
        for name, source in self._sheets:
            self._add_empty_sheet(name, source)
        written = io.BytesIO()
        self._book.save(written)
        with (
            zipfile.ZipFile(written) as parts,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=PACKING) as archive,
        ):
            of_sheets = {
                f"xl/worksheets/sheet{number}.xml": source
                for number, (_, source) in enumerate(self._sheets, 1)
            }
            for part in parts.namelist():
                if part not in of_sheets:
                    archive.writestr(part, parts.read(part))
            for part, source in of_sheets.items():
                before, behind = ROWS.split(parts.read(part))
                is_large = source.rows * len(source.columns) > _LARGE_CELLS
                with archive.open(part, "w", force_zip64=is_large) as sheet:
                    # The library does not know the rows.
                    sheet.write(SIZE.sub(b"", before) + b"<sheetData>")
                    for text in self._rows_xml(source):
                        sheet.write(text.encode())
                    sheet.write(b"</sheetData>" + behind)

    def _add_empty_sheet(self, name: str, source: _SourceTable) -> None:
        """Add a sheet without rows: frozen headings, a filter, and widths to fit some rows."""
        sheet = self._book.create_sheet(name)
        assert isinstance(sheet, Worksheet)
        sheet.freeze_panes = "A2"
        rows = [row for batch in source.batches(_SAMPLE_ROWS) for row in batch]
        for number, column in enumerate(source.columns, 1):
            shown = max((len(str(row[number - 1])) for row in rows), default=0)
            # The button of the filter covers some of the heading.
            width = min(max(_WIDTH_MIN, shown + 2, len(column) + 4), _WIDTH_MAX)
            sheet.column_dimensions[get_column_letter(number)].width = width
        last = get_column_letter(len(source.columns))
        sheet.auto_filter.ref = f"A1:{last}{source.rows + 1}"

    def _rows_xml(self, source: _SourceTable) -> Iterator[str]:
        """Yield the XML of the headings and of the rows, one batch at a time."""
        letters = [get_column_letter(number) for number in range(1, len(source.columns) + 1)]
        headings = [text_cell_xml(column, self._bold) for column in source.columns]
        yield row_xml(1, letters, headings)
        number = 1
        for batch in source.batches():
            texts = []
            for row in batch:
                number += 1
                named = zip(row, source.columns, strict=True)
                cells = [self._cell_xml(value, column, source) for value, column in named]
                texts.append(row_xml(number, letters, cells))
            yield "".join(texts)

    def _cell_xml(self, value: object, column: str, source: _SourceTable) -> str:
        """Return a cell's XML, empty for null; count a text that is too long as shortened."""
        match value:
            case None:
                return ""
            case bool():
                return value_cell_xml("b", int(value))
            case int() | float() | Decimal() if _is_exact(value):
                return value_cell_xml("n", value)
            case date() | time() if _has_excel_number(value):
                days = to_excel(value)  # type: ignore[no-untyped-call]
                return value_cell_xml("n", days, self._dates[type(value)])
        text = str(value)
        style = self._quoted if is_hazard(text) else 0
        try:
            return text_cell_xml(text, style)
        except TextTooLong:
            source.shortened[column] += 1
            return _shortened_cell(text, style)


def _is_exact(value: float | Decimal) -> bool:
    """Return True if Excel keeps every digit of the number."""
    match value:
        case float():
            return math.isfinite(value)
        case Decimal():
            return len(value.as_tuple().digits) <= _DIGITS_MAX
    return abs(value) < 10**_DIGITS_MAX


def _has_excel_number(value: date | time) -> bool:
    """Return True for a time, and for a date from March 1900 that Excel can store as a number."""
    if isinstance(value, datetime):
        value = value.date()
    return isinstance(value, time) or value >= _FIRST_DAY


def _shortened_cell(text: str, style: int) -> str:
    """Return the XML of a cell with the beginning of a text and a note of its length."""
    ending = f" [shortened: {len(text):,} characters]"
    kept = TEXT_CHARACTERS_MAX - len(ending)
    while True:
        try:
            return text_cell_xml(text[:kept] + ending, style)
        except TextTooLong:
            # Characters that XML cannot contain take more room.
            kept = kept * 9 // 10


# -- XML of cells ----------------------------------------------------------------------------------


def style_number(
    sheet: Worksheet,
    number_format: str | None = None,
    color: str | None = None,
    *,
    is_bold: bool = False,
    wraps: bool = False,
    is_quoted: bool = False,
) -> int:
    """Return the number of a style in the workbook's library, for cells with these properties."""
    cell = WriteOnlyCell(sheet)
    if number_format is not None:
        cell.number_format = number_format
    if color is not None:
        cell.fill = PatternFill("solid", fgColor=color)
    if is_bold:
        cell.font = Font(bold=True)
    if wraps:
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.quotePrefix = is_quoted
    return int(cell.style_id)


def row_xml(number: int, letters: Sequence[str], cells: Sequence[str]) -> str:
    """Return the XML of row `number` with the XML of its cells; empty cells are left out."""
    assert len(cells) <= len(letters), f"row {number} has more cells than columns"
    placed = zip(letters, cells, strict=False)
    joined = "".join([f'<c r="{column}{number}"{cell}' for column, cell in placed if cell])
    return f'<row r="{number}">{joined}</row>'


def text_cell_xml(text: str, style: int = 0) -> str:
    """Return the XML after the reference of a text cell, which is never a formula.

    Raises:
        TextTooLong: A cell cannot hold the text.
    """
    if not text:
        return f' s="{style}" t="inlineStr"/>'
    # Readers of XML would drop a text of blanks.
    bare = text.strip()
    by_number = _BY_NUMBER if bare else _ANY
    written = by_number.sub(lambda found: f"_x{ord(found.group()):04X}_", text)
    # Excel counts UTF-16 units; a character has one or two.
    units = len(written)
    if units > TEXT_CHARACTERS_MAX // 2:
        units = len(written.encode("utf-16-le")) // 2
    if units > TEXT_CHARACTERS_MAX:
        raise TextTooLong
    keeps = ' xml:space="preserve"' if bare != text else ""
    return f' s="{style}" t="inlineStr"><is><t{keeps}>{escape(written)}</t></is></c>'


def value_cell_xml(kind: str, value: object, style: int = 0) -> str:
    """Return the XML after the reference of a cell with a number ("n"), boolean ("b") or error
    ("e").
    """
    return f' s="{style}" t="{kind}"><v>{value}</v></c>'
