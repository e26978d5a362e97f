"""One row of a spreadsheet, and what can be wrong with it. Plain values."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

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
class SheetRow:
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


# -- Unreadable ------------------------------------------------------------------------------------
# Why a cell cannot be read as its field, and how cells are shown in problems.


RECEIVED_CHARACTERS_MAX = 80
"""As much of a cell as a problem shows."""

ReadText = Callable[[str], Any]
"""Reads a text that is not blank and has no outer blanks, or raises `Unreadable`."""

ReadTyped = Callable[[Any], Any]
"""Reads a cell that a spreadsheet program typed: number, truth value, date or time; or raises."""


class Unreadable(Exception):
    """A cell cannot be read as its field. Never leaves this room: it becomes a `Problem`."""

    def __init__(
        self, code: str, message: str, *, allowed: str | None = None, fix: str | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.allowed, self.fix = code, message, allowed, fix

    def problem(self, column: str, cell: Cell) -> Problem:
        """The problem that a person is shown."""
        return Problem(self.code, self.message, column, shown(cell), self.allowed, self.fix)


def shown(cell: Cell) -> str:
    """A cell as text, its invisible characters named, cut to a length that can be shown."""
    match cell:
        case bool():
            text = "TRUE" if cell else "FALSE"
        case datetime() | date() | time():
            text = cell.isoformat()
        case _:
            text = str(cell)
    if len(text) > RECEIVED_CHARACTERS_MAX:
        text = text[: RECEIVED_CHARACTERS_MAX - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"<{code_point(c)}>" for c in text)


def code_point(character: str) -> str:
    """The character's number as Unicode writes it: U+200B."""
    return f"U+{ord(character):04X}"


def named(character: str) -> str:
    """The character's name and number, for one that cannot be seen."""
    name = unicodedata.name(character, "").lower() or _CONTROLS.get(character, "control character")
    return f"{name} ({code_point(character)})"


_CONTROLS = {"\0": "NUL", "\t": "tabulator", "\n": "line break", "\r": "carriage return"}


def joined(values: tuple[str, ...]) -> str:
    """Allowed values in one line."""
    return ", ".join(values)
