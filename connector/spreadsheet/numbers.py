"""Numbers in cells, with currency, thousands separators, percent signs and time units.

The country or the user decides between the two numbers of `45,000`. It is never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connector.spreadsheet.problems import Amount, CellError, ReadText, ReadTyped, with_note
from connector.spreadsheet.targets import CellOptions, TargetColumn
from connector.spreadsheet.words import period_of

_NUMBER_MAX = 10**18
_EXACT_MAX = 10**15
_SHARE_MAX = 100
_CHARACTERS_MAX = 300
_DAYS = {"week": 7, "month": 30}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_DIGITS = re.compile(r"[+-]?[0-9]{19,}").fullmatch
_BLANK = r"[ \u00a0\u202f]"
_FORMS = {
    sign: re.compile(
        rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:({other}|'|\u2019|{_BLANK})[0-9]{{3}})(?:\1[0-9]{{3}})*{lakh})"
        rf"(?:{re.escape(sign)}[0-9]+)?"
    ).fullmatch
    for sign, other, lakh in ((".", ",", r"|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"), (",", r"\.", ""))
}
SIGNS: Mapping[str, str] = {
    "£": "GBP",
    "€": "EUR",
    "Euro": "EUR",
    "US$": "USD",
    "₹": "INR",
    "zł": "PLN",
    "Kč": "CZK",
}
"""Signs that belong to one currency. The dollar sign belongs to several."""

_CODES = "GBP|EUR|USD|CHF|SEK|NOK|DKK|PLN|CZK|HUF|RON|INR|CAD|AUD|NZD|SGD|HKD|AED|ZAR|JPY|CNY"
_UNIT = rf"US\$|[£€₹$¥]|(?:zł|Kč|Euro|{_CODES})(?![A-Za-z])"
_IS_UNIT = re.compile(_UNIT, re.IGNORECASE).fullmatch
_SIGN_OF = {sign.upper(): code for sign, code in SIGNS.items()}
_NUMBER = re.compile(
    rf"(?P<minus>[+\-\u2212])?\s*(?P<before>{_UNIT})?\s*(?P<sign>[+\-\u2212])?\s*"
    rf"(?P<digits>[0-9](?:[0-9.,'\u2019]|{_BLANK}(?=[0-9]))*)\s*"
    rf"(?P<thousand>k(?![a-z]))?\s*(?:[,.]-{{1,2}})?\s*(?P<after>{_UNIT}|%)?(?:[,.]-{{1,2}})?"
    r"\s*(?P<period>/?\s*[^\W\d_][^\d]{0,15})?",
    re.IGNORECASE,
).fullmatch
_SCIENTIFIC = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?[eE][+-]?[0-9]+").fullmatch
has_odd_comma = re.compile(r"[0-9]+,[0-9]{4,}").fullmatch
_IS_RATE = re.compile(r"/|\b(?:per|pro|par|por|al?|à|p\.)\b", re.IGNORECASE).search


@dataclass(frozen=True, slots=True)
class NumberMeanings:
    """Numbers that a text can mean, by decimal separator, with unit and time unit of the text."""

    values: Mapping[str, int | float]
    unit: str
    period: str | None = None


def number_meanings(text: str) -> NumberMeanings | None:
    """Return the numbers that the text can mean; None if it is no number."""
    if _WHOLE(text) is not None:
        return NumberMeanings({".": int(text), ",": int(text)}, "")
    found = _NUMBER(text) if len(text) <= _CHARACTERS_MAX else None
    if found is None or (found["minus"] and found["sign"]) or _DIGITS(found["digits"]):
        return None
    before, after = found["before"] or "", found["after"] or ""
    period = period_of(found["period"]) if found["period"] else None
    if (found["period"] and period is None) or (before and after):
        return None
    values: dict[str, int | float] = {}
    for sign, form in _FORMS.items():
        if form(found["digits"]) is not None:
            bare = "".join(c for c in found["digits"] if c.isdigit() or c == sign)
            value = _parse_digits(bare.replace(sign, "."), bool(found["thousand"]))
            values[sign] = -value if (found["minus"] or found["sign"] or "+") != "+" else value
    return NumberMeanings(values, unit_of(before or after) or after, period) if values else None


def unit_of(sign: str) -> str | None:
    """Return the currency of a sign or code, or an ambiguous sign itself; None for other texts."""
    found = sign.upper()
    return _SIGN_OF.get(found, found) if not sign or _IS_UNIT(sign) else None


def _parse_digits(digits: str, is_in_thousands: bool) -> int | float:
    """Return the number, multiplied by 1,000 if `is_in_thousands`; an integer if it is whole."""
    value = float(digits) if "." in digits else int(digits)
    if not is_in_thousands:
        return value
    value = round(value * 1000, 6)
    return int(value) if value == int(value) else value


def is_too_large(number: float) -> bool:
    """Return True if the number has more than 18 digits before its fraction, or is not finite."""
    return not abs(number) < _NUMBER_MAX


def as_typed(value: float) -> int | float | str:
    """Return a workbook's number as it was typed: 3 instead of 3.0; text if it is not finite.

    A number with more than 15 digits stays a float, because a workbook has lost digits of it.
    """
    if not math.isfinite(value):
        # No program writes such numbers; as text they are refused in a number column.
        return str(value)
    return int(value) if value.is_integer() and abs(value) < _EXACT_MAX else value


def number_reader(column: TargetColumn, options: CellOptions) -> ReadText:
    """Return the reader of a number in text. It returns an `Amount` if the cell has a currency."""

    def read(text: str) -> Any:
        found = number_meanings(text)
        if found is None:
            raise _not_a_number_error(text)
        value = _choose_value(text, found, options)
        if found.period not in (None, column.period):
            value = _as_days(text, value, found.period, column)
        checked = _check(value, found.unit, column)
        return with_note(checked, "days_counted") if found.period == "month" else checked

    return read


def _choose_value(text: str, found: NumberMeanings, options: CellOptions) -> int | float:
    values, first, decimal = found.values, next(iter(found.values.values())), options.decimal
    value = values.get(decimal, first) if decimal else first
    if decimal and decimal not in values and not options.is_decimal_assumed:
        sign = "dot" if decimal == "." else "comma"
        fix = f"Use a {sign} before a fraction, as in the rest of the column."
        raise CellError("decimal_sign", fix=fix)
    # The meaning without a fraction, if there are two.
    whole = max(values.values(), key=abs)
    is_open = decimal is None or (options.is_decimal_assumed and value != whole)
    if is_open and len({*values.values()}) > 1:
        shown = " or ".join(f"{each:,}" for each in dict.fromkeys(values.values()))
        fix = f"Enter {whole} if that is right, or choose the decimal separator of the column."
        raise CellError("ambiguous_number", f"The value can be {shown}.", fix=fix)
    is_chosen = decimal == "," and not options.is_decimal_assumed
    if "." not in values and has_odd_comma(text) and not is_chosen:
        raise CellError("not_a_number", "The value has a comma at an unusual place.")
    return value


def _as_days(text: str, value: float, period: str | None, column: TargetColumn) -> int | float:
    """Return weeks and months in days. Raises `CellError` for other time units."""
    if column.period == "day" and column.is_whole and not _IS_RATE(text) and period in _DAYS:
        return value * _DAYS[period]
    needed = f"per {column.period}" if column.period else "without a period"
    message = f"The value has the period {period}, but this column has numbers {needed}."
    raise CellError("other_period", message)


def typed_number(column: TargetColumn) -> ReadTyped:
    """Return the reader of number cells. It raises `CellError` for other cells."""

    def read(cell: Any) -> Any:
        if isinstance(cell, Amount):
            value = _check(cell.value, cell.unit, column)
            message = f"The cell shows {cell.shown}, but contains {cell.value}, which is imported."
            return with_note(value, "rounded", message) if cell.shown else value
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            # Spreadsheet programs show at most this number of digits.
            return _check(float(f"{cell:.15g}") if isinstance(cell, float) else cell, "", column)
        raise CellError(
            "not_a_number",
            "The value is stored as a date or as true or false, not as a number.",
            fix="Format the column as a number and enter the value again.",
        )

    return read


def _check(value: float, unit: str, column: TargetColumn) -> Any:
    """Return the number, an `Amount`, or a number with a warning. Raises `CellError`."""
    if is_too_large(value):
        raise CellError("too_large")
    if value < 0:
        raise CellError("negative")
    if column.is_whole and value != value // 1:
        raise CellError("not_whole")
    if unit and (column.is_whole or (column.is_percentage and unit != "%")):
        message = "The value has a unit, but this column has none."
        raise CellError("currency_sign", message, fix="Enter the number alone.")
    if unit == "%" and not column.is_percentage:
        raise CellError("percent_sign")
    if column.is_percentage:
        if value > _SHARE_MAX:
            return with_note(value, "large_percentage")
        return with_note(value, "small_percentage") if 0 < value < 1 and not unit else value
    if column.is_whole:
        return int(value)
    return Amount(value, unit) if unit else value


def _not_a_number_error(text: str) -> CellError:
    if _DIGITS(text.lstrip("+-")) is not None:
        return CellError("too_large")
    return CellError("scientific" if _SCIENTIFIC(text) else "not_a_number")
