"""Readers of cells: one for each column, made once for a file.

A reader gives a JSON value, as a body takes it, or raises `CellError` with a code and a fix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.catalog.value import Kind
from connector.ledger.push_states import Mode
from connector.spreadsheet.columns import normalized_heading
from connector.spreadsheet.contacts import is_plain_phone, phone_reader
from connector.spreadsheet.dates import date_reader, moment_reader, typed_date, typed_moment
from connector.spreadsheet.numbers import (
    Decimal,
    integer_reader,
    number_reader,
    typed_integer,
    typed_number,
)
from connector.spreadsheet.problems import (
    Cell,
    CellError,
    NotedValue,
    ReadText,
    ReadTyped,
    with_note,
)
from connector.spreadsheet.target_columns import TargetColumn
from connector.spreadsheet.texts import (
    CODED,
    FORMATS,
    STORED,
    TextForm,
    clean_text,
    read_code,
    read_digits,
    read_id,
    read_text,
    typed_text,
)
from connector.spreadsheet.word_lists import (
    TRUTHS,
    choice_of,
    means_ditto,
    means_empty,
    means_immediately,
    normalized_words,
)

ColumnPolicy = Literal["overwrite", "fill", "append", "never"]
"""Policy of a column for records that exist: overwrite the value, fill it only if it is empty,
append to a long text, or leave it alone. A record that is created takes the column's value in any
case.
"""


def default_policy(column: TargetColumn) -> ColumnPolicy:
    """The policy that is proposed to a user: a long text is not overwritten."""
    return "fill" if column.field.is_long_text else "overwrite"


Immediately = Literal["today", "empty"]
"""Meaning of a word such as "asap" in a column of dates or of days."""


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Form of a column's cells, as a person declared it.

    `date_format` as `DD/MM/YYYY`; `decimal` is the sign before a fraction; `timezone` is that of
    times without one; `whole_numbers` says that numbers typed in a text column are as they should
    be. `values` are cells to be read as another text; an empty one leaves the field alone.
    `is_settled` says that the column's other cells chose the decimal sign, and no person.
    `region` is that of telephone numbers without their country, as GB; `century` the first of the
    hundred years that years of two digits are of. `month_days` is the number of days for which a
    month counts in a column of days. `immediately` says what a word such as "asap" is: "today" is
    the date of the import, or 0 days; "empty" leaves the field alone.
    """

    date_format: str | None = None
    decimal: Decimal | None = None
    timezone: str | None = None
    region: str | None = None
    century: int | None = None
    month_days: int | None = None
    immediately: Immediately | None = None
    whole_numbers: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    policy: ColumnPolicy = "overwrite"
    is_settled: bool = False


AS_WRITTEN = CellOptions()


@dataclass(frozen=True, slots=True)
class CellReader:
    """Readers of a column's cells: of texts, and of typed cells."""

    text: ReadText
    typed: ReadTyped

    def read(self, cell: Cell) -> Any:
        """The JSON value of a cell that is not blank, perhaps with notes.

        Raises `CellError`.
        """
        return self.text(cell.strip()) if isinstance(cell, str) else self.typed(cell)


def cell_reader(column: TargetColumn, mode: Mode, options: CellOptions = AS_WRITTEN) -> CellReader:
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
        made = CellReader(_several_values_reader(made.text), made.typed)
    seen = CellReader(_reader_of_shown_text(made.text, column), made.typed)
    return _mapping_reader(made, seen, options.values) if options.values else seen


_IS_AS_SEEN = re.compile(r"[ !#-%(-+\--<>@-[\]-~]{7,}").fullmatch
"""Whether a text has no letter or sign that may be shown otherwise than it is meant."""


def _reader_of_shown_text(read: ReadText, column: TargetColumn) -> ReadText:
    """The reader of a text as a person sees it, which may say that there is nothing."""
    field, is_name = column.field, column.reference is not None and column.reference.by is not None
    is_string = field.kind is Kind.STRING and not field.values
    # Where any text does, or any three letters, a word for nothing would do as well, so it is
    # looked for first. An id may be any word.
    is_other_id = field.kind is Kind.UUID and column.key != "id"
    takes_any = is_other_id or (is_string and field.format in (None, "currency"))
    is_plain = is_name or (is_string and field.format is None and not column.keeps_digits)
    form = TextForm(is_plain, is_plain and (is_name or field.is_one_line))

    def read_or_nothing(text: str) -> Any:
        if takes_any and means_empty(text):
            return with_note(None, "says_nothing")
        try:
            return read(text)
        except CellError:
            if means_empty(text):
                return with_note(None, "says_nothing")
            raise

    def read_seen(text: str) -> Any:
        if _IS_AS_SEEN(text) and CODED not in text:
            # Nearly every cell is so.
            return read_or_nothing(text)
        if takes_any and means_empty(text):
            return with_note(None, "says_nothing")
        if means_ditto(text):
            raise CellError("ditto")
        tidy = clean_text(text, form)
        if not isinstance(tidy, NotedValue):
            return read_or_nothing(tidy) if tidy else None
        value = read_or_nothing(tidy.value) if tidy.value else None
        for code, message in tidy.notes:
            value = with_note(value, code, message)
        return value

    return read_seen


