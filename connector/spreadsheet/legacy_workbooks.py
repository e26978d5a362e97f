"""Workbooks in other formats: OpenDocument (ods), and Excel before 2007 (xls).

Both are read with the number formats that are part of a value. An ods file is streamed as XML. An
xls file has at most 65,536 rows and is read whole.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from itertools import islice
from typing import Any, Literal

import xlrd
from xlrd.biffh import XLRDError

from connector.errors import DamagedSpreadsheet, SpreadsheetError
from connector.spreadsheet.columns import LOOKED_AT
from connector.spreadsheet.numbers import (
    apply_format,
    as_integer_if_whole,
    as_typed,
    is_too_large,
    number_meanings,
    shows_duration,
    shows_time_alone,
    unit_of,
)
from connector.spreadsheet.problems import Amount, Cell, Flaw, PartlyVisibleCell, text_of
from connector.spreadsheet.source_file import (
    SourceFile,
    measure_archive,
    open_archive,
    parse_member,
    safe_parser,
)
from connector.spreadsheet.workbook import (
    AREA_MAX,
    COLUMNS_MAX,
    ReadRow,
    SheetOutline,
    choose_sheet,
    find_similar_name,
    format_duration,
)

_BYTES_MAX = 256 * 1024 * 1024
_UNSEEN = ("collapse", "filter")
_NO_FLAWS: Mapping[int, Flaw] = {}


@dataclass(frozen=True)
class LegacySheet:
    """Sheet of an ods or xls workbook, with its rows in memory."""

    source: SourceFile
    name: str
    outline: SheetOutline
    values: list[list[Cell]] = field(repr=False)
    flaws: Mapping[int, Mapping[int, Flaw]] = field(default_factory=dict, repr=False)

    def rows(self) -> Iterator[ReadRow]:
        """Yield all rows, including blank ones, as wide as the sheet."""
        self.source.check_unchanged()
        for index, cells in enumerate(self.values):
            padded = [*cells, *[""] * (self.outline.columns - len(cells))]
            yield index, padded, self.flaws.get(index, _NO_FLAWS)


def find_ods(source: SourceFile, name: str | None) -> LegacySheet:
    """Return the named sheet of an OpenDocument file, or its only table. Raises as `find_sheet`
    does.
    """
    measure_archive(source)
    scan = _OdsScan(source)
    with open_archive(source) as archive:
        for _ in parse_member(source, archive, "content.xml", scan.parser):
            pass
    return _choose_sheet(source, name, scan.sheets)


def find_xls(source: SourceFile, name: str | None) -> LegacySheet:
    """Return the named sheet of an xls workbook, or its only table. Raises as `find_sheet` does."""
    if source.size > _BYTES_MAX:
        raise SpreadsheetError(
            f"{source.path} is too large for this file type", code="unsafe_workbook"
        )
    with source.open() as file:
        content = file.read()
    try:
        book = xlrd.open_workbook(
            file_contents=content, formatting_info=True, ragged_rows=True, logfile=io.StringIO()
        )
        sheets = {
            each.name: _read_xls_sheet(source, book, each)
            for each in book.sheets()
            if not each.visibility
        }
    # The library raises arbitrary errors for damaged files.
    except Exception as error:
        if isinstance(error, XLRDError) and "encrypted" in str(error):
            raise SpreadsheetError(
                f"{source.path} is encrypted with a password", code="password_protected"
            ) from error
        raise DamagedSpreadsheet(f"{source.path} is damaged: {type(error).__name__}") from error
    return _choose_sheet(source, name, sheets)


def _choose_sheet(
    source: SourceFile, wanted_name: str | None, sheets: Mapping[str, LegacySheet]
) -> LegacySheet:
    """Return the sheet with that name, or the only one with a table.

    Raises a `SpreadsheetError`.
    """
    if wanted_name is not None:
        return sheets[
            wanted_name if wanted_name in sheets else find_similar_name(source, sheets, wanted_name)
        ]
    filled = [name for name, each in sheets.items() if each.outline.rows]

    def first_rows(name: str) -> list[list[str]]:
        return [list(map(text_of, row)) for row in islice(sheets[name].values, LOOKED_AT)]

    return sheets[choose_sheet(source, filled, first_rows)]


# -- Before 2007 -----------------------------------------------------------------------------------


def _read_xls_sheet(source: SourceFile, book: Any, sheet: Any) -> LegacySheet:
    """Return a sheet of the xls library with the values of its cells."""
    flaws: dict[int, dict[int, Flaw]] = {}
    values: list[list[Cell]] = []
    for index in range(sheet.nrows):
        cells: list[Cell] = []
        for column, cell in enumerate(sheet.row(index)):
            flaw: Flaw | None = None
            if cell.ctype == xlrd.XL_CELL_ERROR:
                flaw = "error", xlrd.error_text_from_code.get(cell.value, "#N/A")
            else:
                try:
                    cells.append(_xls_value(book, cell))
                except (xlrd.xldate.XLDateError, ValueError, OverflowError):
                    flaw = "unreadable", f"{cell.value:.15g}"
            if flaw is not None:
                flaws.setdefault(index, {})[column] = flaw
                cells.append(flaw[1])
        values.append(cells)
    outline = SheetOutline()
    _set_extent(outline, values)
    rows = sheet.rowinfo_map.items()
    outline.hidden_rows = {number for number, info in rows if info.hidden}
    outline.hidden_columns = {n for n, info in sheet.colinfo_map.items() if info.hidden}
    outline.merged_ranges = [_range_reference(*each) for each in sheet.merged_cells]
    return LegacySheet(source, sheet.name, outline, values[: outline.rows], flaws)


def _xls_value(book: Any, cell: Any) -> Cell:
    """Return the value of a cell of the xls library, as the cell's number format shows it."""
    match cell.ctype:
        case xlrd.XL_CELL_NUMBER:
            return apply_format(as_typed(cell.value), _xls_number_format(book, cell))
        case xlrd.XL_CELL_DATE:
            return _xls_date(cell.value, _xls_number_format(book, cell), book.datemode)
        case xlrd.XL_CELL_BOOLEAN:
            return bool(cell.value)
        case xlrd.XL_CELL_TEXT:
            return apply_format(str(cell.value), _xls_number_format(book, cell))
    return ""


