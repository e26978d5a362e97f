"""Workbooks (xlsx): measured first, and read with the types of their cells."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from itertools import islice, pairwise
from typing import Any

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from connector.errors import DamagedSpreadsheet, SheetUnknown, SpreadsheetError
from connector.spreadsheet.columns import (
    LOOKED_AT,
    appearance_key,
    column_letter,
    find_headings,
    has_report_headings,
)
from connector.spreadsheet.numbers import apply_format, as_typed, changes_visible_value
from connector.spreadsheet.problems import Cell, Flaw
from connector.spreadsheet.source_file import (
    SourceFile,
    measure_archive,
    open_archive,
    parse_member,
    safe_parser,
)

# -- Outline ---------------------------------------------------------------------------------------
# The XML of a sheet shows data that its values do not: cells outside, errors, and lost formulas.
#
# The reader of values allocates memory for each cell between the first and the last one, so two
# cells in opposite corners would exceed any memory. It also returns an empty text for an error and
# for a formula that was never calculated, and the later one of two cells with the same reference.
# Therefore the XML is scanned first, in pieces.


AREA_MAX = 5_000_000
"""Maximum number of cells between the first and the last of a sheet; a csv has no limit."""

_ROWS_MAX, COLUMNS_MAX = 1_048_576, 16_384
_TRUE = ("1", "true")

_MERGED_MAX = 20
"""Maximum number of ranges of merged cells that are named."""

_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6})\Z")
_FORMULA_CHARACTERS_MAX = 200
_RANGE_CHARACTERS_MAX = 21


@dataclass(slots=True)
class SheetOutline:
    """Extent and special cells of a sheet, by its XML; all indexes count from 0.

    Attributes:
        rows: Number of rows, from the top of the sheet.
        columns: Number of columns, from the left of the sheet.
        formats: Number formats that are part of the value, by column: first row, last row, format.
        hidden_rows: Indexes of hidden rows.
        flaws: Cells that have no value, by row and column.
        merged_ranges: First ranges of merged cells, such as B2:B5.
    """

    rows: int = 0
    columns: int = 0
    formats: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    flaws: dict[int, dict[int, Flaw]] = field(default_factory=dict)
    merged_ranges: list[str] = field(default_factory=list)


def _read_outline(
    source: SourceFile, archive: zipfile.ZipFile, member: str, sheet: str
) -> SheetOutline:
    """Return the sheet's outline.

    Raises `SpreadsheetError` for a sheet that is too large, and `DamagedSpreadsheet` for XML that
    is broken or has two cells with the same reference.
    """
    formats = _formats_by_style(source, archive)
    scan = _SheetScan(source, member, sheet, formats)
    shortened = partial(_shorten_plain_rows, kept_cells=_styled_cell_pattern(formats))
    for _ in parse_member(source, archive, member, scan.parser, shortened):
        pass
    scan.end_cell()
    return scan.outline


def _is_filled(source: SourceFile, archive: zipfile.ZipFile, member: str, sheet: str) -> bool:
    """Return True if any cell of the sheet has a value; stops reading at the first one."""
    scan = _SheetScan(source, member, sheet)
    return any(scan.outline.rows for _ in parse_member(source, archive, member, scan.parser))


_NO_FORMS: Mapping[str, str] = {}


class _SheetScan:
    """Scan of a sheet's XML, which results in its `outline`."""

    def __init__(
        self, source: SourceFile, member: str, sheet: str, formats: Mapping[str, str] = _NO_FORMS
    ) -> None:
        self.outline = SheetOutline()
        self._telling = formats
        self._where = f"{source.path}, sheet {sheet!r}"
        self.parser = safe_parser(source, member)
        self.parser.StartElementHandler = self._on_start_tag
        self._row = self._column = -1
        self._row_digits = ""
        self._columns: dict[str, int] = {}
        self._is_watched = self._is_error = self._is_text = False
        self._formula: list[str] | None = None
        self._value: list[str] = []

    def _on_start_tag(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note the position, the number format and the value of a cell, or a hidden row."""
        # Called for two elements of each cell, so the usual ones are checked first.
        name = tag if tag in ("c", "v", "is", "t") else tag.rpartition(":")[2]
        if name == "c":
            if self._is_watched:
                self.end_cell()
            column = self._column + 1
            if reference := attributes.get("r"):
                column = self._column_index(reference)
            self._column = column
            if self._telling:
                self._add_format(self._telling.get(attributes.get("s", "")))
            if attributes.get("t") in ("e", "str"):
                self._is_error = attributes["t"] == "e"
                self._is_text = self._is_watched = True
        elif name in ("v", "is", "f"):
            reach = self.outline
            if self._column >= reach.columns or self._row >= reach.rows:
                self._extend_to_cell()
            if name == "f":
                self._formula = []
                self._is_watched = True
                self.parser.CharacterDataHandler = self._formula.append
            elif self._is_watched:
                self._value = []
                self.parser.CharacterDataHandler = self._value.append
        elif name == "row":
            self._begin_row(attributes.get("r", ""))
            if attributes.get("hidden") in _TRUE:
                self.outline.hidden_rows.add(self._row)
        else:
            self._add_hidden_or_merged(name, attributes)

    def _add_hidden_or_merged(self, name: str, attributes: Mapping[str, str]) -> None:
        """Add hidden columns, or a range of merged cells, to the outline."""
        if name == "col" and attributes.get("hidden") in _TRUE:
            first, last = (int(attributes.get(each, "0")) for each in ("min", "max"))
            self.outline.hidden_columns |= {*range(first - 1, min(last, COLUMNS_MAX))}
        elif name == "mergeCell" and len(self.outline.merged_ranges) < _MERGED_MAX:
            self.outline.merged_ranges.append(attributes.get("ref", "")[:_RANGE_CHARACTERS_MAX])

    def _begin_row(self, number: str) -> None:
        """Begin the row with this number; the next row if it is empty.

        Raises `DamagedSpreadsheet` if rows are not in order.
        """
        self.end_cell()
        row = int(number) - 1 if number.isascii() and number.isdecimal() else self._row + 1
        if row <= self._row:
            raise self._out_of_order_error(f"row {row + 1}")
        self._row, self._column, self._row_digits = row, -1, str(row + 1)

    def _add_format(self, number_format: str | None) -> None:
        """Add the current cell's number format; a range of rows with the same one is extended."""
        if number_format is None:
            return
        stretches = self.outline.formats.setdefault(self._column, [])
        first = self._row
        if stretches and stretches[-1][1:] == (self._row - 1, number_format):
            first = stretches.pop()[0]
        stretches.append((first, self._row, number_format))

    def _column_index(self, reference: str) -> int:
        """Return the column of a cell in the current row, from 0.

        Raises `DamagedSpreadsheet` if it is not after the last cell.
        """
        letters = reference.removesuffix(self._row_digits)
        column = self._columns.get(letters)
        if column is None or len(letters) + len(self._row_digits) != len(reference):
            row, column = self._parse_reference(reference)
            if row != self._row:
                raise self._out_of_order_error(reference)
            self._columns[letters] = column
        if column <= self._column:
            raise self._out_of_order_error(reference)
        return column

    def _out_of_order_error(self, reference: str) -> DamagedSpreadsheet:
        return DamagedSpreadsheet(f"{self._where}: {reference} occurs twice or out of order")

    def _parse_reference(self, reference: str) -> tuple[int, int]:
        """Return the row and column of a reference such as B12, from 0."""
        found = _REFERENCE.match(reference)
        if not found:
            raise DamagedSpreadsheet(f"{self._where}: {reference[:20]!r} is not a cell reference")
        column = 0
        for each in found.group(1):
            column = column * 26 + ord(each) - ord("A") + 1
        return int(found.group(2)) - 1, column - 1

    def _extend_to_cell(self) -> None:
        """Extend the sheet to the current cell. Raises `SpreadsheetError` above the size limit."""
        reach = self.outline
        reach.rows = self._row + 1
        reach.columns = max(reach.columns, self._column + 1)
        if reach.rows * reach.columns > AREA_MAX or self._row >= _ROWS_MAX:
            place = f"{column_letter(self._column)}{self._row + 1}"
            raise _sheet_too_large_error(f"{self._where}: the table reaches to {place}")

    def end_cell(self) -> None:
        """Add the flaw of the last cell to the outline, if it has one."""
        if not self._is_watched:
            return
        self.parser.CharacterDataHandler = None
        value = "".join(self._value).strip()
        flaw: Flaw | None = None
        if self._is_error and (value or self._formula is not None):
            flaw = "error", value
        elif self._formula is not None and not value and not self._is_text:
            formula = "".join(self._formula).strip()[:_FORMULA_CHARACTERS_MAX]
            flaw = "not_calculated", f"={formula}"
        if flaw is not None:
            self.outline.flaws.setdefault(self._row, {})[self._column] = flaw
        self._is_watched = self._is_error = self._is_text = False
        self._formula, self._value = None, []


def _sheet_too_large_error(size: str) -> SpreadsheetError:
    return SpreadsheetError(
        f"{size}, which is more than {AREA_MAX:,} cells",
        action="Delete the empty rows and columns around the table, or save the sheet as csv.",
        code="unsafe_workbook",
    )


# -- Plain rows ------------------------------------------------------------------------------------
# Nearly all rows of nearly all files are plain: cells in order, each with only a value or a text.
# The scan only needs the last filled cell of such a row, so the other cells are removed before the
# scan. Other rows are not changed.


_PLAIN_TEXT = rb"(?:[^<>&\0-\x08\x0b\x0c\x0e-\x1f]++|&(?:amp|lt|gt|quot|apos);)*+"
_PLAIN_CELL = (
    rb'<c r="[A-Z]{1,3}(?P=row)"(?: s="[0-9]+")?(?: t="(?:b|d|n|s|inlineStr)")?'
    rb"(?: ?/>|><v>%(text)b</v></c>"
    rb'|><is><t(?: xml:space="preserve")?>%(text)b</t></is></c>)'
) % {b"text": _PLAIN_TEXT}
_PLAIN_ROW = re.compile(
    rb'(?P<start><row r="(?P<row>[1-9][0-9]*)"[^<>]*>)(?P<cells>(?:%b)*+)</row>' % _PLAIN_CELL
)
_COLUMN = re.compile(rb'<c r="([A-Z]+)')
_ORDERS_REMEMBERED = 1_000


def _shorten_plain_rows(
    pieces: Iterator[bytes], kept_cells: re.Pattern[bytes] | None
) -> Iterator[bytes]:
    """Yield a sheet's XML without the cells of plain rows that the scan does not need.

    Cells that match `kept_cells` are kept.
    """
    rest = b""
    replaced = partial(_shorten_row, kept_cells=kept_cells)
    for piece in pieces:
        rows, end, rest = (rest + piece).rpartition(b"</row>")
        if not end:
            # No row ends here, so the text need not be kept until one does.
            rows, rest = rest, b""
        try:
            (rows + end).decode()
        except UnicodeDecodeError:
            # The scan refuses it or detects its encoding.
            yield rows + end
        else:
            yield _PLAIN_ROW.sub(replaced, rows + end)
    yield rest


def _shorten_row(row: re.Match[bytes], kept_cells: re.Pattern[bytes] | None) -> bytes:
    """Return a plain row with its last filled cell and the cells that match `kept_cells`.

    A row whose cells are not in order is unchanged.
    """
    start, cells = row["start"], row["cells"]
    if not _are_in_order(tuple(_COLUMN.findall(cells))):
        return row[0]
    end = cells.rfind(b"</c>")
    at = cells.rfind(b"<c ", 0, end)
    last = cells[at:end] + b"</c>" if end >= 0 else b""
    kept = (
        b"".join(kept_cells.findall(cells, 0, at if end >= 0 else len(cells)))
        if kept_cells
        else b""
    )
    return start + kept + last + b"</row>"


@lru_cache(_ORDERS_REMEMBERED)
def _are_in_order(columns: tuple[bytes, ...]) -> bool:
    """Return True if each column is to the right of the previous one."""
    return all((len(left), left) < (len(right), right) for left, right in pairwise(columns))


# -- Number formats --------------------------------------------------------------------------------
# A format is part of the value if it shows more or less than the number.


_STYLES = "xl/styles.xml"
_USUAL = (
    "1=0|2=0.00|3=#,##0|4=#,##0.00|9=0%|10=0.00%|16=d-mmm|17=mmm-yy|18=h:mm AM/PM"
    "|19=h:mm:ss AM/PM|20=h:mm|21=h:mm:ss|37=#,##0|38=#,##0|39=#,##0.00|40=#,##0.00"
)
_BUILT_IN = dict(each.split("=", 1) for each in _USUAL.split("|"))
"""Built-in formats, which no file defines, that can be part of a value."""


def _formats_by_style(source: SourceFile, archive: zipfile.ZipFile) -> dict[str, str]:
    """Map the numbers of cell styles to their number formats, if these change the visible value."""
    if _STYLES not in archive.NameToInfo:
        return {}
    forms, styles, inside = dict(_BUILT_IN), [], []

    def start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "numFmt":
            forms[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name in ("cellXfs", "cellStyleXfs"):
            inside.append(name)
        elif name == "xf" and inside and inside[-1] == "cellXfs":
            styles.append(attributes.get("numFmtId", "0"))

    parser = safe_parser(source, _STYLES)
    parser.StartElementHandler = start
    for _ in parse_member(source, archive, _STYLES, parser):
        pass
    format_by_style = {str(n): forms.get(each, "") for n, each in enumerate(styles)}
    return {
        number: number_format
        for number, number_format in format_by_style.items()
        if changes_visible_value(number_format)
    }


def _styled_cell_pattern(formats: Mapping[str, str]) -> re.Pattern[bytes] | None:
    """Return a pattern for cells with these styles in a plain row; None without styles."""
    if not formats:
        return None
    numbers = "|".join(formats).encode()
    return re.compile(rb'<c r="[A-Z]+[0-9]+" s="(?:%b)"[^>]*?(?:/>|>.*?</c>)' % numbers, re.DOTALL)


# -- Workbook --------------------------------------------------------------------------------------


_WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"

ReadRow = tuple[int, list[Cell], Mapping[int, Flaw]]
"""Index of a row from 0, its cells from the first column of the sheet, and its flaws by column."""


@dataclass(frozen=True, slots=True)
class SheetFile:
    """Sheet of an xlsx workbook whose size was checked, so that its rows can be read."""

    source: SourceFile
    name: str
    outline: SheetOutline

    def rows(self) -> Iterator[ReadRow]:
        """Yield all rows, including blank ones; they have the same width.

        A cell with a flaw contains its visible part. Raises `DamagedSpreadsheet`,
        `SpreadsheetChanged`.
        """
        # The whole sheet is in memory from here; the outline ensures that it fits.
        sheet = _load_sheet(self.source, self.name)
        self.source.check_unchanged()
        first, last = sheet.start or (0, 0), sheet.end or (-1, -1)
        width = self.outline.columns
        if last[0] >= self.outline.rows or last[1] >= width:
            raise DamagedSpreadsheet(f"{self.source.path} can be read in two ways")
        values = sheet.iter_rows()
        # Formats of empty cells may extend further to the right than the table.
        within = {column: each for column, each in self.outline.formats.items() if column < width}
        forms = {column: iter(each) for column, each in within.items()}
        stretches = {column: next(each) for column, each in forms.items()}
        for index in range(self.outline.rows):
            # The plain case must be fast: there may be a million rows.
            cells: list[Any] = [
                _as_entered(v) if v.__class__ in _RETYPED else v for v in next(values, ())
            ]
            if len(cells) != width:
                cells = [*[""] * first[1], *cells]
                cells += [""] * (width - len(cells))
            for column, (begin, end, number_format) in list(stretches.items()) if stretches else ():
                if begin <= index:
                    cells[column] = apply_format(cells[column], number_format)
                if index >= end:
                    stretches[column] = next(forms[column], (self.outline.rows, -1, ""))
            flaws = self.outline.flaws.get(index, {})
            for column, (_, content) in flaws.items():
                cells[column] = content
            yield index, cells, flaws


def find_sheet(source: SourceFile, name: str | None) -> SheetFile:
    """Return the sheet with that name, else the only visible one that is not empty.

    Raises `SheetUnknown`, `DamagedSpreadsheet` or another `SpreadsheetError`, for example for a
    workbook without any cell.
    """
    measure_archive(source)
    with open_archive(source) as archive:
        parts, visible = _worksheets(source, archive)
        if name is None:
            name = _find_only_table(source, archive, {each: parts[each] for each in visible})
        elif name not in parts:
            name = find_similar_name(source, parts, name)
        return SheetFile(source, name, _read_outline(source, archive, parts[name], name))


def _worksheets(source: SourceFile, archive: zipfile.ZipFile) -> tuple[dict[str, str], list[str]]:
    """Return the members of the worksheets by name, and the names of visible worksheets.

    Raises `SpreadsheetError` if the workbook refers to external files.
    """
    members = {}
    for name in archive.namelist():
        if name.lower().endswith(".rels"):
            for attributes in _element_attributes(source, archive, name, "Relationship"):
                _refuse_external_files(source, attributes)
                if name == _RELATIONS and attributes.get("Type", "").endswith("/worksheet"):
                    members[attributes.get("Id", "")] = _member_name(attributes.get("Target", ""))
    parts: dict[str, str] = {}
    visible = []
    for attributes in _element_attributes(source, archive, _WORKBOOK, "sheet"):
        identity = next((v for k, v in attributes.items() if k.endswith(":id")), "")
        part, name = members.get(identity), attributes.get("name", "")
        if part is None:
            continue  # The sheet is a chart.
        if name in parts or part not in archive.NameToInfo:
            raise DamagedSpreadsheet(f"{source.path}: sheet {name!r} is missing or occurs twice")
        parts[name] = part
        if attributes.get("state", "visible") == "visible":
            visible.append(name)
    return parts, visible


def _member_name(target: str) -> str:
    """Return the name of the zip member that is the target of a relation."""
    if target.startswith("/"):
        return target[1:]
    return target if target.startswith("xl/") else posixpath.normpath(f"xl/{target}")


def _refuse_external_files(source: SourceFile, relation: Mapping[str, str]) -> None:
    """Raise `SpreadsheetError` for a relation to another file, except for a hyperlink."""
    kind = relation.get("Type", "").rpartition("/")[2]
    is_outside = relation.get("TargetMode") == "External" and kind != "hyperlink"
    if is_outside or kind in ("externalLink", "externalLinkPath"):
        raise SpreadsheetError(
            f"{source.path} refers to other files ({kind}), which are not read",
            code="unsafe_workbook",
        )


def _element_attributes(
    source: SourceFile, archive: zipfile.ZipFile, member: str, tag_name: str
) -> list[dict[str, str]]:
    """Return the attributes of each element of that name in a member."""
    found: list[dict[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == tag_name:
            found.append(attributes)

    parser = safe_parser(source, member)
    parser.StartElementHandler = start
    for _ in parse_member(source, archive, member, parser):
        pass
    return found


def _find_only_table(source: SourceFile, archive: zipfile.ZipFile, parts: Mapping[str, str]) -> str:
    """Return the name of the only sheet with a table; `parts` has the member of each sheet.

    Raises a `SpreadsheetError` for none or several.
    """
    filled = [name for name, member in parts.items() if _is_filled(source, archive, member, name)]

    def first_rows(name: str) -> list[list[str]]:
        # The outline ensures that the sheet fits into memory.
        _read_outline(source, archive, parts[name], name)
        rows = islice(_load_sheet(source, name).iter_rows(), LOOKED_AT)
        return [[str(cell) for cell in row] for row in rows]

    return choose_sheet(source, filled, first_rows)


def choose_sheet(
    source: SourceFile, filled: Sequence[str], first_rows: Callable[[str], list[list[str]]]
) -> str:
    """Return the only `filled` sheet, or the only one whose first rows have known headings.

    Raises `SheetUnknown` for several, and `SpreadsheetError` for none.
    """
    if not filled:
        raise SpreadsheetError(f"{source.path} has no visible sheet with rows", code="no_rows")
    if len(filled) == 1:
        return filled[0]
    place_by_sheet = {name: find_headings(first_rows(name)) for name in filled}
    reports = [name for name, each in place_by_sheet.items() if has_report_headings(each.headings)]
    known = reports or [name for name, each in place_by_sheet.items() if each.known_count >= 2]
    if len(known) == 1:
        return known[0]
    shown = "; ".join(
        f"{name!r} ({', '.join(filter(None, each.headings[:4]))})"
        for name, each in place_by_sheet.items()
    )
    raise SheetUnknown(
        f"{source.path} has {len(filled)} sheets with rows",
        action=f"Choose one with --sheet: {shown}.",
        names=filled,
    )


def find_similar_name(source: SourceFile, names: Iterable[str], wanted: str) -> str:
    """Return the only name that differs from `wanted` only in letter case or blanks.

    Raises `SheetUnknown`.
    """
    similar = [name for name in names if appearance_key(name) == appearance_key(wanted)]
    if len(similar) != 1:
        raise SheetUnknown(
            f"{source.path} has no sheet {wanted!r}",
            action=f"Use one of: {', '.join(map(repr, names))}.",
            names=names,
        )
    return similar[0]


@lru_cache(maxsize=1)
def _load_sheet(source: SourceFile, name: str) -> CalamineSheet:
    """Return the sheet's values, cached because they are read up to three times."""
    with source.open() as file:
        try:
            return CalamineWorkbook.from_filelike(file).get_sheet_by_name(name)
        except CalamineError as error:
            raise DamagedSpreadsheet(
                f"{source.path}: sheet {name!r} is damaged: {error}"
            ) from error


def release_loaded_sheet() -> None:
    """Free the memory of the sheet that was read last."""
    _load_sheet.cache_clear()


_RETYPED = frozenset((float, timedelta))
"""Types of values that differ from the typed cell."""


def _as_entered(value: Any) -> Cell:
    """Return a number as the user entered it, or a duration as text, as in 37:30:00."""
    if isinstance(value, float):
        return as_typed(value)
    return format_duration(value.total_seconds())


def format_duration(total: float) -> str:
    """Return hours, minutes and seconds, as a spreadsheet shows this number of seconds."""
    seconds = round(total)
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
