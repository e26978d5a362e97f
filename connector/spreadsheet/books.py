"""Sheets of workbooks: xlsx by openpyxl, xls by xlrd, ods by its XML.

Each cell becomes a text, a number, a boolean or a date, as typed, with the unit that its number
format shows. A cell whose format shows something else than its value has no value: it is refused
with the stored value and the format.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import openpyxl
import xlrd
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHEET_MAIN_NS

from connector.errors import SpreadsheetError
from connector.spreadsheet.headings import Sheet, find_headings, has_report_headings
from connector.spreadsheet.numbers import as_typed, is_too_large, number_meanings, unit_of
from connector.spreadsheet.problems import Amount, Cell, Flaw, PartlyVisibleCell

BookKind = Literal["xlsx", "ods", "xls"]
"""Kind of workbook: current Excel, OpenDocument, or Excel before 2007."""

ROWS_MAX = 50_000
"""Maximum number of rows of a table: at 600 requests a minute they take 83 minutes."""

_COLUMNS_MAX = 1_000
_UNPACKED_BYTES_MAX = 256 * 1024 * 1024
_PROLOG_BYTES = 4_096
_Read = Cell | Flaw


def _add_row(sheet: Sheet, index: int, cells: Iterable[tuple[int, _Read]]) -> None:
    """Add the filled cells of a row. Raises `SpreadsheetError` for one twice or too far."""
    row: list[Cell] = []
    for column, value in cells:
        if isinstance(value, Flaw):
            sheet.flaws.setdefault(index, {})[column] = value
        elif value == "":
            continue
        if column < len(row) or index < len(sheet.rows):
            message = f"sheet {sheet.name!r}, row {index + 1}: a cell occurs twice or out of order"
            raise SpreadsheetError(message, code="damaged_spreadsheet")
        if column >= _COLUMNS_MAX:
            raise SpreadsheetError(
                f"sheet {sheet.name!r} has a cell in column {column + 1:,}, row {index + 1:,}",
                action=f"Delete the cells to the right of column {_COLUMNS_MAX:,}.",
                code="unsafe_workbook",
            )
        row += [""] * (column - len(row))
        row.append(value.content if isinstance(value, Flaw) else value)
    if row:
        if index > ROWS_MAX:
            raise too_many_rows_error(f"sheet {sheet.name!r}")
        sheet.rows += [[] for _ in range(index - len(sheet.rows))]
        sheet.rows.append(row)


def too_many_rows_error(name: str) -> SpreadsheetError:
    """Return the error for a file with more rows than one push takes."""
    return SpreadsheetError(
        f"{name} has more than {ROWS_MAX:,} rows",
        action=f"Split the file into files of at most {ROWS_MAX:,} rows.",
        code="unsafe_workbook",
    )


def read_sheet(path: Path, content: bytes, kind: BookKind, wanted: str | None) -> Sheet:
    """Return the wanted sheet, or the only visible one with a table.

    Raises `SpreadsheetError`.
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
            if wanted not in sheets:
                action = f"Use one of: {', '.join(map(repr, sheets))}."
                message = f"{path} has no sheet {wanted!r}"
                raise SpreadsheetError(
                    message, code="sheet_unknown", action=action, names=tuple(sheets)
                )
            return sheets[wanted][1]()
    except (SpreadsheetError, MemoryError):
        raise
    except Exception as error:  # the libraries raise arbitrary errors for damaged files
        if "encrypted" in str(error):
            message = f"{path} is encrypted with a password"
            raise SpreadsheetError(message, code="password_protected") from error
        raise SpreadsheetError(
            f"{path} cannot be read, because a part of the workbook is missing or damaged",
            code="damaged_spreadsheet",
        ) from error


def _check_archive(path: Path, content: bytes) -> None:
    """Raise `SpreadsheetError` for a zip that is too large or whose XML declares entities."""
    message = ""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(each.file_size for each in archive.infolist()) > _UNPACKED_BYTES_MAX:
            message = (
                f"is too large: unpacked, it has more than {_UNPACKED_BYTES_MAX / 1e6:,.0f} MB"
            )
        for name in () if message else archive.namelist():
            with archive.open(name) as member:
                prolog = member.read(_PROLOG_BYTES).replace(b"\0", b"")
            if re.search(rb"<!(?:DOCTYPE|ENTITY)", prolog):
                message = f"declares a document type in {name!r}, which is not allowed"
    if message:
        raise SpreadsheetError(f"{path} {message}", code="unsafe_workbook")


