"""Sheets of workbooks: xlsx by openpyxl, xls by xlrd, ods by its XML.

Each cell becomes a text, a number, a boolean or a date, as typed, with the unit that its number
format shows. A number whose format shows something else than the number has no value: the user
decides what it means.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import openpyxl
import xlrd
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.utils import column_index_from_string
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHEET_MAIN_NS

from connector.errors import DamagedSpreadsheet, SheetUnknown, SpreadsheetError
from connector.spreadsheet.headings import (
    ROWS_SEARCHED,
    appearance_key,
    find_headings,
    has_report_headings,
)
from connector.spreadsheet.numbers import as_typed, is_too_large, number_meanings, unit_of
from connector.spreadsheet.problems import Amount, Cell, Flaw, PartlyVisibleCell, text_of

BookKind = Literal["xlsx", "ods", "xls"]
"""Kind of workbook: current Excel, OpenDocument, or Excel before 2007."""

ROWS_MAX = 50_000
"""Maximum number of rows of a table: at 600 requests a minute they take 83 minutes."""

_COLUMNS_MAX = 1_000
_UNPACKED_BYTES_MAX = 256 * 1024 * 1024
_PROLOG_BYTES = 4_096
_SAVE_AGAIN = "Open it in a spreadsheet program and save it again as xlsx, then use that file."


@dataclass(slots=True)
class Sheet:
    """Sheet of a workbook, with its rows in memory up to the last filled cell.

    Indexes count from 0.

    Attributes:
        flaws: Reasons why cells have no value, by row and column.
        merged_ranges: First row, last row, first column and last column of merged cells.
    """

    name: str
    rows: list[list[Cell]] = field(default_factory=list)
    flaws: dict[int, dict[int, Flaw]] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    merged_ranges: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add_row(self, index: int, cells: Iterable[tuple[int, Cell, Flaw | None]]) -> None:
        """Add the filled cells of a row, each with its column.

        Raises `DamagedSpreadsheet` if a cell occurs twice, and `SpreadsheetError` for a table that
        is too large.
        """
        row: list[Cell] = []
        for column, value, flaw in cells:
            if flaw is not None:
                self.flaws.setdefault(index, {})[column] = flaw
            elif value == "":
                continue
            if column < len(row):
                raise DamagedSpreadsheet(
                    f"sheet {self.name!r}, row {index + 1}: a cell occurs twice or out of order"
                )
            if column >= _COLUMNS_MAX:
                raise SpreadsheetError(
                    f"sheet {self.name!r} has a cell in column {column + 1:,}, row {index + 1:,}",
                    action=f"Delete the cells to the right of column {_COLUMNS_MAX:,}.",
                    code="unsafe_workbook",
                )
            row += [""] * (column - len(row))
            row.append(flaw[1] if flaw is not None else value)
        if not row:
            return
        if index < len(self.rows):
            raise DamagedSpreadsheet(f"sheet {self.name!r}: row {index + 1} occurs twice")
        if index > ROWS_MAX:
            raise too_many_rows_error(f"sheet {self.name!r}")
        self.rows += [[] for _ in range(index - len(self.rows))]
        self.rows.append(row)


def too_many_rows_error(name: str) -> SpreadsheetError:
    """Return the error for a file with more rows than one push takes."""
    return SpreadsheetError(
        f"{name} has more than {ROWS_MAX:,} rows",
        action=f"Split the file into files of at most {ROWS_MAX:,} rows.",
        code="unsafe_workbook",
    )


def read_sheet(path: Path, content: bytes, kind: BookKind, wanted: str | None) -> Sheet:
    """Return the wanted sheet, ignoring letter case; else the only visible one with a table.

    Raises `SheetUnknown` for several, `DamagedSpreadsheet`, or another `SpreadsheetError`, for
    example for a workbook without any cell.
    """
    read = {"xlsx": _xlsx_sheets, "xls": _xls_sheets, "ods": _ods_sheets}[kind]
    try:
        if kind != "xls":
            _check_archive(path, content)
        with warnings.catch_warnings(action="ignore"):
            sheets = read(content)
            if wanted is None:
                found = {n: load() for n, (is_visible, load) in sheets.items() if is_visible}
                return _only_table(path, found)
            return sheets[_find_name(path, sheets, wanted)][1]()
    except (SpreadsheetError, MemoryError) as error:
        if isinstance(error, DamagedSpreadsheet):
            raise DamagedSpreadsheet(f"{path}: {error}", action=_SAVE_AGAIN) from error
        raise
    except Exception as error:  # the libraries raise arbitrary errors for damaged files
        if "encrypted" in str(error):
            raise SpreadsheetError(
                f"{path} is encrypted with a password", code="password_protected"
            ) from error
        raise DamagedSpreadsheet(
            f"{path} cannot be read: {type(error).__name__}", action=_SAVE_AGAIN
        ) from error


def _check_archive(path: Path, content: bytes) -> None:
    """Raise `SpreadsheetError` for a zip that is too large or whose XML declares entities."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(each.file_size for each in archive.infolist()) > _UNPACKED_BYTES_MAX:
            raise SpreadsheetError(
                f"{path} is too large: unpacked, it has more than"
                f" {_UNPACKED_BYTES_MAX / 1e6:,.0f} MB",
                code="unsafe_workbook",
            )
        for name in archive.namelist():
            with archive.open(name) as member:
                if re.search(
                    rb"<!(?:DOCTYPE|ENTITY)", member.read(_PROLOG_BYTES).replace(b"\0", b"")
                ):
                    raise SpreadsheetError(
                        f"{path}: {name!r} declares a document type, which is not allowed",
                        code="unsafe_workbook",
                    )


