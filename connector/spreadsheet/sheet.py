"""What a sheet's XML tells that its values do not: where cells are, errors, and lost formulas.

The reader of values keeps a place in memory for each cell between the first and the last; two
cells in opposite corners would take more than any machine has. It also gives an empty text for an
error, and for a formula that was never calculated, and the later of two cells that claim one
place. So the XML is walked first, in pieces, without keeping it.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from connector.errors.spreadsheet import DamagedSpreadsheet, UnsafeWorkbook
from connector.spreadsheet.columns import letter
from connector.spreadsheet.container import naming_damage, parser, pieces
from connector.spreadsheet.source import Source

AREA_MAX = 5_000_000
"""Cells between the first and the last of a sheet. A csv may have any number."""

ROWS_MAX = 1_048_576
COLUMNS_MAX = 16_384

MERGED_MAX = 20
"""As many ranges of merged cells are told of."""

_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6})\Z")
_FORMULA_CHARACTERS_MAX = 200
_RANGE_CHARACTERS_MAX = 21

Flaw = tuple[Literal["error", "not_calculated"], str]
"""What is wrong with a cell, and the error's name or the formula."""


@dataclass(slots=True)
class Outline:
    """A sheet as its XML shows it: how far it reaches, and the cells that have no value to read.

    `rows` and `columns` count from the sheet's corner. `flaws` are by row and column, from 0.
    `merged` are the first of the ranges whose cells are merged, as B2:B5.
    """

    rows: int = 0
    columns: int = 0
    flaws: dict[tuple[int, int], Flaw] = field(default_factory=dict)
    merged: list[str] = field(default_factory=list)


def outline(source: Source, opened: zipfile.ZipFile, part: str, sheet: str) -> Outline:
    """Walk through the sheet. Raises `UnsafeWorkbook` for one that reaches too far,
    `DamagedSpreadsheet` for XML that is broken or has two cells in one place.
    """
    walk = _Walk(source, part, sheet)
    with naming_damage(source):
        for piece in pieces(source, opened, opened.getinfo(part)):
            walk.parser.Parse(piece)
        walk.parser.Parse(b"", True)
    walk.leave_cell()
    return walk.outline


def is_empty(source: Source, opened: zipfile.ZipFile, part: str, sheet: str) -> bool:
    """Whether no cell of the sheet holds anything; reads on only until one does."""
    walk = _Walk(source, part, sheet)
    with naming_damage(source):
        for piece in pieces(source, opened, opened.getinfo(part)):
            walk.parser.Parse(piece)
            if walk.outline.rows:
                return False
    return True


class _Walk:
    """The state of one walk through a sheet's XML."""

    def __init__(self, source: Source, part: str, sheet: str) -> None:
        self.outline = Outline()
        self._where = f"{source.path}, sheet {sheet!r}"
        self.parser = parser(source, part)
        self.parser.StartElementHandler = self._start
        self._row = self._column = -1
        self._row_digits = ""
        self._columns: dict[str, int] = {}
        self._is_watched = self._is_error = self._is_text = False
        self._formula: list[str] | None = None
        self._value: list[str] = []

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # Two elements for each cell come by here, so that the usual ones are asked for first.
        name = tag if tag in ("c", "v", "is", "t") else tag.rpartition(":")[2]
        if name == "c":
            if self._is_watched:
                self.leave_cell()
            column = self._column + 1
            if told := attributes.get("r"):
                column = self._column_of(told)
            self._column = column
            if attributes.get("t") in ("e", "str"):
                self._is_error = attributes["t"] == "e"
                self._is_text = self._is_watched = True
        elif name in ("v", "is", "f"):
            reach = self.outline
            if self._column >= reach.columns or self._row >= reach.rows:
                self._reach()
            if name == "f":
                self._formula = []
                self._is_watched = True
                self.parser.CharacterDataHandler = self._formula.append
            elif self._is_watched:
                self._value = []
                self.parser.CharacterDataHandler = self._value.append
        elif name == "row":
            self._enter_row(attributes.get("r", ""))
        elif name == "dimension":
            self._check_claim(attributes.get("ref", ""))
        elif name == "mergeCell" and len(self.outline.merged) < MERGED_MAX:
            self.outline.merged.append(attributes.get("ref", "")[:_RANGE_CHARACTERS_MAX])

    def _enter_row(self, told: str) -> None:
        self.leave_cell()
        row = int(told) - 1 if told.isascii() and told.isdecimal() else self._row + 1
        if row <= self._row:
            raise self._out_of_order(f"row {row + 1}")
        self._row, self._column, self._row_digits = row, -1, str(row + 1)

    def _column_of(self, reference: str) -> int:
        """The column of the next cell, from 0. Raises unless it is in this row and behind all."""
        letters = reference.removesuffix(self._row_digits)
        column = self._columns.get(letters)
        if column is None or len(letters) + len(self._row_digits) != len(reference):
            row, column = self._place(reference)
            if row != self._row:
                raise self._out_of_order(reference)
            self._columns[letters] = column
        if column <= self._column:
            raise self._out_of_order(reference)
        return column

    def _out_of_order(self, reference: str) -> DamagedSpreadsheet:
        return DamagedSpreadsheet(f"{self._where}: {reference} is there twice or out of order")

    def _place(self, reference: str) -> tuple[int, int]:
        """The row and column of a reference such as B12, from 0."""
        found = _REFERENCE.match(reference)
        if not found:
            raise DamagedSpreadsheet(f"{self._where}: {reference[:20]!r} is no place of a cell")
        column = 0
        for each in found.group(1):
            column = column * 26 + ord(each) - ord("A") + 1
        return int(found.group(2)) - 1, column - 1

    def _reach(self) -> None:
        """The present cell holds something: the sheet reaches as far as here."""
        reach = self.outline
        reach.rows = self._row + 1
        reach.columns = max(reach.columns, self._column + 1)
        if reach.rows * reach.columns > AREA_MAX or self._row >= ROWS_MAX:
            place = f"{letter(self._column)}{self._row + 1}"
            raise _too_far(f"{self._where}: the table reaches to {place}")

    def _check_claim(self, claim: str) -> None:
        """Refuse a size that is claimed and that no reader should make room for."""
        _, _, corner = claim.rpartition(":")
        if corner and _REFERENCE.match(corner):
            row, column = self._place(corner)
            if (row + 1) * (column + 1) > AREA_MAX:
                raise _too_far(f"{self._where}: the sheet says that it reaches to {corner}")

    def leave_cell(self) -> None:
        """Judge the cell that was walked through last, if it may have a flaw."""
        if not self._is_watched:
            return
        self.parser.CharacterDataHandler = None
        value = "".join(self._value).strip()
        place = (self._row, self._column)
        if self._is_error:
            self.outline.flaws[place] = ("error", value)
        elif self._formula is not None and not value and not self._is_text:
            formula = "".join(self._formula).strip()[:_FORMULA_CHARACTERS_MAX]
            self.outline.flaws[place] = ("not_calculated", f"={formula}")
        self._is_watched = self._is_error = self._is_text = False
        self._formula, self._value = None, []


def _too_far(what: str) -> UnsafeWorkbook:
    return UnsafeWorkbook(
        f"{what}, which is more than {AREA_MAX:,} cells",
        action="Delete the empty rows and columns around the table, or save the sheet as csv.",
    )