def _xls_date(days: float, number_format: str, mode: Literal[0, 1]) -> Cell:
    """Return the date, time or duration of this number of days, as the format shows it.

    `mode` is 1 if the days count from 1904. Raises `XLDateError` if the calendar has no such date.
    """
    if shows_duration(number_format):
        return format_duration(days * 86_400)
    if days > 1 and shows_time_alone(number_format):
        days %= 1
    parts = xlrd.xldate_as_tuple(days, mode)
    if not any(parts[:3]):
        return time(*parts[3:])
    return apply_format(datetime(*parts) if any(parts[3:]) else date(*parts[:3]), number_format)


def _xls_number_format(book: Any, cell: Any) -> str:
    """Return the number format of a cell of the xls library, such as 0.00%."""
    return str(book.format_map[book.xf_list[cell.xf_index].format_key].format_str)


def _range_reference(first_row: int, end_row: int, first_column: int, end_column: int) -> str:
    """Return a reference such as B2:C5 for indexes from 0; the ends are exclusive."""
    first = xlrd.colname(first_column), xlrd.colname(end_column - 1)
    return f"{first[0]}{first_row + 1}:{first[1]}{end_row}"


def _set_extent(outline: SheetOutline, values: list[list[Cell]]) -> None:
    """Set the number of rows and columns in the outline, up to the last cell that is not empty."""
    for index, cells in enumerate(values):
        width = max((n for n, cell in enumerate(cells, 1) if cell != ""), default=0)
        if width:
            outline.rows = index + 1
            outline.columns = max(outline.columns, width)


# -- OpenDocument ----------------------------------------------------------------------------------


