"""Rows of a spreadsheet, and the problems that a check finds in them.

A problem's code is stable: people filter reports by it, and the documents list it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any, Literal

from connector.catalog.value import MARK, VALUE_ERASED
from connector.engine.push_plan import Problem


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with the unit that its cell shows: `%`, a currency's code, or its sign.

    `value` is the number as a person reads it: 17.5 of 17.5 %. `form` is the cell's number format,
    and `shown` what it shows where that is less than the cell holds, as 18% of 17.5 %.
    """

    value: float
    unit: str
    form: str = "General"
    shown: str = ""

    def __str__(self) -> str:
        if self.shown:
            return self.shown
        number = int(self.value) if self.value == int(self.value) else self.value
        return f"{number}%" if self.unit == "%" else f"{self.unit} {number}"


@dataclass(frozen=True, slots=True)
class PartlyShown:
    """A cell whose number format `form` shows less than the cell holds.

    `shown` is the text that a person sees: 30-Dec of a date with a year, or nothing at all.
    """

    value: str | int | float | date
    shown: str
    form: str

    def __str__(self) -> str:
        return text_of(self.value)


Cell = str | int | float | bool | date | datetime | time | Amount | PartlyShown
"""Value of a cell: always text in a csv; in a workbook also a number, a truth value or a date, as
it was typed, and a number or a date as it is shown. An empty cell is the empty string.
"""

Flaw = tuple[Literal["error", "not_calculated", "unreadable"], str]
"""Why a workbook's cell has no value to read: an error's name, a formula, or a number as stored."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row as it was read.

    `number` is its number as a spreadsheet program shows it: the headings are row 1, and blank
    rows count. `cells` are as many as there are headings, or more, where the row is too wide; the
    last `missing` of them are not in the file. `problems` are those of the row's form, and `flaws`
    the cells that have no value to read, by column. A row `is_outside` that stands in the file and
    is none of the table: totals, or the headings once more. One that `is_hidden` nobody sees.
    """

    number: int
    cells: tuple[Cell, ...]
    problems: tuple[Problem, ...] = ()
    flaws: Mapping[int, Flaw] = field(default_factory=dict)
    missing: int = 0
    is_outside: bool = False
    is_hidden: bool = False

    @property
    def is_left_out(self) -> bool:
        """Whether it is no row of the table: blank, or outside of it."""
        return self.is_outside or is_blank(self.cells)


def is_blank(cells: Sequence[Cell]) -> bool:
    """Whether no cell holds anything but blanks."""
    return all(isinstance(cell, str) and not cell.strip() for cell in cells)


# -- Catalogue -------------------------------------------------------------------------------------


COLUMN_MISSING = "column_missing"
"""Code of a row that cannot make a record since the file lacks a column: reported once in all."""

PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        # The row's form.
        "row_width": "The row has more or fewer cells than there are headings: put each cell below"
        " its heading.",
        "spreadsheet_error": "The cell holds a formula's error, such as #N/A: correct the formula"
        " or clear the cell.",
        "formula_without_value": "The cell holds a formula that was never calculated: open and save"
        " the file in a spreadsheet program, or put in the value.",
        "unreadable_cell": "The cell is formatted as a date and contains a number that is not a"
        " date: enter a date, or clear the cell.",
        "cell_too_long": "The cell is longer than any field of the API: shorten it.",
        "example_row": "It is the example row of a template, left in: take it out or fill it in.",
        # What a row must have.
        "required": "A field that creating needs is blank: fill it in.",
        COLUMN_MISSING: "The row would make a record, and the file has no column for a field that"
        " creating needs: add the column.",
        "required_when": "Another field's value makes this one needed, and it is blank: fill it"
        " in.",
        "one_of_required": "At least one of several fields is needed: fill one of them in.",
        "only_with": "The field is taken only together with a certain value of another: set that,"
        " or clear the cell.",
        "cannot_clear": "A field that must have a value cannot be emptied: leave the cell blank.",
        # Texts.
        "scientific": "A spreadsheet program shortened a number to scientific notation and its"
        " digits are lost: take it from its source again.",
        "hidden_character": "Characters that cannot be seen are in an address, number or code:"
        " type it again.",
        "ditto": "The cell says that it is as the one above: write the value itself.",
        "control_character": "The cell holds a character that no text has: type it again.",
        "number_in_text": "A telephone number or code was typed as a number, which loses leading"
        " zeros and a plus: format the column as text and type it again.",
        "not_text": "A spreadsheet program made a date, a time, a truth value or a broken number"
        " of a text: format the column as text and type it again.",
        "email_format": "It is not an email address: correct it.",
        "several_emails": "The cell holds more than one email address: keep one.",
        "phone_format": "It is not a telephone number: correct it, or clear the cell.",
        "several_phones": "The cell holds more than one telephone number: keep one.",
        "name_of_one_word": "A whole name has one word, and two are needed: write both, or give"
        " each a column.",
        "name_unclear": "It is not clear which words are the first and which the last name: give"
        " each a column.",
        "url_format": "It is not a web address: begin it with https:// or http://.",
        "currency_format": "It is not a currency code of three letters: write one, as GBP.",
        "timezone_format": "It is not the name of a time zone: write one, as Europe/London.",
        "json_format": "It is not JSON: correct it.",
        "id_format": "It is not an id: write the id, or map names to ids.",
        # Choices.
        "unknown_value": "It is none of the field's values: write one that is allowed, or map it.",
        "value_not_accepted": "The API shows this value and does not take it in this operation:"
        " write one that is allowed.",
        # Numbers and truth values.
        "not_a_number": "It is not a number: write digits.",
        "not_whole": "It has a fraction where a whole number belongs: write a whole number.",
        "too_large": "It has too many digits: correct it.",
        "ambiguous_number": "A dot or comma before three digits can be the decimal sign or part"
        " thousands off: write it without, or declare the decimal sign.",
        "decimal_sign": "The number has another decimal sign than the column: rewrite it, or"
        " declare the sign.",
        "currency_sign": "The number holds a currency that no field of the row can take: write the"
        " digits alone, and the currency's code in its own column.",
        "currency_differs": "The cell and the row's currency say two things: correct one of them.",
        "other_period": "The number is for another length of time than the field: convert it, and"
        " write the number alone.",
        "percent_sign": "The number is a percentage, and the field is none: correct it.",
        "not_true_or_false": "It is neither true nor false: write yes or no.",
        # Dates and moments.
        "date_format": "It is not a date as it must be written: write it as 2025-04-03, or declare"
        " the column's date format.",
        "ambiguous_date": "It can be two dates: write it as 2025-04-03, or declare the column's"
        " date format.",
        "two_digit_year": "The year has two digits and can be of two centuries: write four, or say"
        " --century with the first year that is meant, as 1930.",
        "no_such_date": "The calendar has no such date: correct it.",
        "time_in_date": "A time stands where a date belongs: write the date alone.",
        "time_missing": "A date stands where a date and time belong: add the time.",
        "no_time_zone": "The time does not say its time zone: write it in UTC with a Z, or declare"
        " the column's time zone.",
        "clock_change": "The clocks change at that time, so it comes twice or not at all: write it"
        " in UTC with a Z.",
        # References to other records.
        "reference_unknown": "No record is landed that the cell could mean: correct it, or push or"
        " pull that record first.",
        "reference_ambiguous": "Several records are what the cell says: give the id of one.",
        # The row's own record.
        "match_missing": "The cell by which the row finds its record is blank: fill it in.",
        "record_unknown": "No record is landed that the row could mean: correct the cell, or pull"
        " first.",
        "record_ambiguous": "Several records are what the row says: use the id of one.",
        "record_deleted": "The record is known to be deleted: take the row out.",
        "record_not_read": "Only a list has shown the record so far, so what would change is not"
        " known: pull first.",
        "converted_already": "The lead is converted already: nothing is to be done.",
        "person_erased": "The row is about a person who was erased: take it out, or let the person"
        " in again with 'connector erase --release'.",
        VALUE_ERASED: f"The cell holds {MARK}, which stands for what an erasure removed: write the"
        " whole value, or clear the cell.",
        # Duplicates.
        "duplicate_in_file": "An earlier row of the file is the same record: take one of them out.",
        "duplicate_in_warehouse": "A record like this exists already: update it, or take the row"
        " out.",
    }
)
"""By code, one sentence: what is wrong, a colon, and what to do."""

