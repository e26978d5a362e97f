"""One row of a spreadsheet, and what can be wrong with it. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time

Cell = str | int | float | bool | date | datetime | time
"""What a cell holds: text, always, in a csv; in an xlsx also a number, a truth value or a date,
as it was typed. An empty cell is the empty string.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a row, for a person to correct.

    `code` is stable and documented. `column` is the heading, None where it is the whole row.
    `received` is the cell as text, cut to a length that can be shown. `allowed` says what would
    have been right, and `fix` what to do, in one sentence each.
    """

    code: str
    message: str
    column: str | None = None
    received: str | None = None
    allowed: str | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it was read.

    `number` is its number as a spreadsheet program shows it: the headings are row 1, and blank
    rows count. `cells` are as many as there are headings, or more, where the row is too wide.
    `problems` are those of its form: its width, for one.
    """

    number: int
    cells: tuple[Cell, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def is_blank(self) -> bool:
        """Whether no cell holds anything but blanks."""
        return all(isinstance(cell, str) and not cell.strip() for cell in self.cells)
