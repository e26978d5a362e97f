"""Reading of numbers in cells, with currency, thousands separators and percent signs.

`45,000` can be two numbers. The other cells of the column (`row_reader.py`) or the user
decide which one it is. It is never guessed.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, Literal

from connector.spreadsheet.problems import (
    Amount,
    Cell,
    CellError,
    PartlyVisibleCell,
    ReadText,
    ReadTyped,
    ValueWithNotes,
    with_note,
)
from connector.spreadsheet.word_lists import period_of

Decimal = Literal[".", ","]
"""Decimal separator."""

_NUMBER_MAX = 10**18
_EXACT_MAX = 10**15
_SHARE_MAX = 100
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


@dataclass(frozen=True, slots=True)
class NumberMeanings:
    """Numbers that a text can mean, by decimal separator, and its unit.

    `unit` is `%`, a currency code or an ambiguous currency sign, or "". `period` is the time unit
    that the number is for or counts, if the text has one: year, day, ...
    """

    values: Mapping[str, int | float]
    unit: str
    period: str | None = None

    @property
    def is_ambiguous(self) -> bool:
        """Return True if the text can mean two numbers."""
        return len(set(self.values.values())) > 1


def number_meanings(text: str) -> NumberMeanings | None:
    """Return the numbers that the text can mean; None if it is no number."""
    if _WHOLE(text) is not None:
        return NumberMeanings({".": int(text), ",": int(text)}, "")
    found = _NUMBER(text)
    if found is None or len(text) > _DIGITS_MAX or (found["minus"] and found["sign"]):
        return None
    before, after = found["before"] or "", found["after"] or ""
    period = period_of(found["period"]) if found["period"] else None
    if (found["period"] and period is None) or (before and after):
        return None
    if _DIGITS(found["digits"]) is not None:
        return None
    values: dict[str, int | float] = {}
    for sign, form in _FORMS.items():
        if form(found["digits"]) is not None:
            bare = "".join(c for c in found["digits"] if c.isdigit() or c == sign)
            value = _parse_digits(bare.replace(sign, "."), bool(found["thousand"]))
            values[sign] = -value if (found["minus"] or found["sign"] or "+") != "+" else value
    unit = unit_of(before or after)
    return NumberMeanings(values, unit or after, period) if values else None


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


def as_integer_if_whole(value: float) -> int | float:
    """Return a whole number as an integer, and other numbers unchanged.

    A number with more than 15 digits stays a float, because a workbook has lost digits of it.
    """
    return int(value) if value.is_integer() and abs(value) < _EXACT_MAX else value


def as_typed(value: float) -> int | float | str:
    """Return a workbook's number as it was typed: 3 instead of 3.0; text if it is not finite."""
    # No program writes such numbers; as text they are refused in a number column.
    return as_integer_if_whole(value) if math.isfinite(value) else str(value)


def number_reader(
    decimal: Decimal | None,
    is_percentage: bool,
    *,
    period: str | None = None,
    is_inferred: bool = False,
) -> ReadText:
    """Return the reader of a number.

    Args:
        decimal: Decimal separator, if it is known.
        is_percentage: True if the field is a percentage.
        period: Time unit that the field is for or counts. A number with another unit is refused.
        is_inferred: True if other cells determined the separator, not the user. Then three digits
            after it are not read as a fraction: 45.000 is not 45.

    Returns:
        The reader. It returns an `Amount` if the cell shows a currency.
    """

    def read(text: str) -> Any:
        found = number_meanings(text)
        if found is None:
            raise _not_a_number_error(text)
        if found.period not in (None, period):
            raise _other_period_error(text, found.period, period)
        values = found.values
        value = values.get(decimal) if decimal else next(iter(values.values()))
        if value is None:
            if not is_inferred:
                raise CellError("decimal_sign", fix=_SIGNS_TOLD[decimal])
            value = next(iter(values.values()))
        whole = max(values.values(), key=abs)
        if found.is_ambiguous and (decimal is None or (is_inferred and value != whole)):
            shown = " or ".join(f"{each:,}" for each in dict.fromkeys(values.values()))
            raise CellError(
                "ambiguous_number",
                f"The value can be {shown}.",
                fix=f"Enter {whole} if that is right, or choose the decimal separator of the"
                " column.",
            )
        return _check_unit(value, found.unit, is_percentage)

    return read