def _only_table(path: Path, sheets: Mapping[str, Sheet]) -> Sheet:
    """Return the only sheet with rows, or the only one whose first rows have known headings."""
    headings = {name: find_headings(each.rows) for name, each in sheets.items() if each.rows}
    if not headings:
        raise SpreadsheetError(f"{path} has no visible sheet with rows", code="no_rows")
    reports = [n for n, each in headings.items() if has_report_headings(each.headings)]
    known = reports or [n for n, each in headings.items() if each.known_count >= 2]
    known = known if len(headings) > 1 else [*headings]
    if len(known) == 1:
        return sheets[known[0]]
    shown = (f"{n!r} ({', '.join(filter(None, h.headings[:4]))})" for n, h in headings.items())
    action = f"Choose one with --sheet: {'; '.join(shown)}."
    message = f"{path} has {len(headings)} sheets with rows"
    raise SpreadsheetError(message, code="sheet_unknown", action=action, names=tuple(headings))


_Sheets = dict[str, tuple[bool, Callable[[], Sheet]]]
"""By name of a sheet: whether it is visible, and a function that reads it."""

# -- xlsx ------------------------------------------------------------------------------------------

# Characters that are written by number, such as _x000D_, by the type of the cell.
_CODED: Mapping[str, re.Pattern[str]] = {
    "s": re.compile("_x(00[01][0-9A-Fa-f])_"),
    "inlineStr": re.compile("_x([0-9A-Fa-f]{4})_"),
}
_TRUE = ("1", "true")


class _XlsxParser(WorkSheetParser):
    """Parser of openpyxl, which also returns texts with control characters, and formulas without
    a value.
    """

    def parse_cell(self, element: Any) -> dict[str, Any]:
        """Return the cell; its type is "f" if it has a formula without a value."""
        cell: dict[str, Any] = super().parse_cell(element)
        value, pattern = cell["value"], _CODED.get(element.get("t"))
        if value is None and cell["data_type"] == "n":
            formula = element.find(f"{{{SHEET_MAIN_NS}}}f")
            if formula is not None:
                cell |= {"data_type": "f", "value": f"={formula.text or ''}"[:200]}
        elif pattern is not None and value and "_x" in value:
            cell["value"] = pattern.sub(lambda found: chr(int(found[1], 16)), value)
        return cell


def _xlsx_sheets(content: bytes) -> _Sheets:
    # The openpyxl objects for cells that can be written take twice the time.
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    return {s.title: (s.sheet_state == "visible", partial(_read_xlsx, s)) for s in book.worksheets}


def _read_xlsx(source: Any) -> Sheet:
    sheet, book = Sheet(source.title), source.parent
    form_of = lru_cache(maxsize=None)(
        lambda style: ReadOnlyCell(source, 1, 1, None, "n", style).number_format or "General"
    )

    def read(cell: dict[str, Any]) -> tuple[int, _Read]:
        value, kind = cell["value"], cell["data_type"]
        if value is None:
            value = ""
        elif kind in _FLAWS:
            value = Flaw(_FLAWS[kind], str(value))
        elif cell["style_id"] or type(value) not in (str, int):
            # False for nearly every cell.
            value = show_cell(value, form_of(cell["style_id"]))
        return cell["column"] - 1, value

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
            _add_row(sheet, number - 1, map(read, cells))
    for number, attributes in parser.row_dimensions.items():
        if attributes.get("hidden") in _TRUE:
            sheet.hidden_rows.add(int(number) - 1)
    for each in parser.merged_cells.mergeCell if parser.merged_cells is not None else ():
        left, top, right, bottom = each.bounds
        sheet.merged_ranges.append((top - 1, bottom - 1, left - 1, right - 1))
    return sheet


_FLAWS: Mapping[str, str] = {"e": "spreadsheet_error", "f": "formula_without_value"}

# -- xls -------------------------------------------------------------------------------------------


def _xls_sheets(content: bytes) -> _Sheets:
    book = xlrd.open_workbook(
        file_contents=content, formatting_info=True, ragged_rows=True, logfile=io.StringIO()
    )
    return {s.name: (not s.visibility, partial(_read_xls, book, s)) for s in book.sheets()}