def _only_table(path: Path, sheets: Mapping[str, Sheet]) -> Sheet:
    """Return the only sheet with rows, or the only one whose first rows have known headings."""
    filled = [each for each in sheets.values() if each.rows]
    if not filled:
        raise SpreadsheetError(f"{path} has no visible sheet with rows", code="no_rows")
    if len(filled) == 1:
        return filled[0]
    headings = {
        each.name: find_headings([list(map(text_of, row)) for row in each.rows[:ROWS_SEARCHED]])
        for each in filled
    }
    reports = [n for n, each in headings.items() if has_report_headings(each.headings)]
    known = reports or [n for n, each in headings.items() if each.known_count >= 2]
    if len(known) == 1:
        return sheets[known[0]]
    shown = "; ".join(
        f"{name!r} ({', '.join(filter(None, each.headings[:4]))})"
        for name, each in headings.items()
    )
    raise SheetUnknown(
        f"{path} has {len(filled)} sheets with rows",
        action=f"Choose one with --sheet: {shown}.",
        names=[each.name for each in filled],
    )


def _find_name(path: Path, names: Iterable[str], wanted: str) -> str:
    """Return the only name that is the wanted one, or differs only in letter case or blanks."""
    similar = [name for name in names if appearance_key(name) == appearance_key(wanted)]
    if wanted in similar:
        return wanted
    if len(similar) != 1:
        raise SheetUnknown(
            f"{path} has no sheet {wanted!r}",
            action=f"Use one of: {', '.join(map(repr, names))}.",
            names=names,
        )
    return similar[0]


_Sheets = dict[str, tuple[bool, Callable[[], Sheet]]]
"""By name of a sheet: whether it is visible, and a function that reads it."""

# -- xlsx ------------------------------------------------------------------------------------------


_CODED = re.compile("_x([0-9A-Fa-f]{4})_")
_CONTROL = re.compile("_x(00[01][0-9A-Fa-f])_")


class _XlsxParser(WorkSheetParser):
    """Parser of openpyxl, with a short way for texts, and formulas without a value."""

    def parse_cell(self, element: Any) -> dict[str, Any]:
        """Return the cell; its type is "f" if it has a formula without a value."""
        kind = element.get("t")
        if kind not in ("s", "inlineStr"):
            cell: dict[str, Any] = super().parse_cell(element)
            if cell["value"] is None and cell["data_type"] == "n":
                formula = element.find(f"{_MAIN}f")
                if formula is not None:
                    return cell | {"data_type": "f", "value": f"={formula.text or ''}"[:200]}
            return cell
        # The objects that openpyxl makes for texts take most of its time.
        letters = element.get("r", "").rstrip("0123456789")
        self.col_counter = _column_index(letters) if letters else self.col_counter + 1
        index = element.findtext(f"{_MAIN}v")
        if kind == "s":
            value = _decode(self.shared_strings[int(index)], _CONTROL) if index else None
        else:
            runs = (f"{_MAIN}is/{_MAIN}t", f"{_MAIN}is/{_MAIN}r/{_MAIN}t")
            texts = [each.text or "" for path in runs for each in element.iterfind(path)]
            value = _decode("".join(texts), _CODED)
        style = int(element.get("s", 0))
        return {"column": self.col_counter, "value": value, "data_type": "s", "style_id": style}