def _check_unit(value: int | float, unit: str, is_percentage: bool) -> Any:
    """Return the number, an `Amount` if it has a currency, or a number with a warning.

    Raises `CellError` for a number that is too large, or has a unit that the field does not accept.
    """
    if is_too_large(value):
        raise CellError("too_large")
    if unit == "%":
        if not is_percentage:
            raise CellError("percent_sign")
        return with_note(value, "large_percentage") if value > _SHARE_MAX else value
    if unit:
        if is_percentage:
            raise CellError(
                "currency_sign",
                "The value has a currency, but this column is a percentage.",
                fix="Enter a percentage.",
            )
        return Amount(value, unit)
    return _note_odd_percentage(value) if is_percentage else value


def _note_odd_percentage(value: int | float) -> int | float | ValueWithNotes:
    """Return the percentage, with a warning if it is above 100 or between 0 and 1."""
    if value > _SHARE_MAX:
        return with_note(value, "large_percentage")
    return with_note(value, "small_percentage") if 0 < value < 1 else value


_SIGNS_TOLD: Mapping[str | None, str] = {
    ".": "Use a dot before a fraction, as in the rest of the column.",
    ",": "Use a comma before a fraction, as in the rest of the column.",
}
_IS_RATE = re.compile(r"/|\b(?:per|pro|par|por|al?|à|p\.)\b", re.IGNORECASE).search
_RANGE = re.compile(
    r"(\S*\d\S*?)\s*(?:[-\u2013\u2014]|to|bis|à)\s*\S*\d\S*", re.IGNORECASE
).fullmatch


def _other_period_error(text: str, found: str, period: str | None) -> CellError:
    """Return the error for a number per or in `found`, in a column with the time unit `period`."""
    if period is None:
        return CellError("other_period", f"The value has a period ({found}).", fix=_NUMBER_ALONE)
    if _IS_RATE(text):
        message = f"The value is per {found}, but this column is per {period}."
        return CellError("other_period", message, fix=f"Enter the amount per {period}.")
    message = f"The value is in {found}s, but this column is in {period}s."
    return CellError("other_period", message, fix=f"Enter the number of {period}s.")


_NUMBER_ALONE = "Enter the number alone."


def _not_a_number_error(text: str) -> CellError:
    """Return the error for a text that is too long, scientific, a range, or no number."""
    if _DIGITS(text.lstrip("+-")) is not None:
        return CellError("too_large")
    if _SCIENTIFIC(text) is not None:
        return CellError("scientific")
    if _RANGE(text) is not None:
        fix = "Enter one number, for example 45000."
        return CellError("not_a_number", "The value is a range.", fix=fix)
    return CellError("not_a_number")


def typed_number(is_percentage: bool) -> ReadTyped:
    """Return the reader of number cells. It raises `CellError` for other cells."""

    def read(cell: Any) -> Any:
        if isinstance(cell, Amount):
            value = _check_unit(cell.value, cell.unit, is_percentage)
            message = f"The cell shows {cell.shown}, but contains {cell.value}, which is imported."
            return with_note(value, "rounded", message) if cell.shown else value
        is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
        if is_number and not (isinstance(cell, float) and math.isnan(cell)):
            # Spreadsheet programs show at most this number of digits.
            number = float(f"{cell:.15g}") if isinstance(cell, float) else cell
            return _check_unit(number, "", is_percentage)
        raise CellError(
            "not_a_number",
            "The value is stored as a date or as true or false, not as a number.",
            fix="Format the column as a number and enter the value again.",
        )

    return read


def integer_reader(
    decimal: Decimal | None,
    *,
    period: str | None = None,
    is_inferred: bool = False,
    month_days: int | None = None,
) -> ReadText:
    """Return the reader of a whole number in text.

    A column that counts days also accepts weeks, and months of `month_days` days.
    """
    read = _whole_number_reader(
        number_reader(decimal, False, period=period, is_inferred=is_inferred)
    )
    return _days_reader(read, month_days) if period == "day" else read


_WEEK_DAYS = 7


def _days_reader(read: ReadText, month_days: int | None) -> ReadText:
    """Return a reader that converts weeks and months to days, and reads other texts with `read`."""

    def read_days(text: str) -> Any:
        found = number_meanings(text)
        count = found.values.get(".") if found is not None else None
        if found is None or _IS_RATE(text) or type(count) is not int:
            return read(text)
        if found.period == "week":
            return count * _WEEK_DAYS
        if found.period == "month":
            if month_days is None:
                raise CellError("month_length")
            return count * month_days
        return read(text)

    return read_days


def typed_integer() -> ReadTyped:
    """Return the reader of cells with whole numbers. It raises `CellError` for other cells."""
    return _whole_number_reader(typed_number(is_percentage=False))


