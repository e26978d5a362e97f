"""Readers of cells: one for each column, made once for a file.

A reader gives a JSON value, as a body takes it, or raises `Unreadable` with a code and a fix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
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
from connector.spreadsheet.problems import Cell, ReadText, ReadTyped, Unreadable
from connector.spreadsheet.target_columns import TargetColumn
from connector.spreadsheet.texts import FORMATS, read_digits, read_id, read_text, typed_text

Decimal = Literal[".", ","]
"""The sign before the fraction of a number."""

ColumnPolicy = Literal["overwrite", "fill", "never"]
"""Policy of a column for records that exist: write over what is there, fill only what is empty,
or nothing. A record that is created takes the column's value in any case.
"""


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Form of a column's cells, as a person declared it.

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
    """Readers of a column's cells: of texts, and of typed cells."""

    text: ReadText
    typed: ReadTyped

    def read(self, cell: Cell) -> Any:
        """The JSON value of a cell that is not blank. Raises `Unreadable`."""
        return self.text(cell.strip()) if isinstance(cell, str) else self.typed(cell)


def reader(column: TargetColumn, mode: Mode, options: CellOptions = AS_WRITTEN) -> Reader:
    """The reader of cells that fill this target column.

    A reference by another field than the id is read as that field's text, to be looked up.
    Raises `ValueError` for a date format or a time zone that is none.
    """
    if column.reference is not None and column.reference.by is not None:
        read = FORMATS["email"] if column.reference.by == "email" else read_digits
        made = _text_reader(read, True, options)
    elif column.field.values:
        made = _choice_reader(column.field.values, column.accepts(mode))
    else:
        made = _reader_by_kind(column, options)
    if column.many:
        made = Reader(_several(made.text), made.typed)
    return _mapped(made, options.values) if options.values else made


def _reader_by_kind(column: TargetColumn, options: CellOptions) -> Reader:
    declared = DateFormat(options.date_format) if options.date_format else None
    zone = ZoneInfo(options.timezone) if options.timezone else None
    match column.field.kind:
        case Kind.NUMBER:
            return Reader(_number_reader(options.decimal), _typed_number)
        case Kind.INTEGER:
            return Reader(_integer_reader(options.decimal), _typed_integer)
        case Kind.BOOL:
            return Reader(_read_bool, _typed_bool)
        case Kind.DATE:
            return Reader(date_reader(declared), typed_date)
        case Kind.DATETIME:
            return Reader(moment_reader(declared, zone), typed_moment(zone))
    return _reader_of_text(column, options)


def _reader_of_text(column: TargetColumn, options: CellOptions) -> Reader:
    if column.field.kind is Kind.UUID:
        return Reader(read_id, typed_text(keeps_digits=True, whole_numbers=True))
    if column.field.format is not None:
        return _text_reader(FORMATS[column.field.format], column.keeps_digits, options)
    typed = typed_text(column.keeps_digits, options.whole_numbers)
    return Reader(read_digits if column.keeps_digits else read_text, typed)


def _text_reader(read: ReadText, keeps_digits: bool, options: CellOptions) -> Reader:
    """The reader of texts of a form, which a typed cell must have as well."""
    typed = typed_text(keeps_digits, options.whole_numbers)
    return Reader(read, lambda cell: read(typed(cell)))


def _several(read_one: ReadText) -> ReadText:
    """The reader of several values: one a line, or with semicolons between."""

    def read(text: str) -> list[str]:
        parts = [part.strip() for part in re.split(r"[;\n]", text)]
        return list(dict.fromkeys(read_one(part) for part in parts if part))

    return read


def _mapped(made: Reader, values: Mapping[str, str]) -> Reader:
    """The reader behind a map of values, whose letter case is aside."""
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


# -- Choices ---------------------------------------------------------------------------------------
# A choice is the word of the API, however it is spelt, and never another word for it.


_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")


def _same_word(text: str) -> str:
    """The text under which a choice equals its other spellings.

    Letter case is aside, and blanks, hyphens and underscores are one: "Contract to Perm" is
    `contract_to_perm`.
    """
    return _BETWEEN.sub("_", text.strip().casefold())


def _choice_reader(known: Sequence[str], accepted: Sequence[str]) -> Reader:
    """The reader of one of the `known` values; `accepted` are named to a person."""
    allowed = ", ".join(accepted)
    words: dict[str, str | None] = {}
    for value in known:
        word = _same_word(value)
        # A word that is two values is neither; each of them is still read as it is written.
        words[word] = None if word in words else value
    exact = {**words, **{value: value for value in known}}

    def read(text: str) -> str:
        value = exact.get(text) or exact.get(_same_word(text))
        if value is None:
            near = _nearest(text, accepted)
            fix = f"Did you mean {near}? Write it so, or map the value in a mapping file."
            raise Unreadable("unknown_value", allowed=allowed, fix=fix if near else None)
        return value

    def typed(cell: Any) -> str:
        if isinstance(cell, date):
            raise Unreadable(
                "not_text", "A spreadsheet program has made a date of it.", allowed=allowed
            )
        return read(str(cell))

    return Reader(read, typed)