_MAIN = f"{{{SHEET_MAIN_NS}}}"
_column_index = lru_cache(maxsize=None)(column_index_from_string)


def _decode(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text with characters that are written by number, such as _x000D_."""
    return pattern.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _xlsx_sheets(content: bytes) -> _Sheets:
    # The openpyxl objects for cells that can be written take twice the time.
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    return {
        each.title: (each.sheet_state == "visible", partial(_read_xlsx, each))
        for each in book.worksheets
    }


def _read_xlsx(source: Any) -> Sheet:
    """Return the sheet, read by the parser of openpyxl, which also knows hidden and merged
    cells.
    """
    sheet, book = Sheet(source.title), source.parent
    form_of = lru_cache(maxsize=None)(
        lambda style: ReadOnlyCell(source, 1, 1, None, "n", style).number_format or "General"
    )

    def read(cell: dict[str, Any]) -> tuple[int, Cell, Flaw | None]:
        column, value, kind = cell["column"] - 1, cell["value"], cell["data_type"]
        if value is None:
            return column, "", None
        if kind == "e":
            return column, "", ("error", str(value))
        if kind == "f":
            return column, "", ("not_calculated", value)
        if not cell["style_id"] and type(value) in (str, int):
            # True for nearly every cell.
            return column, value, None
        return column, *apply_format(value, form_of(cell["style_id"]))

    with source._get_source() as xml:
        parser = _XlsxParser(
            xml,
            source._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for number, cells in parser.parse():
            sheet.add_row(number - 1, map(read, cells))
    sheet.hidden_rows = {
        int(number) - 1
        for number, attributes in parser.row_dimensions.items()
        if attributes.get("hidden") in _TRUE
    }
    for each in parser.column_dimensions.values():
        if each.get("hidden") in _TRUE:
            sheet.hidden_columns |= {*range(int(each["min"]) - 1, int(each["max"]))}
    for each in parser.merged_cells.mergeCell if parser.merged_cells is not None else ():
        first_column, first_row, last_column, last_row = each.bounds
        sheet.merged_ranges.append((first_row - 1, last_row - 1, first_column - 1, last_column - 1))
    return sheet


_TRUE = ("1", "true")

# -- xls -------------------------------------------------------------------------------------------


def _xls_sheets(content: bytes) -> _Sheets:
    book = xlrd.open_workbook(
        file_contents=content, formatting_info=True, ragged_rows=True, logfile=io.StringIO()
    )
    return {
        each.name: (not each.visibility, partial(_read_xls, book, each)) for each in book.sheets()
    }


def _read_xls(book: Any, source: Any) -> Sheet:
    """Return a sheet of xlrd with the values of its cells."""
    sheet = Sheet(source.name)

    def read(cell: Any) -> tuple[Cell, Flaw | None]:
        form = str(book.format_map[book.xf_list[cell.xf_index].format_key].format_str)
        match cell.ctype:
            case xlrd.XL_CELL_EMPTY | xlrd.XL_CELL_BLANK:
                return "", None
            case xlrd.XL_CELL_ERROR:
                return "", ("error", xlrd.error_text_from_code.get(cell.value, "#N/A"))
            case xlrd.XL_CELL_BOOLEAN:
                return bool(cell.value), None
            case xlrd.XL_CELL_DATE:
                try:
                    return apply_format(_xls_date(cell.value, form, book.datemode), form)
                except (xlrd.xldate.XLDateError, ValueError, OverflowError):
                    return "", ("unreadable", f"{cell.value:.15g}")
        return apply_format(cell.value, form)

    for index in range(source.nrows):
        row = enumerate(map(read, source.row(index)))
        sheet.add_row(index, [(column, *cell) for column, cell in row])
    sheet.hidden_rows = {n for n, each in source.rowinfo_map.items() if each.hidden}
    sheet.hidden_columns = {n for n, each in source.colinfo_map.items() if each.hidden}
    sheet.merged_ranges = [(r, s - 1, c, d - 1) for r, s, c, d in source.merged_cells]
    return sheet


def _xls_date(days: float, number_format: str, mode: Literal[0, 1]) -> timedelta | time | datetime:
    """Return a duration, time or date. Raises an error of xlrd if the calendar has no such date."""
    if re.search(r"\[(?:h+|m+|s+)\]", number_format, re.IGNORECASE):
        return timedelta(days=days)
    year, month, day, hour, minute, second = xlrd.xldate_as_tuple(days, mode)
    clock = time(hour, minute, second)
    return datetime.combine(date(year, month, day), clock) if year else clock


# -- OpenDocument ----------------------------------------------------------------------------------

_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TABLE, _OFFICE, _TEXT = (_NAMESPACE % each for each in ("table", "office", "text"))


def _ods_sheets(content: bytes) -> _Sheets:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        root = ElementTree.fromstring(archive.read("content.xml"))  # noqa: S314 # no entities
    return {
        each.get(f"{_TABLE}name", ""): (True, partial(_read_ods, each))
        for each in root.iter(f"{_TABLE}table")
    }


def _read_ods(table: ElementTree.Element) -> Sheet:
    """Return the sheet; empty cells and rows that repeat up to the end of the sheet are not
    made.
    """
    sheet, index, column = Sheet(table.get(f"{_TABLE}name", "")), 0, 0
    for each in table.iter(f"{_TABLE}table-column"):
        times = _repeat_count(each, "columns")
        if each.get(f"{_TABLE}visibility") in _UNSEEN:
            sheet.hidden_columns |= {*range(column, column + min(times, _COLUMNS_MAX))}
        column += times
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[tuple[int, Cell, Flaw | None]] = []
        column = 0
        for cell in row:
            times, value = _repeat_count(cell, "columns"), _ods_value(cell)
            if value != ("", None):
                places = range(column, min(column + times, _COLUMNS_MAX + 1))
                cells += [(each, *value) for each in places]
            column += times
            span = int(cell.get(f"{_TABLE}number-rows-spanned", "1"))
            if span > 1:
                sheet.merged_ranges.append((index, index + span - 1, column - 1, column - 1))
        times = _repeat_count(row, "rows")
        if row.get(f"{_TABLE}visibility") in _UNSEEN:
            sheet.hidden_rows.add(index)
        for place in range(index, index + min(times, ROWS_MAX + 2)) if cells else ():
            sheet.add_row(place, cells)
        index += times
    return sheet


_UNSEEN = ("collapse", "filter")


def _repeat_count(element: ElementTree.Element, name: str) -> int:
    """Return how many rows or columns an element stands for."""
    return int(element.get(f"{_TABLE}number-{name}-repeated", "1"))


def _ods_value(cell: ElementTree.Element) -> tuple[Cell, Flaw | None]:
    """Return the typed value of an ods cell, compared with the text that the cell shows."""
    lines = cell.findall(f"{_TEXT}p")
    text = "\n".join(map(_ods_text, lines))
    kind, number = cell.get(f"{_OFFICE}value-type", ""), cell.get(f"{_OFFICE}value", "")
    day = cell.get(f"{_OFFICE}date-value", "")
    try:
        if kind == "boolean":
            return cell.get(f"{_OFFICE}boolean-value") == "true", None
        if kind == "date" and day:
            return _ods_date(datetime.fromisoformat(day), text), None
        if kind in ("float", "percentage", "currency") and number:
            unit = "%" if kind == "percentage" else cell.get(f"{_OFFICE}currency", "")
            return _ods_number(float(number), unit, text if lines else None)
    except ValueError:
        pass
    return text, None


def _ods_text(line: ElementTree.Element) -> str:
    """Return the text of a paragraph; several blanks are written as one element."""
    parts = []
    for each in line.iter():
        if each.tag == f"{_TEXT}s":
            parts.append(" " * min(int(each.get(f"{_TEXT}c", "1")), 1_000))
        elif each.text:
            parts.append(each.text)
        if each.tail and each is not line:
            parts.append(each.tail)
    return "".join(parts)


def _ods_date(moment: datetime, text: str) -> Cell:
    """Return the date, or the text if the cell shows only a part of the date."""
    day = moment.date() if moment.time() == time() else moment
    figures = {int(each) for each in re.findall(r"[0-9]{1,4}", text)}
    has_year = bool({moment.year, moment.year % 100} & figures)
    if not text or (moment.day in figures and has_year and len(figures) > 1):
        return day
    return PartlyVisibleCell(day, text, "d-mmm") if moment.day in figures and not has_year else text


def _ods_number(value: float, unit: str, text: str | None) -> tuple[Cell, Flaw | None]:
    """Return a number with its unit, or a flaw if the cell shows no number."""
    if is_too_large(value):
        return as_typed(value), None
    figure = as_typed(round(value * 100, 10) if unit == "%" else value)
    if text == "":
        return PartlyVisibleCell(value, "", ";;;"), None
    meanings = number_meanings(text or "")
    if text and meanings is None:
        return "", ("unusual_format", f"{value:g}, shown as {text}")
    if text and text.startswith("0") and text.isdecimal() and int(text) == figure:
        return text, None
    is_exact = meanings is None or any(
        abs(each - value) < 1e-9 or each == figure for each in meanings.values.values()
    )
    shown = "" if is_exact else text or ""
    if not (unit or shown):
        return figure, None
    assert not isinstance(figure, str)
    form = "0.00%" if unit == "%" else "0.00"
    return Amount(figure, unit_of(unit) or unit, form, shown), None


# -- Number formats --------------------------------------------------------------------------------
# A number format can show a unit, leading zeros, fewer digits than the cell contains, or a part of
# a date. A format that shows anything else is not interpreted: the cell is refused with both texts.


_FORMAT_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<sign>[^\]-]*)[^\]]*\]|\[(?P<bracket>[^\]]*)\]'
    r"|[_*].|(?P<general>General)|(?P<code>.)",
    re.IGNORECASE | re.DOTALL,
)
_COLORS = re.compile(
    r"(?:Color ?\d+|Black|Blue|Cyan|Green|Magenta|Red|White|Yellow)", re.IGNORECASE
)
_DATE_PART = re.compile(r"y+|m+|d+|h+|s+|am/pm", re.IGNORECASE)
_PLACES = re.compile(r"[-( ]*[#0?][#0?,  ]*(?:\.([0#?]*))?(?:E[+-][0#?]+|\s*\?*/[?0-9]+)?[-) ]*")
_MASK = re.compile(r"(?=.*0.*0)[0 \-+()/]*")
_PARTS = "yyyy %Y yy %y mmmm %B mmm %b mm %m m %-m dddd %A ddd %a dd %d d %-d hh %H h %-H ss %S"
_STRFTIME = dict(zip(_PARTS.split()[::2], _PARTS.split()[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class _Section:
    """Section of a number format.

    Attributes:
        codes: Codes without literal texts.
        literal: Literal texts, joined.
        is_understood: False if it has a condition.
    """

    codes: str
    literal: str
    shows_sign: bool
    is_understood: bool = True


@lru_cache(maxsize=1_000)
def _sections(number_format: str) -> tuple[_Section, ...]:
    """Return the sections of a number format: for positive numbers, negative ones, zero and
    text.
    """
    found = []
    quoted = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', number_format)
    for part in quoted:
        codes, literal, is_understood = "", "", True
        for token in _FORMAT_TOKEN.finditer(part):
            if token["bracket"] is not None and not _COLORS.fullmatch(token["bracket"]):
                is_understood = bool(re.fullmatch("h+|m+|s+", token["bracket"], re.IGNORECASE))
                codes += token["bracket"]
            literal += token["quoted"] or token["escaped"] or token["sign"] or ""
            codes += "General" if token["general"] else token["code"] or ""
            if token["escaped"] and token["escaped"] in " -()/+":
                codes += token["escaped"]
        shows_sign = bool({*"-("} & {*part})
        found.append(
            _Section(codes.strip(), literal.strip(" -()/\u00a0"), shows_sign, is_understood)
        )
    return tuple(found)


def apply_format(  # noqa: PLR0911 # one return for each type of value
    value: Any, number_format: str
) -> tuple[Cell, Flaw | None]:
    """Return the value as its number format shows it, or a flaw if the format shows anything else.

    A number that is shown rounded, a hidden value, and a date without its year keep their value and
    also have the visible text.
    """
    sections = _sections(number_format)
    if isinstance(value, str):
        text = sections[3] if len(sections) > 3 else None
        if text is not None and not (text.codes or text.literal):
            return PartlyVisibleCell(value, "", number_format), None
        if any("@" in each.codes and each.literal for each in sections):
            return "", _format_flaw(value, number_format)
        return value, None
    if isinstance(value, timedelta):
        return format_duration(value.total_seconds()), None
    if isinstance(value, bool):
        return value, None
    if isinstance(value, date | time):
        return _apply_date_format(value, number_format), None
    number = as_typed(float(value)) if isinstance(value, float) else value
    if not isinstance(number, int | float) or is_too_large(number) or number_format == "General":
        return number, None
    numeric = [each for each in sections[:3] if "@" not in each.codes] or [_sections("General")[0]]
    index = 1 if number < 0 and len(numeric) > 1 else 2 if number == 0 and len(numeric) > 2 else 0
    section = numeric[index]
    if len(numeric) > 1 and not section.codes and not section.literal:
        return PartlyVisibleCell(number, "", number_format), None
    if not section.is_understood or (index == 1 and not section.shows_sign):
        return "", _format_flaw(number, number_format)
    return _apply_section(number, section, number_format)


def _format_flaw(value: Any, number_format: str) -> Flaw:
    return "unusual_format", f"{value}, shown by the format {number_format}"


def _apply_section(
    number: float, section: _Section, number_format: str
) -> tuple[Cell, Flaw | None]:
    """Return the number as one section shows it."""
    codes, unit = section.codes, section.literal
    for sign in "£€$¥%":
        if sign in codes:
            codes, unit = codes.replace(sign, "").strip(), unit or sign
    value = as_typed(float(round(number * 100, 10))) if unit == "%" else number
    assert not isinstance(value, str)
    if unit != "%" and unit_of(unit) is None:
        return "", _format_flaw(number, number_format)
    if not unit and _MASK.fullmatch(codes):
        return _apply_mask(number, codes), None
    places = _PLACES.fullmatch(codes)
    if codes != "General" and (places is None or codes.rstrip(")- ").endswith(",")):
        return "", _format_flaw(number, number_format)
    shown = ""
    if (places is not None and places[1] is not None) or (
        places is not None and "E" not in codes and "/" not in codes
    ):
        decimals = len(places[1] or "")
        if abs(round(value, decimals) - value) > 1e-9 * max(1.0, abs(value)):
            shown = f"{value:.{decimals}f}{'%' if unit == '%' else ''}"
    return (
        Amount(value, unit_of(unit) or unit, number_format, shown) if unit or shown else number
    ), None


def _apply_mask(number: float, codes: str) -> Cell:
    """Return the digits in a mask, such as 07700 900123 in 00000 000000."""
    if number < 0 or number != int(number):
        return number
    count = codes.count("0")
    digits = str(int(number)).rjust(count, "0")
    places = iter(digits[len(digits) - count :])
    masked = "".join(next(places) if each == "0" else each for each in codes)
    return digits[: len(digits) - count] + masked


def _apply_date_format(cell: date | time, number_format: str) -> Cell:
    """Return the date, or its visible text if the format shows only a part of it."""
    codes = _sections(number_format)[0].codes
    found = [each.lower() for each in _DATE_PART.findall(codes)]
    has_time = any(each[0] in "hs" for each in found)
    days, months = {"d", "dd"} & {*found}, [each for each in found if each[0] == "m"]
    years = any(each[0] == "y" for each in found)
    if isinstance(cell, datetime) and not has_time and cell.time() == time():
        cell = cell.date()
    if (
        isinstance(cell, time)
        or not found
        or (days and years and (len(months) > 1 or not has_time))
    ):
        return cell
    if not days and not years:
        return (
            cell.time()
            if isinstance(cell, datetime) and has_time
            else cell.strftime("%B")
            if months
            else time()
        )
    text = _DATE_PART.sub(lambda part: cell.strftime(_STRFTIME.get(part[0].lower(), " ")), codes)
    is_day = days and months and not has_time
    return PartlyVisibleCell(cell, text.strip(), number_format) if is_day else text.strip()


def format_duration(total: float) -> str:
    """Return hours, minutes and seconds, as a spreadsheet shows this number of seconds."""
    seconds = round(total)
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