def _whole_number_reader(read_number: ReadTyped) -> ReadTyped:
    """Return a reader that refuses fractions and currencies in the result of `read_number`."""

    def read(cell: Any) -> int:
        number = read_number(cell)
        if isinstance(number, ValueWithNotes):
            number = number.value
        if isinstance(number, Amount):
            raise CellError("currency_sign", fix="Enter the number alone.")
        if number != number // 1:
            raise CellError("not_whole")
        return int(number)

    return read


# -- Number formats --------------------------------------------------------------------------------
# A format is part of the value: it may show a unit, leading zeros, fewer digits than the cell
# contains, a word instead of a number, or a part of a date. If it shows the number and perhaps a
# unit, the cell stays a number. Otherwise it becomes the visible text.


_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<sign>[^\]-]*)[^\]]*\]'
    r"|\[(?P<bracket>[^\]]*)\]|(?P<end>;)|(?P<general>General)|(?P<code>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|[<>=])\s*(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+))").fullmatch
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_GENERAL = "\0"
_PLACE = re.compile(r"\0|[0#?](?:[, \u00a0\u202f]?[0#?])*(?:\.([0#?]*))?(,*)")
_MASK = re.compile(r"(?=.*0.*0|.*[0#] ?[-()] ?[0#])[0# \-+()]*").fullmatch
_DATE_PART = re.compile(r"y+|m+|d+|h+|s+|am/pm", re.IGNORECASE)
_PARTS = "yyyy %Y yy %y mmmm %B mmm %b mm %m m %-m dddd %A ddd %a dd %d d %-d hh %H h %-H ss %S"
_STRFTIME = dict(zip(_PARTS.split()[::2], _PARTS.split()[1::2], strict=True))
_THOUSANDS_MAX = 10
"""Maximum number of divisions by a thousand in a format; fewer already show every number as 0."""

_LITERAL = 0xF0000
"""Offset added to literal characters of a format, so that they are not parsed as codes."""

_TEXT_SECTION = 3
"""Index of the format section for texts."""

_SAMPLES = (1, -1, 0, 0.1234567, "x", datetime(2001, 2, 3))


@dataclass(frozen=True, slots=True)
class _FormatSection:
    """Section of a number format: its codes, with literals, and the condition for using it."""

    codes: str
    is_used: Callable[[float], bool] | None = None


@lru_cache(maxsize=1_000)
def _format_sections(number_format: str) -> tuple[_FormatSection, ...]:
    """Return the sections of a number format; their literal characters are moved by `_LITERAL`."""
    sections, codes, is_used = list[_FormatSection](), "", None
    for found in _TOKEN.finditer(f"{number_format};"):
        if found["end"]:
            sections.append(_FormatSection(codes, is_used))
            codes, is_used = "", None
        elif condition := _CONDITION(found["bracket"] or ""):
            compared, limit = _COMPARED[condition[1]], float(condition[2])
            is_used = lambda value, c=compared, b=limit: c(value, b)  # noqa: E731
        elif found["general"]:
            codes += _GENERAL
        else:
            literal = found["quoted"] or found["escaped"] or found["sign"] or ""
            codes += "".join(
                c if c.isspace() else chr(ord(c) % _LITERAL + _LITERAL) for c in literal
            )
            codes += found["code"] or ""
    return tuple(sections)


def _restore_literals(codes: str) -> str:
    """Return the text with its literal characters as the format contains them."""
    return "".join(chr(ord(each) - _LITERAL) if ord(each) > _LITERAL else each for each in codes)


def changes_visible_value(number_format: str) -> bool:
    """Return True if cells with this number format show more or less than their value."""
    return any(apply_format(each, number_format) != each for each in _SAMPLES)


def apply_format(cell: Cell, number_format: str) -> Cell:
    """Return the cell as its format shows it: with its unit, or as the visible text.

    A number that is shown rounded or without its sign, a hidden value, and a date that is shown
    without its year keep their value and also contain the visible text.
    """
    if isinstance(cell, bool) or cell == "" or not number_format:
        return cell
    sections = _format_sections(number_format)
    if isinstance(cell, str):
        return _apply_text_format(cell, sections, number_format)
    if isinstance(cell, date | time):
        return _apply_date_format(cell, sections[0].codes, number_format)
    if not isinstance(cell, int | float) or is_too_large(cell):
        return cell
    numeric = [each for each in sections[:3] if "@" not in each.codes] or [_FormatSection(_GENERAL)]
    if any(each.is_used for each in numeric):
        matching = (each for each in numeric if each.is_used is None or each.is_used(cell))
        return _apply_number_format(cell, next(matching, numeric[-1]).codes, number_format)
    index = 1 if cell < 0 and len(numeric) > 1 else 2 if cell == 0 and len(numeric) > 2 else 0
    return _apply_number_format(cell, numeric[index].codes, number_format, hides_sign=index == 1)


