"""Readers of cells: one for each column of a file.

A reader returns the JSON value for a request body, or raises `CellError` with a code and a fix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from connector.catalog.field import Kind
from connector.spreadsheet import texts, words
from connector.spreadsheet.dates import date_reader, timestamp_reader, typed_reader
from connector.spreadsheet.numbers import number_reader, typed_number
from connector.spreadsheet.problems import (
    Cell,
    CellError,
    ReadText,
    ReadTyped,
    ValueWithNotes,
    with_note,
)
from connector.spreadsheet.targets import AS_WRITTEN, CellOptions, TargetColumn
from connector.state.row import Mode


class ChosenText(str):
    """Text that the user chose for a cell. An id that was chosen need not be known."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CellReader:
    """Readers of a column's cells: `text` for texts, `typed` for numbers, dates and booleans."""

    text: ReadText
    typed: ReadTyped

    def read(self, cell: Cell) -> Any:
        """Return the JSON value of a cell that is not blank, or `ValueWithNotes`.

        Raises `CellError`.
        """
        return self.text(cell.strip()) if isinstance(cell, str) else self.typed(cell)


def cell_reader(column: TargetColumn, mode: Mode, options: CellOptions = AS_WRITTEN) -> CellReader:
    """Return the reader of cells for this target column.

    A reference is read as the text that names its record; the id is found later. Raises
    `ValueError` for an invalid date format or time zone.
    """
    if column.reference is not None:
        reader = _reader_from_text(_read_reference, column.reference.by is not None, options)
    elif column.field.values:
        reader = _choice_reader(column.field.values, column.accepted_values(mode))
    else:
        reader = _reader_by_kind(column, options)
    visible = CellReader(_reader_of_shown_text(reader.text, column), reader.typed)
    return _mapping_reader(reader, visible, options.values) if options.values else visible


_IS_AS_SEEN = re.compile(r"[ !#-%(-+\--<>@-[\]-~]{7,}").fullmatch
"""Return a match unless the text has a letter or sign that may look different from its code."""

_NO_NAME = {*words.TITLES, *(each for each in words.DEGREES if len(each) > 2)}
# These are names of people, too.
_NO_NAME -= {"beng", "dame", "her", "herr", "ing", "llm", "med", "meng", "rev", "sir", "snr"}
_NOT_APPLICABLE = frozenset(("na", "n a"))


def _reader_of_shown_text(read: ReadText, column: TargetColumn) -> ReadText:
    """Return a reader that cleans a text and reads it with `read`; words like "n/a" become None."""
    field, is_name = column.field, column.reference is not None and column.key != "id"
    is_string = field.kind is Kind.STRING and not field.values
    # In fields that accept any text or any three letters, a word for an empty value would be
    # accepted, so it is checked first. An id may be any word.
    takes_any = is_name or (is_string and field.format in (None, "currency"))
    is_plain = is_name or (is_string and field.format is None and not column.keeps_digits)
    is_one_line = is_plain and (is_name or field.is_one_line)
    is_answer, is_amount = "not_applicable" in field.values, field.kind is Kind.NUMBER

    def read_or_nothing(text: str) -> Any:
        if takes_any and words.means_nothing(text):
            return with_note(None, "says_nothing")
        try:
            return read(text)
        except CellError:
            is_choice = is_answer and words.normalized_words(text) in _NOT_APPLICABLE
            is_nothing = words.means_nothing(text) or (
                is_amount and words.normalized_words(text) in words.NO_AMOUNT
            )
            if is_choice or not is_nothing:
                raise
            return with_note(None, "says_nothing")

    def read_seen(text: str) -> Any:
        # The first condition is true for nearly every cell.
        if (_IS_AS_SEEN(text) and texts.CODED not in text) or (
            takes_any and words.means_nothing(text)
        ):
            return read_or_nothing(text)
        if words.is_ditto(text):
            raise CellError("ditto")
        tidy = texts.clean_text(text, is_plain=is_plain, is_one_line=is_one_line)
        if not isinstance(tidy, ValueWithNotes):
            return read_or_nothing(tidy) if tidy else None
        value = read_or_nothing(tidy.value) if tidy.value else None
        for code, message in tidy.notes:
            value = with_note(value, code, message)
        return value

    is_part_of_name = column.key in ("first_name", "last_name")
    return partial(_read_name, read_seen) if is_part_of_name else read_seen


def _read_name(read: ReadText, text: str) -> Any:
    """Return a first or last name, with a warning for a title, a degree or a sign in it.

    Raises `CellError` for a text that has nothing else.
    """
    if (text.isalpha() and text.casefold() not in _NO_NAME) or words.means_nothing(text):
        return read(text)
    if not any(map(str.isalpha, text)):
        raise CellError("name_unclear", "The value is no name.")
    bare = [
        re.sub(r"\W", "", each) for each in words.without_accents(text).replace("/", "").split()
    ]
    found = _NO_NAME.intersection(bare)
    if found >= {*bare}:
        raise CellError("name_unclear", "The value is a title or a degree, not a name.")
    has_sign = any(unicodedata.category(each) in ("So", "Sm") for each in text)
    is_odd = has_sign or found - {"iii", "jnr"}
    return with_note(read(text), "odd_name") if is_odd else read(text)