def _reader_by_kind(column: TargetColumn, options: CellOptions) -> CellReader:
    form, century = options.date_format, options.century
    zone = ZoneInfo(options.timezone) if options.timezone else None
    match column.field.kind:
        case Kind.NUMBER:
            is_share = column.is_percentage
            settled, period = options.is_settled, column.period
            read = number_reader(options.decimal, is_share, period=period, is_settled=settled)
            return CellReader(read, typed_number(is_share))
        case Kind.INTEGER:
            settled, period = options.is_settled, column.period
            read = integer_reader(
                options.decimal, period=period, is_settled=settled, month_days=options.month_days
            )
            if period == "day":
                read = _or_immediately(read, 0, options.immediately)
            return CellReader(read, typed_integer())
        case Kind.BOOL:
            return CellReader(_read_bool, _typed_bool)
        case Kind.DATE:
            read = date_reader(form, century)
            if column.key != "date_of_birth":
                read = _or_immediately(read, date.today().isoformat(), options.immediately)
            return CellReader(read, typed_date)
        case Kind.DATETIME:
            return CellReader(moment_reader(form, zone, century), typed_moment(zone))
    return _reader_of_text(column, options)


def _or_immediately(read: ReadText, now: Any, meaning: Immediately | None) -> ReadText:
    """The reader of a column that may say "asap"; `now` is the value of that."""

    def read_or_now(text: str) -> Any:
        if not means_immediately(text):
            return read(text)
        if meaning is None:
            raise CellError("immediately")
        return now if meaning == "today" else None

    return read_or_now


def _reader_of_text(column: TargetColumn, options: CellOptions) -> CellReader:
    if column.field.kind is Kind.UUID:
        return CellReader(read_id, typed_text(keeps_digits=True, whole_numbers=True))
    if column.field.format is not None:
        return _text_reader(FORMATS[column.field.format], column.keeps_digits, options)
    if column.is_phone:
        return _text_reader(_phone_text(options.region), True, options)
    typed = typed_text(column.keeps_digits, options.whole_numbers)
    return CellReader(read_code if column.keeps_digits else read_text, typed)


def _phone_text(region: str | None) -> ReadText:
    read_phone = phone_reader(region)

    def read(text: str) -> str:
        if not is_plain_phone(text):
            return str(read_phone(read_digits(text)))
        return text if region is None else text.replace(" ", "")

    return read


def _text_reader(read: ReadText, keeps_digits: bool, options: CellOptions) -> CellReader:
    """The reader of texts of a form, which a typed cell must have as well."""
    typed = typed_text(keeps_digits, options.whole_numbers)
    return CellReader(read, lambda cell: read(typed(cell)))


def _several_values_reader(read_one: ReadText) -> ReadText:
    """The reader of several values: one a line, or with semicolons between."""

    def read(text: str) -> list[str]:
        parts = [part.strip() for part in re.split(r"[;\n]", text)]
        return list(dict.fromkeys(read_one(part) for part in parts if part))

    return read


def _mapping_reader(made: CellReader, seen: CellReader, values: Mapping[str, str]) -> CellReader:
    """The reader behind a map of values, whose letter case is aside.

    A value that a person has mapped is what they say, even one that says nothing otherwise.
    """
    folded = {cell.strip().casefold(): value for cell, value in values.items()}
    exact = {cell.strip(): value for cell, value in values.items()}

    def read(text: str) -> Any:
        value = exact.get(text)
        if value is None:
            value = folded.get(text.casefold())
        if value is None:
            return seen.text(text)
        return made.text(value) if value else None

    def typed(cell: Any) -> Any:
        value = exact.get(str(cell))
        return made.typed(cell) if value is None else (made.text(value) if value else None)

    return CellReader(read, typed)


# -- Choices ---------------------------------------------------------------------------------------
# A choice is the word of the API, however it is spelt, and never another word for it.


_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")


def _same_word(text: str) -> str:
    """The text under which a choice equals its other spellings.

    Letter case is aside, and blanks, hyphens and underscores are one: "Contract to Perm" is
    `contract_to_perm`.
    """
    return _BETWEEN.sub("_", text.strip().casefold())


def _choice_reader(known: Sequence[str], accepted: Sequence[str]) -> CellReader:
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
        if value is None and choice_of(text) in accepted:
            value = choice_of(text)
        if value is None:
            near = _closest_value(text, accepted)
            fix = f"Did you mean {near}? Enter it, or another allowed value."
            raise CellError("unknown_value", allowed=allowed, fix=fix if near else None)
        return value

    def typed(cell: Any) -> str:
        if isinstance(cell, date):
            raise CellError("not_text", STORED.format("a date"), allowed=allowed)
        return read(str(cell))

    return CellReader(read, typed)


def _closest_value(text: str, accepted: Sequence[str]) -> str | None:
    """The one allowed value that the text begins, or is most like."""
    wanted = normalized_heading(text)
    begun = [value for value in accepted if wanted and normalized_heading(value).startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    close = get_close_matches(_same_word(text), accepted, n=1, cutoff=0.7)
    return close[0] if close else None


# -- Truth values ----------------------------------------------------------------------------------


def _read_bool(text: str) -> bool:
    value = TRUTHS.get(normalized_words(text))
    if value is None:
        raise _not_boolean()
    return value


def _typed_bool(cell: Any) -> bool:
    """A truth value as a spreadsheet program typed it; 1 and 0 are that as well."""
    if isinstance(cell, bool | int | float) and cell in (0, 1):
        return bool(cell)
    raise _not_boolean()


def _not_boolean() -> CellError:
    return CellError("not_true_or_false")
