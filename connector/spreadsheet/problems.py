"""Rows of a spreadsheet, and the problems that a check finds in them.

Problem codes are stable: users filter reports by them, and the documentation lists them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any, Literal

from connector.ledger.push_plan import Problem


@dataclass(frozen=True, slots=True)
class Amount:
    """Number with the unit that its cell shows: `%`, a currency code, or a currency sign.

    `value` is the number that belongs to the unit: 17.5 for 17.5 %. `shown` is the visible text if
    it is less precise, such as 18% for 17.5 %.
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
    """Cell whose number format shows less than the cell contains.

    `shown` is the visible text: 30-Dec for a date with a year, or an empty text.
    """

    value: str | int | float | date
    shown: str
    number_format: str

    def __str__(self) -> str:
        return text_of(self.value)


Cell = str | int | float | bool | date | datetime | time | Amount | PartlyVisibleCell
"""Value of a cell. In a csv it is always text. In a workbook it may also be a number, a boolean or
a date, as typed or as shown. An empty cell is the empty string.
"""

Flaw = tuple[Literal["error", "not_calculated", "unreadable", "unusual_format"], str]
"""Reason why a cell has no value, and its content: an error, a formula, or a stored number."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """Row of a table.

    Attributes:
        number: Row number as a spreadsheet program shows it: the headings are row 1, and blank rows
            count.
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
    def is_left_out(self) -> bool:
        """Return True if the row is blank or does not belong to the table."""
        return self.is_outside or is_blank(self.cells)


def is_blank(cells: Sequence[Cell]) -> bool:
    """Return True if all cells are empty or blank."""
    for cell in cells:  # noqa: SIM110 # a generator takes twice the time
        if not isinstance(cell, str) or (cell and not cell.isspace()):
            return False
    return True


# -- Catalogue -------------------------------------------------------------------------------------


COLUMN_MISSING = "column_missing"
"""Code of rows that cannot create a record because the file lacks a column; reported once."""

PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        # The row's form.
        "row_width": "The row has more or fewer cells than the file has columns: check the"
        " row for missing or extra cells or separators.",
        "quote_not_closed": 'A quote (") opens a cell in the row and is not closed: close the quote'
        " or delete it.",
        "quote_in_cell": 'A quote (") is in the middle of a cell: check the row for a missing'
        " separator, or write the quote twice.",
        "spreadsheet_error": "The value is a formula error: correct the formula or clear the cell.",
        "formula_without_value": "The formula in the cell was never calculated: open the file"
        " in a spreadsheet program and save it, or enter the value.",
        "unreadable_cell": "The value is formatted as a date, but is not a date: enter a date, or"
        " clear the cell.",
        "unusual_format": "The number format of the cell shows something else than its number:"
        " enter the visible value as text.",
        "cell_too_long": "The text is longer than any field allows: shorten the text.",
        "example_row": "The row is the example row of the template: delete the row or fill it in.",
        # Required values.
        "required": "The cell is empty, but a value is required: enter a value.",
        "word_for_nothing": "The value is read as empty, but a value is required: enter a value, or"
        ' keep this one under "Values" on the import page or in a column mapping.',
        COLUMN_MISSING: "The file has no column for a required field: add the column.",
        "required_when": "The cell is empty, but another cell of the row makes a value"
        " necessary: enter a value.",
        "one_of_required": "One of several fields is required, but all of them are empty:"
        " fill in one of them.",
        "only_with": "The value is allowed only with a certain value in another column:"
        " change the other cell or clear this one.",
        "cannot_clear": "The value would clear a required field: leave the cell empty to keep the "
        "current value.",
        # Texts.
        "scientific": "The value is a number that a spreadsheet program shortened, and digits"
        " are lost: format the column as text and enter the number again.",
        "hidden_character": "The cell contains invisible characters: delete the cell and type"
        " the text again.",
        "ditto": "The value is a sign that means “as in the cell above”: enter the value itself.",
        "control_character": "The cell contains an invalid character: enter the text again.",
        "number_in_text": "The value is stored as a number, so leading zeros and a plus sign"
        " may be lost: format the column as text and enter the value again.",
        "not_text": "The value is not stored as text, so its spelling may be lost: format the"
        " column as text and enter the value again.",
        "email_format": "The value is not an email address: enter one address, for example"
        " anna@example.com.",
        "several_emails": "The cell contains several email addresses, but only one is"
        " allowed: keep one address.",
        "phone_format": "The value is not a phone number: enter one number, for example +44"
        " 20 7946 0123, or clear the cell.",
        "several_phones": "The cell contains several phone numbers, but only one is allowed:"
        " keep one number.",
        "name_of_one_word": "The value is one word, but a first and a last name are required:"
        " enter both names.",
        "name_unclear": "The value does not show where the first name ends: use one column for the "
        "first name and one for the last name.",
        "url_format": "The value is not a web address: start the address with https:// or http://.",
        "currency_format": "The value is not a currency code: enter a code, for example GBP.",
        "timezone_format": "The value is not a time zone: enter a name, for example Europe/London.",
        "json_format": "The value is not JSON: correct the JSON.",
        "id_format": "The value is not an ID: enter the ID, or ask an administrator to add the "
        "name to a column mapping.",
        # Choices.
        "unknown_value": "The value is not allowed: enter an allowed value.",
        "value_not_accepted": "The value is not allowed in this import: enter an allowed"
        " value or clear the cell.",
        # Numbers and truth values.
        "not_a_number": "The value is not a number: enter digits, for example 45000, or clear"
        " the cell.",
        "not_whole": "The value is not a whole number: round the number.",
        "negative": "The value is negative, which this column does not allow: correct the number.",
        "too_large": "The value is too large: enter at most 18 digits, or clear the cell.",
        "ambiguous_number": "The value can be two numbers: write the number without a"
        " separator, or choose the decimal separator of the column.",
        "decimal_sign": "The value has another decimal separator than the column: write the"
        " number like the others in the column.",
        "currency_sign": "The value has a currency, but the row has no field for the"
        " currency: enter the number alone, and the currency code in its own column.",
        "currency_differs": "The currency in the cell differs from the currency of the row:"
        " change one of the two cells.",
        "other_period": "The value is for another period than the column, for example a month "
        "instead of a year: convert the number.",
        "month_length": "The value is in months, but this column is in days: choose the number of"
        " days in a month, or enter days.",
        "immediately": "The value means immediately: choose the value that is imported for"
        " “immediately”, or enter another value.",
        "percent_sign": "The value is a percentage, but this column is an amount: enter an amount.",
        "not_true_or_false": "The value is neither yes nor no: enter yes or no.",
        # Dates and times.
        "date_format": "The value is not a date: enter a date, for example 2026-05-01.",
        "ambiguous_date": "The value can be two dates: choose the date order of the column,"
        " or enter the date as 2026-05-01.",
        "two_digit_year": "The year in the cell has two digits, so the century is not clear:"
        " enter four digits, for example 1985.",
        "no_such_date": "The date does not exist in the calendar: enter an existing date.",
        "time_in_date": "The value has a time, but this column takes only a date: enter the"
        " date alone.",
        "time_missing": "The value has no time, but this column needs a date and a time: add"
        " the time.",
        "no_time_zone": "The value has no time zone: enter the time in UTC, for example"
        " 2026-05-01T09:00Z.",
        "clock_change": "The clocks change at the time in the cell, so the time is not clear:"
        " enter the time in UTC, for example 2026-05-01T09:00Z.",
        # References to other records.
        "reference_unknown": "The value does not match any record: correct the value, or"
        " import that record first.",
        "reference_ambiguous": "The value matches several records: enter the ID of one record.",
        # The row's own record.
        "match_missing": "The cell is empty, but it is needed to find the record: fill in the"
        " cell.",
        "record_unknown": "The value does not belong to any record: correct the value, or add"
        " the record instead.",
        "record_ambiguous": "The value belongs to several records: use the ID of one record.",
        "record_deleted": "The record was deleted: delete the row.",
        "record_not_read": "The local copy does not have the whole record, so the changes are"
        " not known: ask an administrator to update the local copy.",
        "converted_already": "The lead is already converted: no action is needed.",
        # Duplicates.
        "duplicate_in_file": "The row is a duplicate of an earlier row: delete one of the two"
        " rows.",
        "duplicate_in_warehouse": "The record already exists: update the record instead, or"
        " delete the row.",
    }
)
"""By code: what is wrong, a colon, and what to do."""

WARNINGS: Mapping[str, str] = MappingProxyType(
    {
        "mojibake": "The value was damaged by a wrong encoding and is repaired: check the"
        " spelling.",
        "odd_letters": "The value looks damaged, because a letter is missing or wrong: check"
        " the spelling.",
        "escaped_signs": "The value contains backslashes that another program added. They are "
        "removed: check the text.",
        "partly_shown": "The value is a date that the cell shows without its year: check the year.",
        "hidden_value": "The value is hidden by its number format and is imported as empty: change"
        " the number format to import the value.",
        "maybe_cut": "The text may be cut off: check the text against its source.",
        "odd_phone": "The value is not a number in use in its country, perhaps because a digit is"
        " missing: check the number.",
        "lost_zero": "The value may have lost a zero at its beginning: check the postal code.",
        "weekday_differs": "The value has a day of the week that does not belong to its date: check"
        " the date.",
        "other_currency": "The value has another currency than usual, and the record has no field"
        " for it: check the amount.",
        "rounded": "The cell shows a rounded number, but the exact number is imported: check"
        " the number.",
        "small_percentage": "The value is an unusually low percentage: enter 17.5 for 17.5 %.",
        "large_percentage": "The value is an unusually high percentage: enter 17.5 for 17.5 %.",
        "range_reversed": "The minimum is higher than the maximum: swap the two numbers.",
        "odd_amount": "The value is an unusual amount: check the amount.",
        "born_later": "The date of birth is in the future or more than 100 years ago: correct"
        " the year.",
        "ends_before_start": "The end date is before the start date: correct one of the dates.",
        "hidden_row": "The row is hidden in the file, perhaps by a filter: unhide the row in"
        " the file and check it, or delete the row there.",
        "split_row": "The line before or after the row has a single cell, which may be a part of"
        " the row: check whether a line break splits the row.",
    }
)
"""By code: warnings for a row that is sent after the user has confirmed."""

