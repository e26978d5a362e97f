"""Workbooks: xlsx, measured before they are read, and read as their cells were typed."""

from __future__ import annotations

import math
import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import BinaryIO

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from connector.errors.spreadsheet import DamagedSpreadsheet, NoRows, SheetUnknown, UnsafeWorkbook
from connector.spreadsheet import container
from connector.spreadsheet.columns import folded
from connector.spreadsheet.row import Cell
from connector.spreadsheet.sheet import Flaw, Outline, is_empty, outline
from connector.spreadsheet.source import Source

_WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_WHOLE_MAX = 10**15
"""Beyond this a spreadsheet's numbers have lost digits, and none must be made up for them."""


SheetRow = tuple[int, list[Cell], Mapping[int, Flaw]]
"""A row's index from 0, its cells from the sheet's first column, and its flaws by column."""


@dataclass(frozen=True, slots=True)
class SheetFile:
    """One sheet of a workbook that was measured."""

    source: Source
    name: str
    outline: Outline

    def rows(self) -> Iterator[SheetRow]:
        """All rows, blank ones too; they have the same width. A cell with a flaw holds what can be
        shown of it. Raises `DamagedSpreadsheet`, `SpreadsheetChanged`.
        """
        # The whole sheet is in memory from here; the outline says that it fits.
        with self.source.open() as file:
            sheet = _read(self.source, file, self.name)
        self.source.check()
        first, last = sheet.start or (0, 0), sheet.end or (-1, -1)
        width = self.outline.columns
        if last[0] >= self.outline.rows or last[1] >= width:
            raise DamagedSpreadsheet(f"{self.source.path} reads in two ways")
        flaws: dict[int, dict[int, Flaw]] = {}
        for (row, column), flaw in self.outline.flaws.items():
            flaws.setdefault(row, {})[column] = flaw
        values = sheet.iter_rows()
        for index in range(self.outline.rows):
            cells: list[Cell] = [""] * first[1]
            cells.extend(map(_cell, next(values, ())))
            cells.extend([""] * (width - len(cells)))
            here = flaws.get(index, {})
            for column, (_, what) in here.items():
                cells[column] = what
            yield index, cells, here


def find_sheet(source: Source, said: str | None) -> SheetFile:
    """The sheet of that name, else the only one that is visible and holds anything.

    Raises `SheetUnknown`, `NoRows` for a workbook without any cell, `UnsafeWorkbook`,
    `NotASpreadsheet`, `DamagedSpreadsheet`.
    """
    container.refuse_other_kinds(source)
    container.measure(source)
    with container.archive(source) as opened:
        sheets = _sheets(source, opened)
        name = _choose(source, opened, sheets, said)
        reach = outline(source, opened, sheets[name].part, name)
    return SheetFile(source, name, reach)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Where a sheet's XML is, and whether people see the sheet."""

    part: str
    is_visible: bool


def _sheets(source: Source, opened: zipfile.ZipFile) -> dict[str, _Sheet]:
    """The worksheets by name. Raises `UnsafeWorkbook` where the workbook reaches out of itself."""
    parts = {}
    for name in opened.namelist():
        if name.lower().endswith(".rels"):
            for attributes in _elements(source, opened, name, "Relationship"):
                _refuse_outside(source, attributes)
                if name == _RELATIONS and attributes.get("Type", "").endswith("/worksheet"):
                    parts[attributes.get("Id", "")] = _part(attributes.get("Target", ""))
    sheets: dict[str, _Sheet] = {}
    known = set(opened.namelist())
    for attributes in _elements(source, opened, _WORKBOOK, "sheet"):
        identity = next((v for k, v in attributes.items() if k.endswith(":id")), "")
        part, name = parts.get(identity), attributes.get("name", "")
        if part is None:
            continue  # A sheet that is a chart.
        if name in sheets or part not in known:
            raise DamagedSpreadsheet(f"{source.path}: sheet {name!r} is missing or there twice")
        sheets[name] = _Sheet(part, attributes.get("state", "visible") == "visible")
    return sheets


def _part(target: str) -> str:
    """The member that a relation of the workbook means."""
    if target.startswith("/"):
        return target[1:]
    return target if target.startswith("xl/") else posixpath.normpath(f"xl/{target}")


def _refuse_outside(source: Source, relation: Mapping[str, str]) -> None:
    kind = relation.get("Type", "").rpartition("/")[2]
    is_outside = relation.get("TargetMode") == "External" and kind != "hyperlink"
    if is_outside or kind in ("externalLink", "externalLinkPath"):
        raise UnsafeWorkbook(
            f"{source.path} takes values from outside itself ({kind}), which are not followed"
        )


def _elements(
    source: Source, opened: zipfile.ZipFile, part: str, wanted: str
) -> list[dict[str, str]]:
    """The attributes of each element of that name in a member."""
    found: list[dict[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == wanted:
            found.append(attributes)

    reading = container.parser(source, part)
    reading.StartElementHandler = start
    with container.naming_damage(source):
        for piece in container.pieces(source, opened, opened.getinfo(part)):
            reading.Parse(piece)
        reading.Parse(b"", True)
    return found


def _choose(
    source: Source, opened: zipfile.ZipFile, sheets: Mapping[str, _Sheet], said: str | None
) -> str:
    if said is not None:
        if said in sheets:
            return said
        alike = [name for name in sheets if folded(name) == folded(said)]
        if len(alike) == 1:
            return alike[0]
        raise SheetUnknown(
            f"{source.path} has no sheet {said!r}", action=f"Use one of: {_listed(sheets)}."
        )
    filled = [
        name
        for name, sheet in sheets.items()
        if sheet.is_visible and not is_empty(source, opened, sheet.part, name)
    ]
    if not filled:
        raise NoRows(f"{source.path} has no visible sheet that holds anything")
    if len(filled) > 1:
        raise SheetUnknown(
            f"{source.path} has {len(filled)} sheets with something in them",
            action=f"Name one with --sheet: {_listed(filled)}.",
        )
    return filled[0]


def _listed(names: Mapping[str, _Sheet] | list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _read(source: Source, file: BinaryIO, name: str) -> CalamineSheet:
    try:
        workbook = CalamineWorkbook.from_filelike(file)
        return workbook.get_sheet_by_name(name)
    except CalamineError as error:
        raise DamagedSpreadsheet(f"{source.path}: sheet {name!r} is damaged: {error}") from error
    except BaseException as error:
        # A broken assumption of the reader's own is none of Python's exceptions.
        if type(error).__name__ == "PanicException":
            raise DamagedSpreadsheet(f"{source.path}: sheet {name!r} cannot be read") from error
        raise


def _cell(value: object) -> Cell:
    """The value as it was typed: a whole number without a point, a length of time as text."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _WHOLE_MAX:
            return int(value)
        # No program writes these two; as text they are refused where a number belongs.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, timedelta):
        return _length(value)
    assert isinstance(value, Cell)
    return value


def _length(value: timedelta) -> str:
    """Hours, minutes and seconds, as a spreadsheet shows a length of time."""
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