def _reader_by_kind(column: TargetColumn, options: CellOptions) -> CellReader:
    match column.field.kind:
        case Kind.NUMBER | Kind.INTEGER:
            read = number_reader(column, options)
            if column.is_whole and column.period == "day":
                read = partial(_days_or_now, read)
            return CellReader(read, typed_number(column))
        case Kind.BOOL:
            return CellReader(_read_bool, _typed_bool)
        case Kind.DATE:
            read = date_reader(column, options)
            typed = typed_reader(read)
            return CellReader(read if column.is_birth else partial(_date_or_today, read), typed)
        case Kind.DATETIME:
            read = timestamp_reader(column, options)
            return CellReader(read, typed_reader(read))
        case Kind.UUID:
            return CellReader(
                texts.read_id, texts.typed_text(keeps_digits=True, whole_numbers=True)
            )
    return _string_reader(column, options)


def _days_or_now(read: ReadText, text: str) -> Any:
    """Return a number of days; words like "immediate" are 0 days."""
    if words.normalized_words(text) in words.IMMEDIATELY:
        return with_note(0, "days_counted", "The value is imported as 0 days.")
    return read(text)


def _date_or_today(read: ReadText, text: str) -> Any:
    """Return a date; "today" is the day of the import, and "asap" an error."""
    if text.casefold() == "today":
        today = date.today()  # the user's own day
        message = f"The value is imported as {today:%-d %B %Y}."
        return with_note(today.isoformat(), "today_taken", message)
    if words.normalized_words(text) in words.IMMEDIATELY:
        raise CellError("immediately")
    return read(text)


def _string_reader(column: TargetColumn, options: CellOptions) -> CellReader:
    if column.field.format is not None:
        return _reader_from_text(texts.FORMATS[column.field.format], column.keeps_digits, options)
    if column.is_phone:
        return _reader_from_text(texts.phone_reader(options.region), True, options)
    typed = texts.typed_text(column.keeps_digits, options.whole_numbers)
    return CellReader(texts.read_code if column.keeps_digits else texts.read_text, typed)


def _reader_from_text(read: ReadText, keeps_digits: bool, options: CellOptions) -> CellReader:
    """Return a reader that reads all texts with `read`, and numbers of typed cells as texts."""
    typed = texts.typed_text(keeps_digits, options.whole_numbers)
    return CellReader(read, lambda cell: read(typed(cell)))


def _read_reference(text: str) -> Any:
    return texts.FORMATS["email"](text) if "@" in text else texts.read_code(text)


def _mapping_reader(
    reader: CellReader, visible: CellReader, values: Mapping[str, str]
) -> CellReader:
    """Return a reader that first replaces texts by `values`; `visible` reads other cells."""
    folded = {cell.strip().casefold(): value for cell, value in values.items()}
    exact = {cell.strip(): value for cell, value in values.items()}

    def chosen(text: str) -> Any:
        value = reader.text(text) if text else None
        return ChosenText(value) if isinstance(value, str) else value

    def read(text: str) -> Any:
        value = exact.get(text, folded.get(text.casefold()))
        return visible.text(text) if value is None else chosen(value)

    def typed(cell: Any) -> Any:
        value = exact.get(str(cell))
        return reader.typed(cell) if value is None else chosen(value)

    return CellReader(read, typed)


# -- Choices and truth values ----------------------------------------------------------------------
# A choice is a value of the API in any spelling, but never another word for it.

_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")
_BAND = re.compile(r"([0-9]+)(?:-([0-9]+)|\+)").fullmatch
_COUNT = re.compile(r"[0-9]{1,3}(?:,?[0-9]{3}){0,5}").fullmatch


def _choice_key(text: str) -> str:
    return _BETWEEN.sub("_", text.strip().casefold())


def _choice_reader(known: Sequence[str], accepted: Sequence[str]) -> CellReader:
    """Return the reader of one of the `known` values; error messages name the `accepted` values."""
    allowed = ", ".join(accepted)
    spellings: dict[str, str | None] = {}
    for value in known:
        word = _choice_key(value)
        # A spelling that fits two values is neither; each value is still read as it is written.
        spellings[word] = None if word in spellings else value
    exact = {**spellings, **{value: value for value in known}}

    def read(text: str) -> str | ValueWithNotes:
        if (value := exact.get(text) or exact.get(_choice_key(text))) is not None:
            return value
        if (value := words.CHOICES.get(words.normalized_words(text))) in accepted:
            return str(value)
        if (band := _band_of(text, accepted)) is not None:
            return with_note(band, "band_chosen", f"The number is imported as {band}.")
        raise CellError("unknown_value", allowed=allowed)

    def typed(cell: Any) -> str | ValueWithNotes:
        if isinstance(cell, date):
            raise CellError("not_text", allowed=allowed)
        return read(str(cell))

    return CellReader(read, typed)


def _band_of(text: str, values: Sequence[str]) -> str | None:
    """Return the first range that contains the number, such as 51-200 for 75; else None."""
    if _COUNT(text) is None:
        return None
    count = int(text.replace(",", ""))
    bands = [(value, _BAND(value)) for value in values]
    # 1000 is in 501-1000 as well as in 1000+: the narrower one is meant.
    fitting = (v for v, band in bands if band and int(band[1]) <= count <= int(band[2] or count))
    return next(fitting, None)


def _read_bool(text: str) -> bool:
    """Return the boolean that a word such as "yes" or "nein" means."""
    value = words.TRUTHS.get(words.without_accents(text).strip(" ."))
    if value is None:
        raise CellError("not_true_or_false")
    return value


def _typed_bool(cell: Any) -> bool:
    if isinstance(cell, bool | int | float) and cell in (0, 1):
        return bool(cell)
    raise CellError("not_true_or_false")