def _apply_text_format(text: str, sections: tuple[_FormatSection, ...], number_format: str) -> Cell:
    """Return the text with the literals of its section, or as a partly visible cell if it is
    hidden.
    """
    if len(sections) > _TEXT_SECTION and not sections[_TEXT_SECTION].codes:
        return PartlyVisibleCell(text, "", number_format)
    codes = next((each.codes for each in sections if "@" in each.codes), "@")
    return text if codes == "@" else _restore_literals(codes).strip().replace("@", text)


def _apply_number_format(
    cell: float, codes: str, number_format: str, *, hides_sign: bool = False
) -> Cell:
    """Return the number as one section shows it: a number, an amount, or the visible text.

    `hides_sign` is True for a section of negative numbers, which shows a minus only if it has one.
    """
    place = _PLACE.search(codes)
    if place is None:
        if _DATE_PART.search(codes):
            return cell
        return _restore_literals(codes).strip() or PartlyVisibleCell(cell, "", number_format)
    bare = "".join(each for each in codes if ord(each) < _LITERAL)
    if _MASK(bare):
        is_whole = cell >= 0 and cell == int(cell)
        return _apply_mask(str(int(cell)), codes) if is_whole else cell
    before, after = (
        _restore_literals(codes[: place.start()]),
        _restore_literals(codes[place.end() :]),
    )
    if re.match(r"E[+-]|\s*/", after):
        return cell
    around = f"{before} {after}".replace("%", "").strip(" -()\u00a0")
    unit = "%" if "%" in bare else unit_of(around)
    value = round(cell * 100, 10) if "%" in bare else cell
    decimals = None if place[0] == _GENERAL else len(place[1] or "")
    scaled = abs(value) / 1000 ** min(len(place[2] or ""), _THOUSANDS_MAX)
    figure = str(scaled) if decimals is None else f"{scaled:.{decimals}f}"
    sign = "-" if value < 0 and not hides_sign else ""
    if unit is None or place[2]:
        return f"{sign}{before}{figure}{after}".strip()
    shown = ""
    rounded = value if decimals is None else round(value, decimals)
    if hides_sign and not {*"-("} & {*before}:
        shown = figure
    elif abs(rounded - value) > 1e-9 * max(1.0, abs(value)):
        shown = f"{sign}{figure}{'%' if unit == '%' else ''}"
    return Amount(value, unit, number_format, shown) if unit or shown else cell


def _apply_mask(digits: str, codes: str) -> str:
    """Return the digits inserted in a mask, such as 07700 900123 in 00000 000000."""
    remaining, shown = list(digits), list[str]()
    first = next(index for index, each in enumerate(codes) if each in "0#")
    for index, each in reversed([*enumerate(codes)]):
        shown.append(
            each if each not in "0#" else remaining.pop() if remaining else "0" * (each == "0")
        )
        if index == first:
            shown += reversed(remaining)
    return _restore_literals("".join(reversed(shown))).strip()


def _apply_date_format(cell: date | time, codes: str, number_format: str) -> Cell:
    """Return the date, or its visible text if the format shows only a part of it.

    A date that is shown without its year becomes a partly visible cell.
    """
    found = [each.lower() for each in _DATE_PART.findall(codes)]
    if not found or _PLACE.search(codes):
        return cell
    has_time = any(each[0] in "hs" for each in found)
    days, months = {"d", "dd"} & {*found}, [each for each in found if each[0] == "m"]
    years = any(each[0] == "y" for each in found)
    if isinstance(cell, time) or (days and years and (len(months) > 1 or not has_time)):
        return cell
    if not days and not years:
        return cell.time() if isinstance(cell, datetime) else time()

    def shown(part: re.Match[str]) -> str:
        return cell.strftime(_STRFTIME.get(part[0].lower(), " "))

    text = _restore_literals(_DATE_PART.sub(shown, codes)).strip()
    return (
        PartlyVisibleCell(cell, text, number_format) if days and months and not has_time else text
    )


_LENGTH_OF_TIME = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE).search


def shows_duration(number_format: str) -> bool:
    """Return True if the number format shows a duration, such as 37:30 hours."""
    return _LENGTH_OF_TIME(number_format) is not None


def shows_time_alone(number_format: str) -> bool:
    """Return True if the number format shows a time without a date."""
    parts = {
        each[0].lower() for each in _DATE_PART.findall(_format_sections(number_format)[0].codes)
    }
    return bool(parts & {"h", "s"}) and not parts & {"d", "y"}
