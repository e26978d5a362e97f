"""Rows of a spreadsheet, and the problems that a check finds in them.

Problem codes are stable: users filter reports by them, and the documentation lists them. Their
texts are in `problems.toml`.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from importlib.resources import files
from typing import Any, NamedTuple

from connector.state.row import Problem

# -- Cells and rows --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amount:
    """Number with the unit that its cell shows: `%`, a currency code, or a currency sign.

    `value` is 17.5 for 17.5 %. `shown` is the visible text if it is less precise, such as 18%.
    """

    value: float
    unit: str
    number_format: str = "General"
    shown: str = ""

    def __str__(self) -> str:
        if self.shown:
            return self.shown
        number = int(self.value) if self.value == int(self.value) else self.value
        return f"{number}%" if self.unit == "%" else f"{self.unit} {number}"


@dataclass(frozen=True, slots=True)
class PartlyVisibleCell:
    """Cell whose number format shows less than the cell contains: 30-Dec, or nothing."""

    value: str | int | float | date
    shown: str
    number_format: str

    def __str__(self) -> str:
        return text_of(self.value)


Cell = str | int | float | bool | date | datetime | time | Amount | PartlyVisibleCell
"""Value of a cell. In a csv it is always text. In a workbook it may also be a number, a boolean or
a date, as typed or as shown. An empty cell is the empty string.
"""


class Flaw(NamedTuple):
    """Problem code of a cell without a value, and its content: an error, a formula, a number."""

    code: str
    content: str


@dataclass(frozen=True, slots=True)
class SheetRow:
    """Row of a table.

    Attributes:
        number: Row number as a spreadsheet program shows it.
        cells: One cell per heading, or more if the row is too wide.
        problems: Problems with the shape of the row.
        flaws: Reasons why cells have no value, by column index.
        missing_cells: Number of empty cells that were added at the end of a row that is too short.
        is_outside: True if the row does not belong to the table: totals, or repeated headings.
        may_be_split: True if it is next to a line with one cell, which may be a part of it.
        record_id: Id in the column `_id` of a report, which selects one of several records.
    """

    number: int
    cells: tuple[Cell, ...]
    problems: tuple[Problem, ...] = ()
    flaws: Mapping[int, Flaw] = field(default_factory=dict)
    missing_cells: int = 0
    is_outside: bool = False
    is_hidden: bool = False
    may_be_split: bool = False
    record_id: str = ""

    @property
    def is_misshapen(self) -> bool:
        """Return True if the cells cannot be matched to columns."""
        return any(each.column is None for each in self.problems)

    @property
    def is_left_out(self) -> bool:
        """Return True if the row is blank without a problem, or does not belong to the table."""
        return self.is_outside or (not self.problems and is_blank(self.cells))


def is_blank(cells: Sequence[Cell]) -> bool:
    """Return True if all cells are empty or blank."""
    for cell in cells:  # noqa: SIM110 # a generator takes twice the time
        if not isinstance(cell, str) or (cell and not cell.isspace()):
            return False
    return True


# -- Catalogue -------------------------------------------------------------------------------------

_TEXTS = tomllib.loads(files(__package__).joinpath("problems.toml").read_text("utf-8"))

PROBLEMS: Mapping[str, str] = _TEXTS["problems"]
WARNINGS: Mapping[str, str] = _TEXTS["warnings"]
REMARKS: Mapping[str, str] = _TEXTS["remarks"]
"""By code: what is wrong, a colon, and what to do. Warnings need a consent; remarks hold no row."""

_TEXT_OF_CODE = {**PROBLEMS, **WARNINGS, **REMARKS}

COLUMN_MISSING = "column_missing"
"""Code of rows that cannot create a record because the file lacks a column; reported once."""

ANSWERED = frozenset(
    (
        *("unknown_value", "value_not_accepted", "not_true_or_false", "reference_unknown"),
        *("date_format", "immediately", "not_a_number", "other_period", "ditto"),
    )
)
"""Codes of cells for which the user chooses one value for all equal cells of the column."""

DUPLICATES = frozenset(("duplicate_in_file", "duplicate_in_warehouse"))

UNSENT = frozenset(("invalid", "duplicate"))
"""Outcomes of rows that are not sent unchanged, but may be sent after a correction."""


def problem_of(
    code: str,
    message: str | None = None,
    column: str | None = None,
    *,
    received: Cell | None = None,
    allowed: str | None = None,
    fix: str | None = None,
    found: str | None = None,
) -> Problem:
    """Return the problem of that code, with the texts of the catalogue by default."""
    seen = None if received is None else visible_text(received)
    message, fix = message or message_of(code) or code, fix or fix_of(code)
    return Problem(code, message, column, seen, allowed, fix, found=found)


def message_of(code: str) -> str | None:
    """Return the general text of a code; None for an unknown code."""
    text = _TEXT_OF_CODE.get(code)
    return f"{text.partition(': ')[0]}." if text else None


def fix_of(code: str) -> str | None:
    """Return the general action for a code; None for an unknown code."""
    fix = _TEXT_OF_CODE.get(code, "").partition(": ")[2]
    return f"{fix[0].upper()}{fix[1:]}" if fix else None


# -- Results of reading a cell ---------------------------------------------------------------------

ReadText = Callable[[str], Any]
"""Reads a text that is not blank and has no outer blanks, or raises `CellError`."""

ReadTyped = Callable[[Any], Any]
"""Reads a typed cell: number, boolean, date or time; or raises `CellError`."""


@dataclass(frozen=True, slots=True)
class ValueWithNotes:
    """Value that was read from a cell, with codes of warnings and perhaps a message for each."""

    value: Any
    notes: tuple[tuple[str, str | None], ...]


def with_notes(value: Any, notes: Sequence[tuple[str, str | None]]) -> Any:
    """Return the value with these warnings, or alone if there are none."""
    return ValueWithNotes(value, tuple(notes)) if notes else value


def with_note(value: Any, code: str, message: str | None = None) -> ValueWithNotes:
    """Return the value with one more warning, which is put first."""
    if isinstance(value, ValueWithNotes):
        return ValueWithNotes(value.value, ((code, message), *value.notes))
    return ValueWithNotes(value, ((code, message),))


class CellError(Exception):
    """Error of a cell that cannot be read as its field; `details` are those of `problem_of`."""

    def __init__(self, code: str, message: str | None = None, **details: str | None) -> None:
        self.code = code
        self.details: dict[str, Any] = {"code": code, "message": message, **details}
        super().__init__(message or message_of(code))

    def problem(self) -> Problem:
        """Return the problem of the cell."""
        return problem_of(**self.details)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """Question about a whole file; `choices` are answers, each with an example.

    If it `stops`, the file cannot be imported before the question is answered.
    """

    code: str
    message: str
    repair: str
    stops: bool = True
    column: str | None = None
    choices: tuple[tuple[str, str], ...] = ()


# -- Visible text of cells -------------------------------------------------------------------------

_RECEIVED_CHARACTERS_MAX = 80


def text_of(cell: Cell) -> str:
    """Return the cell as text: a date in ISO format, a boolean as TRUE or FALSE."""
    return str(cell).upper() if isinstance(cell, bool) else str(cell)


def visible_text(cell: Cell) -> str:
    """Return the cell as text with numbers for invisible characters, shortened for display."""
    text = text_of(cell)
    if len(text) > _RECEIVED_CHARACTERS_MAX:
        text = text[: _RECEIVED_CHARACTERS_MAX - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"<U+{ord(c):04X}>" for c in text)


def character_name(character: str) -> str:
    """Return the name and number of an invisible character."""
    name = unicodedata.name(character, "line break" if character in "\r\n" else "control character")
    return f"{name.lower()} (U+{ord(character):04X})"
