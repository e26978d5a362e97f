"""Reading one cell as what its field holds: a reader for each column, made once for a file.

A reader gives a JSON value, as a body takes it, or raises `Unreadable` with a code and a fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.engine.task import Mode
from connector.spreadsheet.choices import choice_reader, several, typed_choice
from connector.spreadsheet.dates import (
    DateFormat,
    date_reader,
    moment_reader,
    typed_date,
    typed_moment,
)
from connector.spreadsheet.numbers import TYPED, Decimal, integer_reader, number_reader, read_bool
from connector.spreadsheet.row import Cell
from connector.spreadsheet.slots import Slot
from connector.spreadsheet.texts import FORMATS, read_digits, read_id, read_text, typed_text
from connector.spreadsheet.unreadable import ReadText, ReadTyped
from connector.value import Kind

Policy = Literal["overwrite", "fill", "never"]
"""What a column may do to a record that exists: write over what is there, fill only what is
empty, or nothing. A record that is created takes the column's value in any case.
"""


@dataclass(frozen=True, slots=True)
class Manner:
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
    policy: Policy = "overwrite"


AS_WRITTEN = Manner()


@dataclass(frozen=True, slots=True)
class Reader:
    """How a column's cells are read, texts and those that a spreadsheet program typed."""

    text: ReadText
    typed: ReadTyped

    def read(self, cell: Cell) -> Any:
        """The JSON value of a cell that is not blank. Raises `Unreadable`."""
        return self.text(cell.strip()) if isinstance(cell, str) else self.typed(cell)


def reader(slot: Slot, mode: Mode, manner: Manner = AS_WRITTEN) -> Reader:
    """The reader of a column that fills this slot.

    A reference by another field than the id is read as that field's text, to be looked up.
    Raises `ValueError` for a date format or a time zone that is none.
    """
    if slot.reference is not None and slot.reference.by is not None:
        read = FORMATS["email"] if slot.reference.by == "email" else read_digits
        typed = typed_text(keeps_digits=True, whole_numbers=manner.whole_numbers)
        made = Reader(read, lambda cell: read(typed(cell)))
    elif slot.field.values:
        accepted = slot.accepts(mode)
        made = Reader(
            choice_reader(slot.field.values, accepted), typed_choice(slot.field.values, accepted)
        )
    else:
        made = _by_kind(slot, manner)
    if slot.many:
        made = Reader(several(made.text), made.typed)
    return _mapped(made, manner.values) if manner.values else made


def _by_kind(slot: Slot, manner: Manner) -> Reader:
    kind = slot.field.kind
    declared = DateFormat(manner.date_format) if manner.date_format else None
    zone = ZoneInfo(manner.timezone) if manner.timezone else None
    match kind:
        case Kind.NUMBER:
            made = Reader(number_reader(manner.decimal), TYPED[kind])
        case Kind.INTEGER:
            made = Reader(integer_reader(manner.decimal), TYPED[kind])
        case Kind.BOOL:
            made = Reader(read_bool, TYPED[kind])
        case Kind.DATE:
            made = Reader(date_reader(declared), typed_date)
        case Kind.DATETIME:
            made = Reader(moment_reader(declared, zone), typed_moment(zone))
        case Kind.UUID:
            made = Reader(read_id, typed_text(keeps_digits=True, whole_numbers=True))
        case _:
            made = _of_text(slot, manner)
    return made


def _of_text(slot: Slot, manner: Manner) -> Reader:
    typed = typed_text(slot.keeps_digits, manner.whole_numbers)
    if slot.field.format is None:
        return Reader(read_digits if slot.keeps_digits else read_text, typed)
    read = FORMATS[slot.field.format]
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