def _read_xls(book: Any, source: Any) -> Sheet:
    sheet = Sheet(source.name)

    def read(cell: Any) -> _Read:
        form = str(book.format_map[book.xf_list[cell.xf_index].format_key].format_str)
        match cell.ctype:
            case xlrd.XL_CELL_EMPTY | xlrd.XL_CELL_BLANK:
                return ""
            case xlrd.XL_CELL_ERROR:
                return Flaw("spreadsheet_error", xlrd.error_text_from_code.get(cell.value, "#N/A"))
            case xlrd.XL_CELL_BOOLEAN:
                return bool(cell.value)
            case xlrd.XL_CELL_DATE:
                try:
                    return show_cell(_xls_date(cell.value, form, book.datemode), form)
                except (xlrd.xldate.XLDateError, ValueError, OverflowError):
                    return Flaw("unreadable_cell", f"{cell.value:.15g}")
        return show_cell(cell.value, form)

    for index in range(source.nrows):
        _add_row(sheet, index, ((n, read(cell)) for n, cell in enumerate(source.row(index))))
    sheet.hidden_rows = {n for n, each in source.rowinfo_map.items() if each.hidden}
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

_TABLE, _OFFICE, _TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{each}:1.0}}" for each in ("table", "office", "text")
)


def _ods_sheets(content: bytes) -> _Sheets:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        root = ElementTree.fromstring(archive.read("content.xml"))  # noqa: S314 # no entities
    tables = root.iter(f"{_TABLE}table")
    return {each.get(f"{_TABLE}name", ""): (True, partial(_read_ods, each)) for each in tables}


def _read_ods(table: ElementTree.Element) -> Sheet:
    """Return the sheet, without the empty cells that repeat up to the end of the sheet."""
    sheet, index = Sheet(table.get(f"{_TABLE}name", "")), 0
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[tuple[int, _Read]] = []
        column = 0
        for cell in row:
            times, value = int(cell.get(f"{_TABLE}number-columns-repeated", "1")), _ods_value(cell)
            last = min(column + times, _COLUMNS_MAX + 1) if value != "" else column
            cells += [(place, value) for place in range(column, last)]
            if (span := int(cell.get(f"{_TABLE}number-rows-spanned", "1"))) > 1:
                sheet.merged_ranges.append((index, index + span - 1, column, column))
            column += times
        times = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
        if row.get(f"{_TABLE}visibility") in ("collapse", "filter"):
            sheet.hidden_rows.add(index)
        for place in range(index, index + min(times, ROWS_MAX + 2)) if cells else ():
            _add_row(sheet, place, cells)
        index += times
    return sheet


def _ods_value(cell: ElementTree.Element) -> _Read:
    """Return the value of a cell; a number or a date that is shown in another form is a flaw."""
    for blanks in cell.iter(f"{_TEXT}s"):
        blanks.text = " " * min(int(blanks.get(f"{_TEXT}c", "1")), 1_000)
    text = "\n".join("".join(line.itertext()) for line in cell.findall(f"{_TEXT}p"))
    kind = cell.get(f"{_OFFICE}value-type", "")
    if kind == "date":
        moment = datetime.fromisoformat(cell.get(f"{_OFFICE}date-value", ""))
        figures = {int(each) for each in re.findall(r"[0-9]{1,4}", text)}
        if moment.day in figures and {moment.year, moment.year % 100} & figures:
            return moment if moment.time() != time() else moment.date()
        return Flaw("unusual_format", f"{moment}, shown as {text}")
    if kind not in ("float", "percentage", "currency"):
        return text
    unit = "%" if kind == "percentage" else cell.get(f"{_OFFICE}currency", "")
    return _ods_number(float(cell.get(f"{_OFFICE}value", "")), unit, text)


def _ods_number(value: float, unit: str, text: str) -> _Read:
    """Return a number with its unit, or a flaw if its text is another number."""
    figure = as_typed(round(value * 100, 10) if unit == "%" else value)
    if isinstance(figure, str):  # too large
        return figure
    if text.startswith("0") and text.isdecimal() and int(text) == figure:
        return text
    meanings = number_meanings(text)
    shown = meanings.values.values() if meanings is not None else ()
    if not any(min(abs(each - figure), abs(each - value)) < 1e-9 for each in shown):
        return Flaw("unusual_format", f"{value:g}, shown as {text}")
    return Amount(figure, unit_of(unit) or unit, "0.00", "") if unit else figure


# -- Number formats --------------------------------------------------------------------------------
# A number format can show a unit, leading zeros, fewer digits than the cell contains, or a date
# without its year. A cell whose format shows anything else is refused.

_LITERAL = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|([£€$¥%])|\[[A-Z]{3,7} ?[0-9]*\]|[_*].', re.IGNORECASE
)
"""Text in a number format, a unit, a color, or a blank as wide as a sign."""