class _OdsScan:
    """Scan of an OpenDocument file's XML, which results in its `sheets`.

    Empty cells and rows that repeat up to the end of the sheet are not created.
    """

    def __init__(self, source: SourceFile) -> None:
        self.sheets: dict[str, LegacySheet] = {}
        self._source = source
        self.parser = safe_parser(source, "content.xml")
        self.parser.StartElementHandler = self._on_start_tag
        self.parser.EndElementHandler = self._on_end_tag
        self.parser.CharacterDataHandler = self._on_text
        self._name = ""
        self._values: list[list[Cell]] = []
        self._outline, self._columns = SheetOutline(), 0
        self._row: list[Cell] = []
        self._row_times = self._cell_times = 1
        self._area = self._empty_rows = self._empty_cells = 0
        self._lines: list[str] | None = None
        self._attributes: dict[str, str] = {}
        self._notes = 0

    def _on_start_tag(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin a sheet, row, cell or line of text, as the XML element says."""
        match tag:
            case "table:table":
                self._name = attributes.get("table:name", "")
                self._values, self._empty_rows = [], 0
                self._outline, self._columns = SheetOutline(), 0
            case "table:table-column":
                times = min(
                    _repeat_count(attributes.get("table:number-columns-repeated")), COLUMNS_MAX
                )
                if attributes.get("table:visibility") in _UNSEEN:
                    unseen = range(self._columns, self._columns + times)
                    self._outline.hidden_columns |= {*unseen}
                self._columns += times
            case "table:table-row":
                self._row, self._empty_cells = [], 0
                self._row_times = _repeat_count(attributes.get("table:number-rows-repeated"))
                if attributes.get("table:visibility") in _UNSEEN:
                    self._outline.hidden_rows.add(len(self._values) + self._empty_rows)
            case "table:table-cell" | "table:covered-table-cell":
                self._attributes, self._lines = attributes, []
                self._cell_times = _repeat_count(attributes.get("table:number-columns-repeated"))
            case "office:annotation":
                self._notes += 1
            case "text:p" if self._lines is not None and not self._notes:
                self._lines.append("")
            case "text:s" if self._lines and not self._notes:
                self._lines[-1] += " " * min(_repeat_count(attributes.get("text:c")), 1_000)

    def _on_text(self, text: str) -> None:
        """Add the text to the last line of the current cell."""
        if self._lines and not self._notes:
            self._lines[-1] += text

    def _on_end_tag(self, tag: str) -> None:
        """End a sheet, row or cell."""
        match tag:
            case "office:annotation":
                self._notes -= 1
            case "table:table-cell" | "table:covered-table-cell":
                self._add_cell()
            case "table:table-row":
                self._add_row()
            case "table:table":
                _set_extent(self._outline, self._values)
                sheet = LegacySheet(self._source, self._name, self._outline, self._values)
                self.sheets.setdefault(self._name, sheet)

    def _add_cell(self) -> None:
        """Add the current cell to the row as often as it is repeated; empty cells only before
        others.
        """
        value = _ods_value(self._attributes, "\n".join(self._lines or ()))
        if self._lines == [""] and isinstance(value, int | float):
            value = PartlyVisibleCell(value, "", ";;;")
        self._lines = None
        if value == "":
            self._empty_cells += self._cell_times
            return
        self._count_created_cells(self._empty_cells + self._cell_times)
        self._row += [""] * self._empty_cells + [value] * self._cell_times
        self._empty_cells = 0

    def _add_row(self) -> None:
        """Add the current row to the sheet as often as it is repeated; empty rows only before
        others.
        """
        if not self._row:
            self._empty_rows += self._row_times
            return
        self._count_created_cells(self._empty_rows + len(self._row) * (self._row_times - 1))
        self._values += [[] for _ in range(self._empty_rows)]
        self._values += [list(self._row) for _ in range(self._row_times)]
        self._empty_rows = 0

    def _count_created_cells(self, cells: int) -> None:
        """Count cells before they are created. Raises `SpreadsheetError` if there are too many."""
        self._area += cells
        if self._area > AREA_MAX:
            raise SpreadsheetError(
                f"{self._source.path}: the table has more than {AREA_MAX:,} cells",
                action=(
                    "Delete the empty rows and columns around the table, or save the sheet as csv."
                ),
                code="unsafe_workbook",
            )


def _repeat_count(text: str | None) -> int:
    """Return the number in an attribute for repetition; 1 if it is missing or invalid."""
    return max(1, int(text)) if text and text.isascii() and text.isdecimal() else 1


def _ods_value(attributes: Mapping[str, str], text: str) -> Cell:
    """Return the typed value of an ods cell, or its visible text if that shows something else."""
    kind = attributes.get("office:value-type", "")
    try:
        match kind:
            case "float" | "percentage" | "currency":
                return _ods_number(kind, attributes, text)
            case "boolean":
                return attributes.get("office:boolean-value") == "true"
            case "date":
                date_text = attributes.get("office:date-value", "")
                day = (
                    datetime.fromisoformat(date_text)
                    if "T" in date_text
                    else date.fromisoformat(date_text)
                )
                figures = [int(each) for each in re.findall(r"[0-9]{1,4}", text)]
                years = {day.year, day.year % 100} & {*figures}
                if day.day in figures and not years:
                    return PartlyVisibleCell(day, text, "d-mmm")
                shows = day.day in figures and years
                return day if not text or (shows and len(figures) > 1) else text
    except ValueError:
        pass
    return text


def _ods_number(kind: str, attributes: Mapping[str, str], text: str) -> Cell:
    """Return the number, with its unit and a rounded visible text; or the text if it is no number.

    `kind` is float, percentage or currency.
    """
    value = float(attributes.get("office:value", ""))
    if is_too_large(value):
        return as_typed(value)
    value = round(value * 100, 10) if kind == "percentage" else value
    unit = "%" if kind == "percentage" else attributes.get("office:currency", "")
    number_format = "0.00%" if unit == "%" else "0.00" if unit else "General"
    figure = as_integer_if_whole(value)
    meanings = number_meanings(text)
    if text and meanings is None and kind == "float":
        return text
    read = meanings.values.values() if meanings is not None else ()
    shown = "" if not read or min(abs(each - value) for each in read) < 1e-9 else text
    if text.startswith("0") and text.isdecimal() and int(text) == figure:
        return text
    return (
        Amount(figure, "%" if unit == "%" else unit_of(unit) or unit, number_format, shown)
        if unit or shown
        else figure
    )
