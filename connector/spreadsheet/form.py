"""The form of rows: as many cells as there are headings, and each cell one that can be read.

Nothing is dropped here and nothing is put right. A row that has another form is a row with
problems; what its cells mean is for others to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import get_args

from connector.engine.task import RowOutcome
from connector.spreadsheet.columns import Columns
from connector.spreadsheet.formula import EMPTY, MISSING, NOT_CALCULATED, unmark
from connector.spreadsheet.row import Cell, Problem, Row
from connector.spreadsheet.sheet import Flaw
from connector.words import counted

CELL_CHARACTERS_MAX = 1_000_000
"""A longer cell is a problem: no field of the API takes so much, and no spreadsheet shows it."""

FORM_PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "row_width": "The row has more or fewer cells than there are headings: put each cell below"
        " its heading.",
        "spreadsheet_error": "The cell holds a formula's error, such as #N/A: correct the formula"
        " or clear the cell.",
        "formula_without_value": "The cell holds a formula that was never calculated: open and save"
        " the file in a spreadsheet program, or put in the value.",
        "cell_too_long": "The cell is longer than any field of the API: shorten it.",
    }
)
"""Every code that a row's form gives, with one sentence on what it means and what to do."""

_RECEIVED_CHARACTERS = 80
_NO_FLAWS: Mapping[int, Flaw] = MappingProxyType({})
_OUTCOMES: Mapping[str, RowOutcome] = {each: each for each in get_args(RowOutcome)}


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a report says of one of its rows: how the row ended when it was last pushed.

    `outcome` is None where there is none, as in a row that somebody added to the report.
    """

    number: int | None
    outcome: RowOutcome | None
    code: str | None
    record_id: str | None


@dataclass(frozen=True, slots=True)
class TableRow(Row):
    """A row with what only its file tells: how many cells it really has, which of them have no
    value to read, and its earlier fate.
    """

    width: int = 0
    flaws: Mapping[int, Flaw] = field(default_factory=dict)
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form that a table's rows should have.

    `full_width` is how many cells a row may have where those behind the last heading are empty.
    """

    columns: Columns
    full_width: int

    def row(self, number: int, cells: Sequence[Cell], flaws: Mapping[int, Flaw] | None) -> TableRow:
        """The row of these cells. `flaws` are those that a workbook tells of, by column."""
        own, count = len(self.columns.headings), self.columns.count
        if len(cells) == count and not flaws and not self.columns.is_report:
            # The plain case comes first: there may be a million of them.
            kept = tuple(cells)
            problems = self._too_long(kept) if _size(kept) > CELL_CHARACTERS_MAX else ()
            return TableRow(number, kept, problems, own, _NO_FLAWS)
        if _is_blank(cells):
            return TableRow(number, ("",) * own, (), own, _NO_FLAWS)
        behind = list(cells[count:])
        if len(cells) <= self.full_width:
            while behind and behind[-1] == "":
                behind.pop()
        mine = [*cells[: min(own, len(cells))], *behind]
        kinds = dict(flaws or {})
        earlier = None
        if self.columns.is_report:
            earlier = _earlier(cells[own:count])
            mine = self._originals(mine, kinds)
        width = len(mine)
        mine.extend([""] * (own - width))
        problems = (*self._width(width), *self._flawed(kinds), *self._too_long(mine))
        return TableRow(number, tuple(mine), problems, width, kinds, earlier)

    def _originals(self, cells: list[Cell], flaws: dict[int, Flaw]) -> list[Cell]:
        """A report's cells as they were before it was written."""
        while cells and cells[-1] == MISSING:
            cells.pop()
        own = len(self.columns.headings)
        originals: list[Cell] = []
        for index, cell in enumerate(cells):
            if isinstance(cell, str) and index not in flaws:
                if cell == EMPTY and index >= own:
                    cell = ""  # noqa: PLW2901 # what it stands for
                elif cell.startswith(NOT_CALCULATED):
                    cell = cell[len(NOT_CALCULATED) :]  # noqa: PLW2901 # what it stands for
                    flaws[index] = ("not_calculated", cell)
                else:
                    cell = unmark(cell)  # noqa: PLW2901 # what it stands for
            originals.append(cell)
        return originals

    def _width(self, width: int) -> tuple[Problem, ...]:
        own = len(self.columns.headings)
        if width == own:
            return ()
        return (
            Problem(
                code="row_width",
                message=f"The row has {counted(width, 'cell')} and there are {own} headings.",
                received=counted(width, "cell"),
                allowed=counted(own, "cell"),
                fix='Put each cell below its heading; in a csv, put quotes (") around a cell that'
                " holds the delimiter.",
            ),
        )

    def _flawed(self, flaws: Mapping[int, Flaw]) -> tuple[Problem, ...]:
        return tuple(
            _failed(self._heading(index), what)
            if kind == "error"
            else Problem(
                code="formula_without_value",
                message="The cell has a formula and no value: it was never calculated.",
                column=self._heading(index),
                received=what[:_RECEIVED_CHARACTERS],
                allowed="a value",
                fix="Open and save the file in a spreadsheet program, or put in the value.",
            )
            for index, (kind, what) in sorted(flaws.items())
        )

    def _too_long(self, cells: Sequence[Cell]) -> tuple[Problem, ...]:
        return tuple(
            Problem(
                code="cell_too_long",
                message=f"The cell has {len(cell):,} characters.",
                column=self._heading(index),
                received=cell[:_RECEIVED_CHARACTERS],
                allowed=f"at most {CELL_CHARACTERS_MAX:,} characters",
                fix="Shorten the cell.",
            )
            for index, cell in enumerate(cells)
            if isinstance(cell, str) and len(cell) > CELL_CHARACTERS_MAX
        )

    def _heading(self, index: int) -> str | None:
        """The heading above the cell; None for a cell behind the last."""
        headings = self.columns.headings
        return headings[index] if index < len(headings) else None


def _is_blank(cells: Sequence[Cell]) -> bool:
    return all(isinstance(cell, str) and not cell.strip() for cell in cells)


def _size(cells: Sequence[Cell]) -> int:
    """The characters of all texts together."""
    try:
        return len("".join(cells))  # type: ignore[arg-type] # a csv has nothing but text
    except TypeError:
        return sum(len(cell) for cell in cells if isinstance(cell, str))


def _failed(column: str | None, what: str) -> Problem:
    return Problem(
        code="spreadsheet_error",
        message=f"The cell's formula failed with {what[:_RECEIVED_CHARACTERS]}.",
        column=column,
        received=what[:_RECEIVED_CHARACTERS],
        allowed="a value",
        fix="Correct the formula, or put in the value.",
    )


def _earlier(cells: Sequence[Cell]) -> Earlier:
    texts = [unmark(cell) if isinstance(cell, str) else str(cell) for cell in cells]
    number, outcome, code, _, _, record = [*texts, *[""] * 6][:6]
    return Earlier(
        number=int(number) if number.isascii() and number.isdecimal() else None,
        outcome=_OUTCOMES.get(outcome.strip()),
        code=code.strip() or None,
        record_id=record.strip() or None,
    )