WARNINGS: Mapping[str, str] = MappingProxyType(
    {
        "says_nothing": "The cell says in a word that there is nothing: it counts as empty, unless"
        " the column's values in a mapping file say what it is.",
        "mojibake": "The letters were broken by a wrong encoding: they are sent repaired.",
        "odd_letters": "Letters seem to be lost, broken, or of two alphabets in one word: compare"
        " them with the source.",
        "invisible": "The cell holds signs that cannot be seen: they are left out.",
        "partly_shown": "The cell shows only a part of the date that it contains: check the year.",
        "hidden_value": "The number format hides the value, which is imported as empty: change the"
        " format if the value is meant.",
        "scheme_added": "The web address has no https://: it is sent with it.",
        "maybe_cut": "The text may have been cut by the program that wrote it: compare it with its"
        " source.",
        "name_split": "A whole name is split into two: compare first and last name.",
        "currency_taken": "The currency that the cell shows fills its field: compare it.",
        "rounded": "The cell shows a rounded number, and the one it holds is sent: compare it.",
        "small_percentage": "A percentage below 1 is rare: write 17.5 for 17.5 %.",
        "large_percentage": "A percentage above 100 is rare: write 17.5 for 17.5 %.",
        "range_reversed": "The lower end of a range is above the upper one: exchange them.",
        "odd_amount": "So low a salary, or so high a day rate, is rare: compare it.",
        "born_later": "The date of birth is in the future, or a century ago: correct the year.",
        "ends_before_start": "The end comes before the start: correct one of the dates.",
        "hidden_row": "The row is hidden, by a filter perhaps: delete it, or show it and look.",
    }
)
"""By code, as `PROBLEMS`: what a person should know of a row that is sent once they agree."""

DUPLICATES = frozenset(("duplicate_in_file", "duplicate_in_warehouse"))
"""Codes of rows that are no mistake in themselves."""


def problem_of(
    code: str,
    message: str | None = None,
    column: str | None = None,
    *,
    received: Cell | None = None,
    allowed: str | None = None,
    fix: str | None = None,
) -> Problem:
    """Problem of that code, in the catalogue's words where none are given."""
    wrong, _, cure = (PROBLEMS.get(code) or WARNINGS[code]).partition(": ")
    return Problem(
        code,
        message or f"{wrong}.",
        column,
        None if received is None else shown(received),
        allowed,
        fix or f"{cure[0].upper()}{cure[1:]}",
    )


ReadText = Callable[[str], Any]
"""Reads a text that is not blank and has no outer blanks, or raises `Unreadable`."""

ReadTyped = Callable[[Any], Any]
"""Reads a cell that a spreadsheet program typed: number, truth value, date or time; or raises."""


@dataclass(frozen=True, slots=True)
class NotedValue:
    """A value that was read, with what a person should know before it is sent.

    `notes` are codes of warnings, each with a message where it needs one of its own.
    """

    value: Any
    notes: tuple[tuple[str, str | None], ...]


def noted(value: Any, code: str, message: str | None = None) -> NotedValue:
    """The value with one note more."""
    if isinstance(value, NotedValue):
        return NotedValue(value.value, ((code, message), *value.notes))
    return NotedValue(value, ((code, message),))


class Unreadable(Exception):
    """A cell cannot be read as its field. It becomes a `Problem` in this room."""

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        allowed: str | None = None,
        fix: str | None = None,
    ) -> None:
        self._problem = problem_of(code, message, allowed=allowed, fix=fix)
        self.code = code
        super().__init__(self._problem.message)

    def problem(self, column: str | None = None, cell: Cell | None = None) -> Problem:
        """The problem that a person is shown."""
        found = self._problem
        received = None if cell is None else shown(cell)
        return Problem(found.code, found.message, column, received, found.allowed, found.fix)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A question about a whole file, and how a person answers it.

    One that `stops` keeps the file from being applied until then. `column` is the heading that it
    is about, `received` a cell of it, and `choices` the options' words, each with what the cell
    then is.
    """

    code: str
    message: str
    repair: str
    stops: bool = True
    column: str | None = None
    received: str | None = None
    choices: tuple[tuple[str, str], ...] = ()


# -- Cells as people see them ----------------------------------------------------------------------


RECEIVED_CHARACTERS_MAX = 80
"""As much of a cell as a problem shows."""

_CONTROLS = {"\0": "NUL", "\t": "tabulator", "\n": "line break", "\r": "carriage return"}


def text_of(cell: Cell) -> str:
    """The cell as text: a date in ISO form, a truth value as TRUE or FALSE."""
    match cell:
        case bool():
            return "TRUE" if cell else "FALSE"
        case datetime():
            return cell.isoformat(sep=" ")
        case date() | time():
            return cell.isoformat()
    # An amount shows its unit.
    return str(cell)


def shown(cell: Cell) -> str:
    """The cell as text with invisible characters named, cut to be shown."""
    text = text_of(cell)
    if len(text) > RECEIVED_CHARACTERS_MAX:
        text = text[: RECEIVED_CHARACTERS_MAX - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"<{_code_point(c)}>" for c in text)


def named(character: str) -> str:
    """Name and number of a character that cannot be seen."""
    name = unicodedata.name(character, "").lower() or _CONTROLS.get(character, "control character")
    return f"{name} ({_code_point(character)})"


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"