def _nearest(text: str, accepted: Sequence[str]) -> str | None:
    """The one allowed value that the text begins, or is most like."""
    wanted = plain(text)
    begun = [value for value in accepted if wanted and plain(value).startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    close = get_close_matches(_same_word(text), accepted, n=1, cutoff=0.7)
    return close[0] if close else None


# -- Numbers ---------------------------------------------------------------------------------------
# Numbers are plainly written, or as it was declared. A dot or a comma before three digits can be
# the decimal sign or part thousands off; which of them is never guessed.


_INTEGER_MAX = 2**63 - 1
_DIGITS_MAX = 300
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_DIGITS = re.compile(r"[+-]?[0-9]+").fullmatch
_PLAIN = {sign: re.compile(rf"[+-]?[0-9]+{re.escape(sign)}[0-9]+").fullmatch for sign in ".,"}
_AMBIGUOUS = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}").fullmatch
_LETTER = re.compile(r"[^\W\d_]")
_SIGNS = re.compile(r"[\s\u00a0\u202f'\u2019]|[^\W\d_]+|[$£€¥₹%]")
_CURRENCY = re.compile(r"[$£€¥₹]|\b(?:GBP|EUR|USD|CHF)\b", re.IGNORECASE)
_SCIENTIFIC = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?[eE][+-]?[0-9]+").fullmatch
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:([.,'\u2019\s\u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*")


def _number_reader(decimal: Decimal | None) -> ReadText:
    """The reader of a number, whose decimal sign is a dot if undeclared.

    A dot that could part thousands off is then refused.
    """
    sign = decimal or "."
    is_plain = _PLAIN[sign]

    def read(text: str) -> int | float:
        if _WHOLE(text) is not None:
            return int(text)
        if is_plain(text) is None or len(text) >= _DIGITS_MAX:
            raise _odd_number(text, decimal)
        if decimal is None and _AMBIGUOUS(text) is not None:
            raise _ambiguous(text)
        return float(text.replace(sign, "."))

    return read


def _integer_reader(decimal: Decimal | None) -> ReadText:
    read_number = _number_reader(decimal)

    def read(text: str) -> int:
        number = read_number(text)
        if number == int(number) and abs(number) <= _INTEGER_MAX:
            return int(number)
        raise Unreadable("not_whole", allowed="a whole number")

    return read


def _ambiguous(text: str) -> Unreadable:
    return Unreadable(
        "ambiguous_number",
        allowed="digits, and a dot before a fraction",
        fix=f"Write {re.sub('[.,]', '', text)} if that is meant, or declare the decimal sign of the"
        " column in a mapping file.",
    )


def _odd_number(text: str, decimal: Decimal | None) -> Unreadable:
    """Why the text is no number, with what it was perhaps meant to be."""
    if decimal is None and _AMBIGUOUS(text) is not None:
        return _ambiguous(text)
    bare = _bare(text, decimal)
    code, more = "not_a_number", "."
    if _DIGITS(text) is not None:
        return Unreadable("too_large", fix="Write at most 18 digits.")
    if _SCIENTIFIC(text) is not None:
        return Unreadable("scientific")
    if _CURRENCY.search(text):
        code, more = "currency_sign", ", and the currency in a column of its own."
    elif "%" in text:
        code = "percent_sign"
    elif bare and _GROUPED.match(text):
        code = "thousands"
    elif bare and re.search(r"[.,]", text):
        code, more = "decimal_sign", ", or declare the column's decimal sign in a mapping file."
    return Unreadable(
        code,
        allowed=f"digits, and a {'comma' if decimal == ',' else 'dot'} before a fraction",
        fix=f"Write {bare}{more}" if bare else "Write the number in digits, or clear the cell.",
    )


def _bare(text: str, decimal: Decimal | None) -> str | None:
    """The number without currency and thousands, where only one number can be meant."""
    if _LETTER.search(_CURRENCY.sub("", text)):
        return None
    rest = _SIGNS.sub("", text)
    dots, commas = rest.count("."), rest.count(",")
    sign, other = (".", ",") if rest.rfind(".") >= rest.rfind(",") else (",", ".")
    if dots and commas:
        # The sign that comes last is the decimal one, if it comes once.
        if rest.count(sign) > 1:
            return None
    elif dots + commas > 1 or _AMBIGUOUS(rest):
        # Declared or repeated, the sign parts thousands off.
        sign, other = other, sign
    bare = rest.replace(other, "").replace(sign, ".")
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", bare):
        return None
    return bare if decimal != "," else bare.replace(".", ",")


def _typed_number(cell: Any) -> int | float:
    if isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell):
        return cell
    raise Unreadable(
        "not_a_number",
        "A spreadsheet program has made a date or a truth value of it.",
        allowed="a number",
        fix="Format the column as a number and type the value again.",
    )


def _typed_integer(cell: Any) -> int:
    number = _typed_number(cell)
    if number != number // 1:
        raise Unreadable("not_whole", allowed="a whole number")
    if abs(number) > _INTEGER_MAX:
        raise Unreadable("too_large", allowed="at most 18 digits")
    return int(number)


# -- Truth values ----------------------------------------------------------------------------------


_TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "no", "n", "0"), False),
}


def _read_bool(text: str) -> bool:
    value = _TRUTHS.get(text.lower())
    if value is None:
        raise _no_truth()
    return value


def _typed_bool(cell: Any) -> bool:
    """A truth value as a spreadsheet program typed it; 1 and 0 are that as well."""
    if isinstance(cell, bool | int | float) and cell in (0, 1):
        return bool(cell)
    raise _no_truth()


def _no_truth() -> Unreadable:
    return Unreadable("not_true_or_false", allowed="true, false, yes, no, 1, 0")
