"""Reading one cell as what its field holds: a reader for each column, made once for a file.

A reader gives a JSON value, as a body takes it, or raises `Unreadable` with a code and a fix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.catalog.value import Kind
from connector.engine.push_states import Mode
from connector.spreadsheet.columns import plain
from connector.spreadsheet.dates import (
    DateFormat,
    date_reader,
    moment_reader,
    typed_date,
    typed_moment,
)
from connector.spreadsheet.row import Cell, ReadText, ReadTyped, Unreadable, joined
from connector.spreadsheet.target_columns import TargetColumn
from connector.spreadsheet.texts import FORMATS, read_digits, read_id, read_text, typed_text

# -- Choices ---------------------------------------------------------------------------------------
# Reading choices: the word of the API, however it is spelt, and never another one for it.


_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")
_SEPARATORS = re.compile(r"[;\n]")


def same_word(text: str) -> str:
    """The text under which a choice equals its other spellings: letter case aside, and blanks,
    hyphens and underscores as one: "Contract to Perm" is `contract_to_perm`.
    """
    return _BETWEEN.sub("_", text.strip().casefold())


def choice_reader(known: Sequence[str], accepted: Sequence[str]) -> ReadText:
    """How texts are read where one of the values belongs.

    `known` are all that the field may ever have, `accepted` those to name to a person.
    """
    words: dict[str, str | None] = {}
    for value in known:
        word = same_word(value)
        # A word that is two values is neither; each of them is still read as it is written.
        words[word] = None if word in words else value
    exact: Mapping[str, str] = {
        **{word: value for word, value in words.items() if value is not None},
        **{value: value for value in known},
    }

    def read(text: str) -> str:
        value = exact.get(text)
        if value is None:
            value = exact.get(same_word(text))
            if value is None:
                raise _unknown(text, accepted)
        return value

    return read


def _unknown(text: str, accepted: Sequence[str]) -> Unreadable:
    near = nearest(text, accepted)
    return Unreadable(
        "unknown_value",
        "It is not one of the field's values.",
        allowed=joined(tuple(accepted)),
        fix=f"Did you mean {near}? Write it so, or map the value in a mapping file."
        if near
        else "Write one of the allowed values, or map this one in a mapping file.",
    )


def nearest(text: str, accepted: Sequence[str]) -> str | None:
    """The one allowed value that the text begins, or is most like; None where none is near."""
    wanted = plain(text)
    begun = [value for value in accepted if wanted and plain(value).startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    close = get_close_matches(same_word(text), accepted, n=1, cutoff=0.7)
    return close[0] if close else None


def typed_choice(known: Sequence[str], accepted: Sequence[str]) -> ReadTyped:
    """How typed cells are read where a choice belongs: not at all, but for a whole number that is
    a value.
    """
    read_text = choice_reader(known, accepted)

    def read(cell: Any) -> str:
        if isinstance(cell, date | datetime):
            raise Unreadable(
                "not_text",
                "A spreadsheet program has made a date of it.",
                allowed=joined(tuple(accepted)),
                fix="Format the column as text and type the value again.",
            )
        return str(read_text(str(cell)))

    return read


def several(read_one: ReadText) -> ReadText:
    """How a text that holds several values is read: one a line, or with semicolons between."""

    def read(text: str) -> list[str]:
        parts = [part.strip() for part in _SEPARATORS.split(text)]
        return list(dict.fromkeys(read_one(part) for part in parts if part))

    return read


# -- Numbers ---------------------------------------------------------------------------------------
# Reading numbers, whole numbers and truth values: plainly written, or as it was declared.
#
# A dot or a comma before three digits can be the decimal sign or part thousands off; which of them
# is never guessed.


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


# -- Values ----------------------------------------------------------------------------------------
#


ColumnPolicy = Literal["overwrite", "fill", "never"]
"""What a column may do to a record that exists: write over what is there, fill only what is
empty, or nothing. A record that is created takes the column's value in any case.
"""


@dataclass(frozen=True, slots=True)
class CellOptions:
    """How the cells of a column are written, where a person said so.

    `date_format` as `DD/MM/YYYY`; `decimal` is the sign before a fraction; `timezone` is that of
    times without one; `whole_numbers` says that numbers typed in a text column are as they should
    be. `values` are cells to be read as another text; an empty one leaves the field alone.
    """

    date_format: str | None = None
    decimal: Decimal | None = None
    timezone: str | None = None
    whole_numbers: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    policy: ColumnPolicy = "overwrite"


AS_WRITTEN = CellOptions()


@dataclass(frozen=True, slots=True)
class Reader:
    """How a column's cells are read, texts and those that a spreadsheet program typed."""

    text: ReadText
    typed: ReadTyped

    def read(self, cell: Cell) -> Any:
        """The JSON value of a cell that is not blank. Raises `Unreadable`."""
        return self.text(cell.strip()) if isinstance(cell, str) else self.typed(cell)


def reader(column: TargetColumn, mode: Mode, options: CellOptions = AS_WRITTEN) -> Reader:
    """The reader of a column that fills this column.

    A reference by another field than the id is read as that field's text, to be looked up.
    Raises `ValueError` for a date format or a time zone that is none.
    """
    if column.reference is not None and column.reference.by is not None:
        read = FORMATS["email"] if column.reference.by == "email" else read_digits
        typed = typed_text(keeps_digits=True, whole_numbers=options.whole_numbers)
        made = Reader(read, lambda cell: read(typed(cell)))
    elif column.field.values:
        accepted = column.accepts(mode)
        made = Reader(
            choice_reader(column.field.values, accepted),
            typed_choice(column.field.values, accepted),
        )
    else:
        made = _by_kind(column, options)
    if column.many:
        made = Reader(several(made.text), made.typed)
    return _mapped(made, options.values) if options.values else made


def _by_kind(column: TargetColumn, options: CellOptions) -> Reader:
    kind = column.field.kind
    declared = DateFormat(options.date_format) if options.date_format else None
    zone = ZoneInfo(options.timezone) if options.timezone else None
    match kind:
        case Kind.NUMBER:
            made = Reader(number_reader(options.decimal), TYPED[kind])
        case Kind.INTEGER:
            made = Reader(integer_reader(options.decimal), TYPED[kind])
        case Kind.BOOL:
            made = Reader(read_bool, TYPED[kind])
        case Kind.DATE:
            made = Reader(date_reader(declared), typed_date)
        case Kind.DATETIME:
            made = Reader(moment_reader(declared, zone), typed_moment(zone))
        case Kind.UUID:
            made = Reader(read_id, typed_text(keeps_digits=True, whole_numbers=True))
        case _:
            made = _of_text(column, options)
    return made


def _of_text(column: TargetColumn, options: CellOptions) -> Reader:
    typed = typed_text(column.keeps_digits, options.whole_numbers)
    if column.field.format is None:
        return Reader(read_digits if column.keeps_digits else read_text, typed)
    read = FORMATS[column.field.format]
    return Reader(read, lambda cell: read(typed(cell)))


def _mapped(made: Reader, values: Mapping[str, str]) -> Reader:
    """The reader behind a map of values; letter case is aside where no cell says otherwise."""
    folded = {cell.strip().casefold(): value for cell, value in values.items()}
    exact = {cell.strip(): value for cell, value in values.items()}

    def read(text: str) -> Any:
        value = exact.get(text)
        if value is None:
            value = folded.get(text.casefold(), text)
        return made.text(value) if value else None

    def typed(cell: Any) -> Any:
        value = exact.get(str(cell))
        return made.typed(cell) if value is None else (made.text(value) if value else None)

    return Reader(read, typed)
