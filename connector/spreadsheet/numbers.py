"""Numbers in cells, as people write them: with currency, thousands and percent.

A number is read where it can be read in one way. `45,000` can be two numbers; which of them it is
the column's other cells settle (`meanings.py`), or a person declares it. It is never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, Literal

from connector.spreadsheet.problems import (
    Amount,
    Cell,
    NotedValue,
    ReadText,
    ReadTyped,
    Unreadable,
    noted,
)

Decimal = Literal[".", ","]
"""The sign before the fraction of a number."""

_INTEGER_MAX = 2**63 - 1
_DIGITS_MAX = 300
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_DIGITS = re.compile(r"[+-]?[0-9]{19,}").fullmatch
_BLANK = r"[ \u00a0\u202f]"
_FORMS = {
    sign: re.compile(
        rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:({other}|'|\u2019|{_BLANK})[0-9]{{3}})"
        rf"(?:\1[0-9]{{3}})*)(?:{re.escape(sign)}[0-9]+)?"
    ).fullmatch
    for sign, other in ((".", ","), (",", r"\."))
}
SIGNS: Mapping[str, str] = {"£": "GBP", "€": "EUR", "₹": "INR", "zł": "PLN", "Kč": "CZK"}
"""Signs of one currency each; a dollar is of many."""

_CODES = "GBP|EUR|USD|CHF|SEK|NOK|DKK|PLN|CZK|HUF|RON|INR|CAD|AUD|NZD|SGD|HKD|AED|ZAR|JPY|CNY"
_UNIT = rf"[£€₹$¥]|zł|Kč|(?:{_CODES})\b"
_NUMBER = re.compile(
    rf"(?P<minus>[+\-\u2212])?\s*(?P<before>{_UNIT})?\s*(?P<sign>[+\-\u2212])?\s*"
    rf"(?P<digits>[0-9](?:[0-9.,'\u2019]|{_BLANK}(?=[0-9]))*)\s*"
    rf"(?P<thousand>[kK]\b)?\s*(?P<after>{_UNIT}|%)?(?:,-|\.-)?"
    r"(?:\s*(?:p\.?\s?a\.?|per annum|per year|a year|/\s?year|per day|/\s?day|p\.?\s?d\.?))?",
    re.IGNORECASE,
).fullmatch
_SCIENTIFIC = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?[eE][+-]?[0-9]+").fullmatch


@dataclass(frozen=True, slots=True)
class NumberMeanings:
    """The numbers that a text can be, by the sign before a fraction, and its unit."""

    values: Mapping[str, int | float]
    unit: str

    @property
    def is_ambiguous(self) -> bool:
        """Whether it can be two numbers."""
        return len(set(self.values.values())) > 1


def number_meanings(text: str) -> NumberMeanings | None:
    """What the text can be as a number; None where it is none."""
    if _WHOLE(text) is not None:
        return NumberMeanings({".": int(text), ",": int(text)}, "")
    found = _NUMBER(text)
    if found is None or len(text) > _DIGITS_MAX or (found["minus"] and found["sign"]):
        return None
    before, after = found["before"] or "", found["after"] or ""
    if (before and after) or _DIGITS(found["digits"]) is not None:
        return None
    values: dict[str, int | float] = {}
    for sign, form in _FORMS.items():
        if form(found["digits"]) is not None:
            bare = "".join(c for c in found["digits"] if c.isdigit() or c == sign)
            value = _value_of(bare.replace(sign, "."), bool(found["thousand"]))
            values[sign] = -value if (found["minus"] or found["sign"] or "+") != "+" else value
    unit = before or after
    return NumberMeanings(values, SIGNS.get(unit, unit.upper())) if values else None


def _value_of(digits: str, is_in_thousands: bool) -> int | float:
    value = float(digits) if "." in digits else int(digits)
    if not is_in_thousands:
        return value
    value = round(value * 1000, 6)
    return int(value) if value == int(value) else value


def number_reader(
    decimal: Decimal | None, is_percentage: bool, *, is_settled: bool = False
) -> ReadText:
    """The reader of a number; `decimal` is its sign where that is settled.

    It gives an `Amount` where the cell shows a currency. Where other cells and no person settled
    the sign, it parts thousands off and makes no fraction of three digits: nobody reads 45 in
    45.000.
    """

    def read(text: str) -> Any:
        found = number_meanings(text)
        if found is None:
            raise _no_number(text)
        values = found.values
        value = values.get(decimal) if decimal else next(iter(values.values()))
        if value is None:
            if not is_settled:
                raise Unreadable("decimal_sign", allowed=_allowed(decimal))
            value = next(iter(values.values()))
        whole = max(values.values(), key=abs)
        if found.is_ambiguous and (decimal is None or (is_settled and value != whole)):
            raise Unreadable(
                "ambiguous_number",
                allowed=_allowed(None),
                fix=f"Write {whole} if that is meant, or say --decimal dot or comma.",
            )
        return _with_unit(value, found.unit, is_percentage)

    return read


def _with_unit(value: int | float, unit: str, is_percentage: bool) -> Any:
    if unit == "%":
        if not is_percentage:
            raise Unreadable("percent_sign", allowed="a number")
        return value
    if unit:
        if is_percentage:
            raise Unreadable("currency_sign", allowed="a percentage")
        return Amount(value, unit)
    return _noted_share(value) if is_percentage else value


def _noted_share(value: int | float) -> int | float | NotedValue:
    return noted(value, "small_percentage") if 0 < value < 1 else value


def _allowed(decimal: Decimal | None) -> str:
    return f"digits, and a {'comma' if decimal == ',' else 'dot'} before a fraction"


def _no_number(text: str) -> Unreadable:
    """Why the text is no number."""
    if _DIGITS(text.lstrip("+-")) is not None:
        return Unreadable("too_large", fix="Write at most 18 digits.")
    if _SCIENTIFIC(text) is not None:
        return Unreadable("scientific")
    fix = "Write the number in digits, or clear the cell."
    return Unreadable("not_a_number", allowed=_allowed(None), fix=fix)


def typed_number(is_percentage: bool) -> ReadTyped:
    """The reader of numbers that a spreadsheet program typed."""

    def read(cell: Any) -> Any:
        if isinstance(cell, Amount):
            value = _with_unit(cell.value, cell.unit, is_percentage)
            told = f"The cell shows {cell.shown}, and holds {cell.value}."
            return noted(value, "rounded", told) if cell.shown else value
        if isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell):
            # No spreadsheet shows more digits than these.
            number = float(f"{cell:.15g}") if isinstance(cell, float) else cell
            return _noted_share(number) if is_percentage else number
        raise Unreadable(
            "not_a_number",
            "A spreadsheet program has made a date or a truth value of it.",
            allowed="a number",
            fix="Format the column as a number and type the value again.",
        )

    return read


def integer_reader(decimal: Decimal | None, *, is_settled: bool = False) -> ReadText:
    """The reader of a whole number in text."""
    return _whole(number_reader(decimal, is_percentage=False, is_settled=is_settled))


def typed_integer() -> ReadTyped:
    """The reader of whole numbers that a spreadsheet program typed."""
    return _whole(typed_number(is_percentage=False))


def _whole(read_number: ReadTyped) -> ReadTyped:
    def read(cell: Any) -> int:
        number = read_number(cell)
        if isinstance(number, NotedValue):
            number = number.value
        if isinstance(number, Amount):
            raise Unreadable("currency_sign", allowed="a whole number")
        if number != number // 1:
            raise Unreadable("not_whole", allowed="a whole number")
        if abs(number) > _INTEGER_MAX:
            raise Unreadable("too_large", allowed="at most 18 digits")
        return int(number)

    return read


# -- Number formats --------------------------------------------------------------------------------
# A number format is part of the value: it may show a unit, leading zeros, fewer digits than the
# cell holds, or only a part of a date.


_LITERALS = re.compile(r'"([^"]*)"|\\(.)|[_*].')
_CURRENCY_FORM = re.compile(r"\[\$([^\]-]+)(?:-[0-9A-Fa-f]+)?\]|([£€₹¥])")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_MASK = re.compile(r"[0# \-+()/]*").fullmatch
_DIGITS_OF_FORM = re.compile(r"[0#?](?:,?[0#?])*(?:\.([0#?]*))?(,*)\s*([kK]?)")
_DATE_PART = re.compile(r"y+|m+|d+|h+|s+|am/pm", re.IGNORECASE)
_PARTS = "yyyy %Y yy %y mmmm %B mmm %b mm %m m %-m dddd %A ddd %a dd %d d %-d hh %H h %-H ss %S"
_STRFTIME = dict(zip(_PARTS.split()[::2], _PARTS.split()[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class _NumberForm:
    """What a number format shows of a number, or of a date.

    Its unit, its decimals (None: all), a mask of digits, the thousands that it leaves out with the
    letter for them, and the parts of a date.
    """

    unit: str = ""
    decimals: int | None = None
    mask: str = ""
    thousands: int = 0
    letter: str = ""
    date_parts: str = ""
    is_empty: bool = False


@lru_cache(maxsize=1_000)
def _form_of(form: str) -> _NumberForm:
    first, parted, _ = form.partition(";")
    if not first.strip():
        return _NumberForm(is_empty=bool(parted))
    bare = _LITERALS.sub(lambda found: found[1] or found[2] or "", first)
    found = _CURRENCY_FORM.search(bare)
    sign = (found[1] or found[2]).strip() if found else ""
    bare = _BRACKETS.sub("", bare).strip()
    digits = _DIGITS_OF_FORM.search(bare)
    if digits is None:
        # Literals of a date format are no parts of it.
        plain = _BRACKETS.sub("", _LITERALS.sub(" ", first)).strip()
        is_date = plain.lower() != "general" and _DATE_PART.search(plain) is not None
        return _NumberForm(date_parts=plain if is_date else "")
    if _MASK(bare) and bare.count("0") > 1 and "/" not in bare:
        return _NumberForm(mask=bare)
    if "E" in bare or "/" in bare or "<" in first or ">" in first:
        return _NumberForm()
    unit = "%" if "%" in bare else SIGNS.get(sign, sign.upper())
    return _NumberForm(unit, len(digits[1] or ""), "", len(digits[2]), digits[3])


def is_part_of_value(form: str) -> bool:
    """Whether the number format can change what a person reads in a cell."""
    return any(as_shown(each, form) != each for each in (1, 0.1234567, datetime(2001, 2, 3)))


def as_shown(cell: Cell, form: str) -> Cell:
    """The cell as its format shows it: with its unit, or as the text that is shown.

    A number that is shown rounded keeps its value, and says what is shown.
    """
    shows = _form_of(form)
    if shows.is_empty:
        return ""
    if isinstance(cell, date | time):
        return _part_of_date(cell, shows.date_parts) if shows.date_parts else cell
    if not isinstance(cell, int | float) or isinstance(cell, bool):
        return cell
    if shows.mask:
        is_whole = cell >= 0 and cell == int(cell)
        return _masked(str(int(cell)), shows.mask) if is_whole else cell
    value = round(cell * 100, 10) if shows.unit == "%" else cell
    if shows.thousands:
        # As a person would write it: 45k, or 45.
        return f"{value / 1000**shows.thousands:.{shows.decimals or 0}f}{shows.letter}"
    shown = ""
    if shows.decimals is not None:
        rounded = round(value, shows.decimals)
        if abs(rounded - value) > 1e-9 * max(1.0, abs(value)):
            shown = f"{rounded:.{shows.decimals}f}{'%' if shows.unit == '%' else ''}"
    return Amount(value, shows.unit, form, shown) if shows.unit or shown else cell


def _masked(digits: str, mask: str) -> str:
    """The digits in the places of a mask, as 07700 900123 in 00000 000000."""
    left, shown = list(digits), list[str]()
    for each in reversed(mask):
        shown.append(each if each not in "0#" else left.pop() if left else "0" * (each == "0"))
    return f"{''.join(left)}{''.join(reversed(shown))}".strip()


def _part_of_date(cell: date | time, parts: str) -> Cell:
    """The cell, or the text that it shows where that is a part of a date."""
    found = [each.lower() for each in _DATE_PART.findall(parts)]
    has_time = any(each[0] in "hs" for each in found)
    days, months = {"d", "dd"} & {*found}, [each for each in found if each[0] == "m"]
    years = any(each[0] == "y" for each in found)
    if isinstance(cell, time) or (days and years and (len(months) > 1 or not has_time)):
        return cell
    if not days and not years:
        return cell.time() if isinstance(cell, datetime) else time()
    pattern = _DATE_PART.sub(lambda part: _STRFTIME.get(part[0].lower(), ""), parts)
    return cell.strftime(pattern).strip()