REMARKS: Mapping[str, str] = MappingProxyType(
    {
        "says_nothing": "The value is imported as empty: enter a value if there is one.",
        "line_break": "The value has a line break or a tab, which is imported as a space: check "
        "the text.",
        "invisible": "The cell contains invisible characters, which are removed: check the text.",
        "scheme_added": "The value is imported with https:// at the beginning: check the address.",
        "country_code_added": "The value is imported with its country code: check the number.",
        "name_split": "The value is split into first and last name: check both names.",
        "currency_taken": "The currency of the value is imported, too: check the currency.",
        "currency_left_out": "The value is imported without its currency, because the record has no"
        " field for it: check the amount.",
        "band_chosen": "The number is imported as the range that contains it: check the range.",
        "age_assumed": "The century of a year of two digits is assumed: check the date.",
    }
)
"""By code: changes of cells that are reported once for a column, and hold no row back."""

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
) -> Problem:
    """Return the problem of that code, with the texts of the catalogue by default.

    "the value" in a message represents the received cell (`Problem.text`).
    """
    return Problem(
        code,
        message or message_of(code) or code,
        column,
        None if received is None else visible_text(received),
        allowed,
        fix or fix_of(code),
    )


def message_of(code: str) -> str | None:
    """Return the general text of a code; None for an unknown code."""
    text = _text_of_code(code)
    return f"{text.partition(': ')[0]}." if text else None


def fix_of(code: str) -> str | None:
    """Return the general action for a code; None for an unknown code."""
    text = _text_of_code(code)
    cure = text.partition(": ")[2] if text else None
    return f"{cure[0].upper()}{cure[1:]}" if cure else None


def _text_of_code(code: str) -> str | None:
    """Return the entry of a code in one of the catalogues."""
    return PROBLEMS.get(code) or WARNINGS.get(code) or REMARKS.get(code)


ReadText = Callable[[str], Any]
"""Reads a text that is not blank and has no outer blanks, or raises `CellError`."""

ReadTyped = Callable[[Any], Any]
"""Reads a typed cell: number, boolean, date or time; or raises `CellError`."""


@dataclass(frozen=True, slots=True)
class ValueWithNotes:
    """Value that was read from a cell, with warnings for the user.

    `notes` are codes of warnings, each with a message if it differs from the general one.
    """

    value: Any
    notes: tuple[tuple[str, str | None], ...]


def with_note(value: Any, code: str, message: str | None = None) -> ValueWithNotes:
    """Return the value with one more warning, which is put first."""
    if isinstance(value, ValueWithNotes):
        return ValueWithNotes(value.value, ((code, message), *value.notes))
    return ValueWithNotes(value, ((code, message),))


class CellError(Exception):
    """Error of a cell that cannot be read as its field. It becomes a `Problem`."""

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
        """Return the problem as shown to the user."""
        found = self._problem
        received = None if cell is None else visible_text(cell)
        return Problem(found.code, found.message, column, received, found.allowed, found.fix)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """Question about a whole file, and its possible answers.

    Attributes:
        stops: True if the file cannot be imported before the question is answered.
        received: Example cell.
        choices: Words for the answers, each with the resulting value of the example.
    """

    code: str
    message: str
    repair: str
    stops: bool = True
    column: str | None = None
    received: str | None = None
    choices: tuple[tuple[str, str], ...] = ()


# -- Visible text of cells -------------------------------------------------------------------------


RECEIVED_CHARACTERS_MAX = 80
"""Maximum number of characters of a cell in a problem."""

_CONTROLS = {"\0": "NUL", "\t": "tabulator", "\n": "line break", "\r": "carriage return"}


def text_of(cell: Cell) -> str:
    """Return the cell as text: a date in ISO format, a boolean as TRUE or FALSE."""
    match cell:
        case bool():
            return "TRUE" if cell else "FALSE"
        case datetime():
            return cell.isoformat(sep=" ")
        case date() | time():
            return cell.isoformat()
    # An amount includes its unit.
    return str(cell)


def visible_text(cell: Cell) -> str:
    """Return the cell as text with numbers for invisible characters, shortened for display."""
    text = text_of(cell)
    if len(text) > RECEIVED_CHARACTERS_MAX:
        text = text[: RECEIVED_CHARACTERS_MAX - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"<{_code_point(c)}>" for c in text)


def character_name(character: str) -> str:
    """Return the name and number of an invisible character."""
    name = unicodedata.name(character, "").lower() or _CONTROLS.get(character, "control character")
    return f"{name} ({_code_point(character)})"


def _code_point(character: str) -> str:
    """Return the Unicode number of a character, such as U+200B."""
    return f"U+{ord(character):04X}"
