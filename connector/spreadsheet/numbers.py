"""Reading numbers, whole numbers and truth values: plainly written, or as it was declared.

A dot or a comma before three digits can be the decimal sign or part thousands off; which of them
is never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from connector.spreadsheet.unreadable import ReadText, ReadTyped, Unreadable, joined
from connector.value import Kind

Decimal = Literal[".", ","]
"""The sign before the fraction of a number."""

_INTEGER_MAX = 2**63 - 1
_DIGITS_MAX = 300
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_DIGITS = re.compile(r"[+-]?[0-9]+").fullmatch
_PLAIN = {sign: re.compile(rf"[+-]?[0-9]+{re.escape(sign)}[0-9]+").fullmatch for sign in ".,"}
_AMBIGUOUS = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}").fullmatch
_SIGNS = re.compile(r"[\s\u00a0\u202f'\u2019]|[^\W\d_]+|[$£€¥₹%]")
_CURRENCY = re.compile(r"[$£€¥₹]|\b(?:GBP|EUR|USD|CHF)\b", re.IGNORECASE)
_SCIENTIFIC = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?[eE][+-]?[0-9]+").fullmatch
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:([.,'\u2019\s\u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*")


def number_reader(decimal: Decimal | None) -> ReadText:
    """How texts are read where a number belongs; `decimal` where a person declared it.

    Undeclared it is a dot, except where the dot could part thousands off.
    """
    sign = decimal or "."
    plain = _PLAIN[sign]

    def read(text: str) -> int | float:
        if _WHOLE(text) is not None:
            return int(text)
        if plain(text) is not None and len(text) < _DIGITS_MAX:
            if decimal is None and _AMBIGUOUS(text) is not None:
                raise _ambiguous(text)
            return float(text if sign == "." else text.replace(sign, "."))
        raise _odd_number(text, decimal)

    return read


def integer_reader(decimal: Decimal | None) -> ReadText:
    """How texts are read where a whole number belongs."""
    read_number = number_reader(decimal)

    def read(text: str) -> int:
        if _WHOLE(text) is not None:
            return int(text)
        number = read_number(text)
        if number == int(number) and abs(number) <= _INTEGER_MAX:
            return int(number)
        raise _not_whole()

    return read


def _not_whole() -> Unreadable:
    return Unreadable(
        "not_whole", "It has a fraction.", allowed="a whole number", fix="Write a whole number."
    )


def _ambiguous(text: str) -> Unreadable:
    whole = re.sub(r"[.,]", "", text)
    return Unreadable(
        "ambiguous_number",
        f"The {'dot' if '.' in text else 'comma'} can be the decimal sign or part thousands off.",
        allowed="digits, and a dot before a fraction",
        fix=f"Write {whole} if that is meant, or declare the decimal sign of the column in a"
        " mapping file.",
    )


def _odd_number(text: str, decimal: Decimal | None) -> Unreadable:
    """Why the text is no number, with what it was perhaps meant to be."""
    if decimal is None and _AMBIGUOUS(text) is not None:
        return _ambiguous(text)
    bare = _bare(text, decimal)
    fix = f"Write {bare}" if bare else "Write the number in digits, or clear the cell."
    code, message = "not_a_number", "It is not a number."
    if _DIGITS(text) is not None:
        code, message, fix = "too_large", "It has too many digits.", "Write at most 18 digits."
    elif _SCIENTIFIC(text) is not None:
        code, message = "scientific", "It is in scientific notation, and may have been rounded."
        fix = "Take the number from its source again, and write all of its digits."
    elif _CURRENCY.search(text):
        code, message = "currency_sign", "It holds a currency."
        fix += ", and the currency in a column of its own." if bare else ""
    elif "%" in text:
        code, message = "percent_sign", "It holds a percent sign."
    elif bare and _GROUPED.match(text):
        code, message = "thousands", "It parts thousands off."
    elif bare and re.search(r"[.,]", text):
        code, message = "decimal_sign", "Its decimal sign is not that of the column's numbers."
        fix += ", or declare the decimal sign of the column in a mapping file."
    allowed = f"digits, and a {'comma' if decimal == ',' else 'dot'} before a fraction"
    return Unreadable(code, message, allowed=allowed, fix=fix)


def _bare(text: str, decimal: Decimal | None) -> str | None:
    """The number without currency and thousands, where only one number can be meant."""
    rest = _SIGNS.sub("", text)
    if re.search(r"[^\W\d_]", re.sub(_CURRENCY, "", text)):
        return None
    dots, commas = rest.count("."), rest.count(",")
    if dots and commas:
        # The sign that comes last is the decimal one, if it comes once.
        sign = "." if rest.rindex(".") > rest.rindex(",") else ","
        if rest.count(sign) > 1:
            return None
    elif dots + commas == 0:
        sign = "."
    else:
        sign = "." if dots else ","
        is_group = (dots + commas) > 1 or re.fullmatch(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}", rest)
        if is_group:
            # Declared or repeated, the sign parts thousands off.
            sign = "," if sign == "." else "."
    bare = rest.replace("," if sign == "." else ".", "").replace(sign, ".")
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", bare):
        return None
    return bare if decimal != "," else bare.replace(".", ",")


def typed_number(cell: Any) -> int | float:
    """A number as a spreadsheet program typed it."""
    if isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell):
        return cell
    raise Unreadable(
        "not_a_number",
        "A spreadsheet program has made a date or a truth value of it.",
        allowed="a number",
        fix="Format the column as a number and type the value again.",
    )


def typed_integer(cell: Any) -> int:
    """A whole number as a spreadsheet program typed it."""
    number = typed_number(cell)
    if number != number // 1:
        raise _not_whole()
    if abs(number) > _INTEGER_MAX:
        raise Unreadable("too_large", "It is too large.", allowed="at most 18 digits")
    return int(number)


_TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "no", "n", "0"), False),
}
_TRUTH_WORDS = ("true", "false", "yes", "no", "1", "0")


def read_bool(text: str) -> bool:
    """A truth value, in any letter case."""
    value = _TRUTHS.get(text.lower())
    if value is None:
        raise Unreadable(
            "not_true_or_false",
            "It is neither true nor false.",
            allowed=joined(_TRUTH_WORDS),
            fix="Write yes or no, or clear the cell.",
        )
    return value


def typed_bool(cell: Any) -> bool:
    """A truth value as a spreadsheet program typed it; 1 and 0 are that as well."""
    if isinstance(cell, bool | int | float) and cell in (0, 1):
        return bool(cell)
    raise Unreadable(
        "not_true_or_false",
        "It is neither true nor false.",
        allowed=joined(_TRUTH_WORDS),
        fix="Write yes or no, or clear the cell.",
    )


TYPED: Mapping[Kind, ReadTyped] = {
    Kind.NUMBER: typed_number,
    Kind.INTEGER: typed_integer,
    Kind.BOOL: typed_bool,
}
"""How typed cells are read, by kind."""
