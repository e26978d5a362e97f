"""Inference of a column's date order and decimal separator from its own cells.

`03/04/1985` can be two dates and `45,000` two numbers. If a column also has `25/12/1985`, all of
its dates are day first. If the cells of a column do not decide, the other columns of the file may,
since one program wrote them. Otherwise both meanings are shown, and the user chooses one. The file
is read again for this, and only if it has an ambiguous cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

from connector.catalog.value import Kind
from connector.spreadsheet.dates import ORDERS, date_meanings
from connector.spreadsheet.mapping import MappedColumn
from connector.spreadsheet.numbers import Decimal, number_meanings
from connector.spreadsheet.problems import (
    Cell,
    CellError,
    FileQuestion,
    PartlyVisibleCell,
    SheetRow,
)

UNSETTLED = frozenset(("ambiguous_date", "ambiguous_number"))
"""Codes of problems that other cells may resolve."""

Sort = Literal["date", "number"]
_SORTS: dict[Kind, Sort] = {
    Kind.DATE: "date",
    Kind.DATETIME: "date",
    Kind.NUMBER: "number",
    Kind.INTEGER: "number",
}
_WORDS = {"dmy": "dmy", "mdy": "mdy", ".": "dot", ",": "comma"}
_OPTION: dict[Sort, str] = {"date": "--date-format", "number": "--decimal"}
_SHOWN = {**ORDERS, ".": "a dot before the fraction", ",": "a comma before the fraction"}


@dataclass(slots=True)
class _ColumnProofs:
    """Proofs of one column: for each reading, a cell that allows no other reading."""

    sort: Sort
    proofs: dict[str, str] = field(default_factory=dict)
    ambiguous_count: int = 0
    example: str = ""

    def add(self, text: str) -> None:
        """Add a cell."""
        meanings = _meanings_of(self.sort, text)
        if len(meanings) > 1 and len(set(meanings.values())) > 1:
            self.ambiguous_count += 1
            self.example = self.example or text
        elif len(meanings) == 1:
            self.proofs.setdefault(next(iter(meanings)), text)


def _meanings_of(sort: Sort, text: str) -> dict[str, object]:
    """Return the values of the cell by reading."""
    if sort == "number":
        number = number_meanings(text)
        return dict(number.values) if number is not None else {}
    try:
        day = date_meanings(text)
    except CellError:
        return {}
    return {k: v for k, v in day.dates.items() if k in ("dmy", "mdy")} if day is not None else {}


_DAYS_EITHER = 12


@dataclass(slots=True)
class _DateMix:
    """Dates and texts of one column, in which a program may have swapped day and month.

    A program that reads dates month first converts 3/4/2026 to 4 March, and leaves 25/12/2026 a
    text. A column in which every date could be swapped, and no text could, was probably read in the
    wrong order. One other cell proves that it was not.
    """

    date: str = ""
    text: str = ""
    is_proven: bool = False

    def add(self, cell: Cell) -> None:
        """Add a cell."""
        day = _day_of(cell)
        if day is not None:
            self.is_proven |= day.day > _DAYS_EITHER
            if day.day != day.month:
                self.date = self.date or day.isoformat()
        elif isinstance(cell, str) and (text := cell.strip()):
            read = [each for each in _meanings_of("date", text).values() if isinstance(each, date)]
            self.is_proven |= any(each.day <= _DAYS_EITHER for each in read)
            if read:
                self.text = self.text or text

    @property
    def is_mixed(self) -> bool:
        """Return True if day and month of the dates may be swapped."""
        return bool(self.date and self.text) and not self.is_proven


def _day_of(cell: Cell) -> date | None:
    """Return the day of a cell that is a date or an ISO text; None for other cells."""
    if isinstance(cell, PartlyVisibleCell):
        cell = cell.value
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, str):
        found = _ISO_DAY(cell.strip())
        try:
            return date.fromisoformat(found[1]) if found else None
        except ValueError:
            return None
    return cell if isinstance(cell, date) else None


_ISO_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.]+Z?)?").fullmatch


class ColumnMeanings:
    """Meanings of one file's columns, inferred once when the first ambiguous cell needs them.

    Attributes:
        inferred: Sentences on meanings that were inferred.
        questions: Meanings that the user has to choose.
    """

    def __init__(
        self, rows: Callable[[], Iterator[SheetRow]], columns: Sequence[MappedColumn]
    ) -> None:
        self._rows, self._columns = rows, columns
        self._mixes: dict[str, _DateMix] = {}
        self.inferred: list[str] = []
        self.questions: list[FileQuestion] = []

    def watch(self, column: MappedColumn) -> Callable[[Cell], None] | None:
        """Return a function to call with each cell of a date column; None for another column."""
        if _SORTS.get(column.target.field.kind) != "date":
            return None
        return self._mixes.setdefault(column.heading, _DateMix()).add

    def mixed_dates(self) -> Iterator[FileQuestion]:
        """Yield the columns of which a program may have swapped day and month."""
        for heading, mix in self._mixes.items():
            if mix.is_mixed:
                yield FileQuestion(
                    "mixed_dates",
                    f"column {heading!r} has dates, for example {mix.date}, and texts, for example"
                    f" {mix.text!r}: a spreadsheet program may have swapped day and month of every"
                    " date",
                    "Compare the dates with their source. If they are right, run again with"
                    " --accept-warnings.",
                    column=heading,
                    received=mix.date,
                )

    def infer_options(self) -> tuple[MappedColumn, ...]:
        """Return the columns with the inferred meanings as their options."""
        proofs = {
            column.index: _ColumnProofs(sort)
            for column in self._columns
            if (sort := _ambiguity_of(column)) is not None
        }
        for row in self._rows():
            for index, found in proofs.items():
                cell = row.cells[index] if index < len(row.cells) else ""
                if isinstance(cell, str) and (text := cell.strip()):
                    found.add(text)
        return tuple(self._infer_column(column, proofs) for column in self._columns)

    def _infer_column(
        self, column: MappedColumn, evidence: dict[int, _ColumnProofs]
    ) -> MappedColumn:
        own = evidence.get(column.index)
        if own is None or not own.ambiguous_count:
            return column
        proofs, whose = own.proofs, f"column {column.heading!r}"
        if not proofs:
            same_sort = [each for each in evidence.values() if each.sort == own.sort]
            proofs = {key: text for each in same_sort for key, text in each.proofs.items()}
            whose = "another column"
        if len(proofs) != 1:
            self.questions.append(_question(column, own, is_mixed=bool(proofs)))
            return column
        ((reading, proof),) = proofs.items()
        self.inferred.append(
            f"Column {column.heading!r} is read with {_SHOWN[reading]}: {proof!r} in {whose} has "
            f"only this meaning (change this with {_OPTION[own.sort]})."
        )
        if own.sort == "date":
            return replace(column, options=replace(column.options, date_format=reading))
        sign: Decimal = "," if reading == "," else "."
        return replace(
            column, options=replace(column.options, decimal=sign, is_decimal_inferred=True)
        )


def _ambiguity_of(column: MappedColumn) -> Sort | None:
    """Return the kind of ambiguity of the column; None if it has none."""
    sort = _SORTS.get(column.target.field.kind)
    if column.target.field.values or column.target.reference is not None:
        return None
    declared = column.options.date_format if sort == "date" else column.options.decimal
    return sort if declared is None else None


def _question(column: MappedColumn, own: _ColumnProofs, *, is_mixed: bool) -> FileQuestion:
    meanings = _meanings_of(own.sort, own.example).items()
    choices = " or ".join(f"{value} ({_OPTION[own.sort]} {_WORDS[key]})" for key, value in meanings)
    why = "its other cells do not agree" if is_mixed else "no other cell shows which one is right"
    return FileQuestion(
        "reading",
        f"column {column.heading!r} can be read in two ways, because {why}:"
        f" {own.example!r} is {choices}",
        "Choose with one of these options.",
        stops=False,
        column=column.heading,
        received=own.example,
        choices=tuple((key, str(value)) for key, value in meanings),
    )