_PLACES = re.compile(r"[-( ]*[#0?][#0?, ]*(?:\.([#0?]*))?[-) ]*").fullmatch
_MASK = re.compile(r"(?=.*0.*0)[0 \-+()/]*").fullmatch
_DATE_PART = re.compile(r"y+|m+|d+|h+|s+", re.IGNORECASE)


@lru_cache(maxsize=1_000)
def _sections(number_format: str) -> tuple[tuple[str, str, str], ...]:
    """Return codes, text or unit, and whole of each section: positive, negative, zero, and text."""
    parts = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', number_format)
    return tuple(
        (
            _LITERAL.sub("", part).strip(),
            "".join("".join(each) for each in _LITERAL.findall(part)).strip(" -()/\u00a0"),
            part,
        )
        for part in parts
    )


def show_cell(value: Any, number_format: str) -> _Read:
    """Return the value as its number format shows it, or a flaw if the format shows anything else.

    A rounded number, a hidden value, and a date without its year keep their value and are marked.
    """
    if isinstance(value, float) and isinstance(value := as_typed(value), str):
        return value
    shown: Cell | None = value
    match value:
        case timedelta():
            shown = None
        case date() | time():
            shown = _show_date(value, number_format)
        case bool():
            pass
        case str():
            *_, (codes, literal, _) = _sections(number_format)
            if number_format.count(";") > 2 and not (codes or literal):
                shown = PartlyVisibleCell(value, "", number_format)
            elif "@" in codes and literal:
                shown = None
        case _ if not is_too_large(value):
            shown = _show_number(value, number_format)
    if shown is not None:
        return shown
    is_day = isinstance(value, datetime) and value.time() == time()
    stored = value.date() if is_day else value
    return Flaw("unusual_format", f"{stored}, shown by the format {number_format}")


def _show_number(number: float, number_format: str) -> Cell | None:
    """Return the number as its format shows it; None if the format shows anything else."""
    sections = [each for each in _sections(number_format)[:3] if "@" not in each[0]]
    sections = sections or [("General", "", "")]
    index = 1 if number < 0 else 2 if number == 0 else 0
    codes, unit, whole = sections[index if index < len(sections) else 0]
    if len(sections) > 1 and not (codes or unit):
        return PartlyVisibleCell(number, "", number_format)
    if len(sections) > 1 and number < 0 and not {*"-("} & {*whole}:
        return None
    mask = re.sub(r'["\\]', "", whole)
    if not unit and _MASK(mask) and number >= 0 and number == int(number):
        return _fill_mask(int(number), mask)
    places = _PLACES(codes)
    is_thousands = codes.rstrip(")- ").endswith(",")
    if not (codes.lower() == "general" or (places and not is_thousands)):
        return None
    if unit != "%" and unit_of(unit) is None:
        return None
    value, shown = as_typed(round(number * 100.0, 10)) if unit == "%" else number, ""
    assert not isinstance(value, str)
    decimals = len(places[1] or "") if places is not None else 0
    if places is not None and abs(round(value, decimals) - value) > 1e-9 * max(1.0, abs(value)):
        shown = f"{value:.{decimals}f}{'%' if unit == '%' else ''}"
    return Amount(value, unit_of(unit) or unit, number_format, shown) if unit or shown else number


def _fill_mask(number: int, mask: str) -> str:
    count = mask.count("0")
    digits = str(number).zfill(count)
    rest = iter(digits[len(digits) - count :])
    return digits[: len(digits) - count] + re.sub("0", lambda _: next(rest), mask)


def _show_date(cell: date | time, number_format: str) -> Cell | None:
    """Return the date or time that the format shows; None if it is only a part of a date."""
    codes, _, _ = _sections(number_format)[0]
    parts = [each.lower() for each in _DATE_PART.findall(codes)]
    letters, days = {each[0] for each in parts}, {"d", "dd"} & {*parts}
    has_time, has_year = bool({"h", "s"} & letters), "y" in letters
    if isinstance(cell, datetime) and not has_time and cell.time() == time():
        cell = cell.date()
    if isinstance(cell, time) or not parts or (days and has_year):
        return cell
    if has_time and not days and not has_year:
        return cell.time() if isinstance(cell, datetime) else time()
    is_day_and_month = days and "m" in letters and not has_time
    return PartlyVisibleCell(cell, number_format, number_format) if is_day_and_month else None
