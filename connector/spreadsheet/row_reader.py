"""Row reader: reads each cell as its field and collects all problems, warnings and remarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from connector.catalog.field import Kind
from connector.errors import count_noun
from connector.spreadsheet import words
from connector.spreadsheet.cells import cell_reader
from connector.spreadsheet.dates import ORDERS, date_meanings
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import WHOLE_NAME, ColumnMap, MappedColumn
from connector.spreadsheet.numbers import has_odd_comma, number_meanings, unit_of
from connector.spreadsheet.problems import (
    REMARKS,
    Amount,
    Cell,
    CellError,
    FileQuestion,
    PartlyVisibleCell,
    SheetRow,
    ValueWithNotes,
    problem_of,
    text_of,
    with_note,
)
from connector.spreadsheet.targets import Decimal, PushTarget
from connector.spreadsheet.texts import is_timezone
from connector.spreadsheet.words import currency_of_region
from connector.state.row import LandedRecord, Operation, Outcome, Problem, Row

# -- Columns ---------------------------------------------------------------------------------------
# `03/04/1985` can be two dates and `45,000` two numbers. The country decides, unless a cell of the
# file can only be read in another way: then the user does.

_DATES, _NUMBERS = (Kind.DATE, Kind.DATETIME), (Kind.NUMBER, Kind.INTEGER)
_MONTHS = 12
_ISO_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.]+Z?)?").fullmatch


def _values_by_reading(text: str, *, is_date: bool) -> Mapping[str, Any]:
    """Return the values that a text can mean, by date order (`dmy`, `mdy`) or decimal separator."""
    if not is_date:
        number = number_meanings(text)
        return {} if number is None or has_odd_comma(text) else number.values
    try:
        day = date_meanings(text)
    except CellError:
        return {}
    return {k: v for k, v in day.dates.items() if k in ("dmy", "mdy")} if day is not None else {}


def _date_in_cell(cell: Cell) -> date | None:
    """Return the day of a cell that is a date or an ISO text; None for other cells."""
    cell = cell.value if isinstance(cell, PartlyVisibleCell) else cell
    if isinstance(cell, str) and (found := _ISO_DAY(cell.strip())):
        with suppress(ValueError):
            return date.fromisoformat(found[1])
    if isinstance(cell, datetime):
        return cell.date()
    return cell if isinstance(cell, date) else None


class ColumnMeanings:
    """What the cells of a file's columns mean. `notices` are sentences for the user."""

    def __init__(
        self, rows: Callable[[], Iterator[SheetRow]], columns: Sequence[MappedColumn]
    ) -> None:
        self._columns = columns
        self.notices: list[str] = []
        kinds = (*_DATES, *_NUMBERS)
        # Different cells by column, in the order of the file.
        self._cells = {e.index: dict[Cell, None]() for e in columns if e.target.field.kind in kinds}
        for row in (each for each in rows() if not each.is_outside):
            for index, cells in self._cells.items():
                if index < len(row.cells):
                    cell = row.cells[index]
                    cells[cell.strip() if isinstance(cell, str) else cell] = None

    def mixed_dates(self) -> Iterator[FileQuestion]:
        """Yield a question for each column in which a program may have swapped day and month.

        A program that reads dates month first converts 3/4/2026 to 4 March, and leaves 25/12/2026 a
        text. A column in which every date could be swapped, and no text could, was probably read in
        the wrong order. One other cell proves that it was not.
        """
        for column in (each for each in self._columns if each.target.field.kind in _DATES):
            cells = self._cells[column.index]
            days = [day for cell in cells if (day := _date_in_cell(cell)) is not None]
            texts = {
                cell: meanings.values()
                for cell in cells
                if isinstance(cell, str) and (meanings := _values_by_reading(cell, is_date=True))
            }
            read = [day for meanings in texts.values() for day in meanings]
            is_proven = any(e.day > _MONTHS for e in days) or any(e.day <= _MONTHS for e in read)
            day = next((day for day in days if day.day != day.month), None)
            if day is not None and texts and not is_proven:
                yield FileQuestion(
                    "mixed_dates",
                    f"column {column.heading!r} has dates, for example {day}, and texts, for"
                    f" example {next(iter(texts))!r}: a spreadsheet program may have swapped day"
                    " and month of every date",
                    "Compare the dates with their source. If they are right, run again with"
                    " --accept-warnings.",
                    column=column.heading,
                )

    def column_currency(self, column: MappedColumn) -> str | None:
        """Return the only currency that the column's heading or cells show; None for several."""
        units = {unit_of(each) for each in re.split(r"[\s()\[\]/,]+", column.heading) if each}
        for cell in self._cells[column.index]:
            if isinstance(cell, Amount):
                units.add(cell.unit)
            elif isinstance(cell, str) and cell and (found := number_meanings(cell)):
                units.add(found.unit)
        units -= {None, "", "%"}
        return units.pop() if len(units) == 1 else None

    def read_by_country(self) -> tuple[MappedColumn, ...]:
        """Return the columns, with the country's date order or decimal separator as an option.

        If a cell of the file only has a meaning of another country, ambiguous cells stay open.
        """
        readings = {each.index: self._readings(each) for each in self._columns if _is_open(each)}
        foreign = {
            _is_date(each)
            for each in self._columns
            for values in readings.get(each.index, ())
            if values and _usual_reading(each) not in values
        }
        return tuple(
            self._with_reading(each, readings[each.index])
            if each.index in readings and _is_date(each) not in foreign
            else each
            for each in self._columns
        )

    def _readings(self, column: MappedColumn) -> list[Mapping[str, Any]]:
        texts = (cell for cell in self._cells[column.index] if isinstance(cell, str))
        return [_values_by_reading(cell, is_date=_is_date(column)) for cell in texts]

    def _with_reading(
        self, column: MappedColumn, readings: Sequence[Mapping[str, Any]]
    ) -> MappedColumn:
        usual, options = _usual_reading(column), column.options
        if not _is_date(column):
            sign: Decimal = "," if usual == "," else "."
            return replace(column, options=replace(options, decimal=sign, is_decimal_assumed=True))
        if any(len({*values.values()}) > 1 for values in readings):
            read = f"Column {column.heading!r} is read with {ORDERS[usual]}"
            self.notices.append(f"{read}, as usual in the country (change with --date-format).")
        return replace(column, options=replace(options, date_format=usual))


def _is_date(column: MappedColumn) -> bool:
    return column.target.field.kind in _DATES


def _usual_reading(column: MappedColumn) -> str:
    """Return the date order or the decimal separator of the column's country."""
    find = words.date_order_of_region if _is_date(column) else words.decimal_of_region
    return find(column.options.region)


def _is_open(column: MappedColumn) -> bool:
    """Return True if cells of the column can be ambiguous, because the user declared nothing."""
    target, options = column.target, column.options
    is_read = target.field.kind in (*_DATES, *_NUMBERS) and not target.field.values
    declared = options.date_format if _is_date(column) else options.decimal
    return is_read and target.reference is None and declared is None


# -- Rows ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CheckedRow:
    """Row of a file from its first check to its result.

    Attributes:
        values: JSON values by the keys of target columns; null empties a field.
        warnings: Problems that do not prevent sending the row after the user has confirmed.
        failed_keys: Keys of fields with a problem, so that they are not reported as missing, too.
        natural_key: Natural key of a row that creates a record.
        record_id: Id of the record, if it exists, and `landed` its loaded state.
        outcome: Outcome of a row that is not sent; None if the row is to be sent.
        task: The row for the journal, also if its record exists: it may be pushed again.
    """

    row: SheetRow
    columns: ColumnMap
    values: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()
    failed_keys: Set[str] = frozenset()
    operation: Operation | None = None
    record_id: str | None = None
    landed: LandedRecord | None = None
    natural_key: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    task: Row | None = None

    def add(
        self, code: str, message: str | None = None, key: str | None = None, **more: Any
    ) -> None:
        """Add a problem of the row, in the column of the field `key`; see `problem_of`."""
        column = self.columns.heading_of(key) if key is not None else None
        self.problems = (*self.problems, problem_of(code, message, column, **more))

    def fail(self, key: str, code: str, message: str | None = None, **more: Any) -> None:
        """Add a problem of the field's cell, and remove the field's value."""
        self.add(code, message, key, **more)
        self.failed_keys = self.failed_keys | {key}
        self.values.pop(key, None)

    def warn(
        self,
        code: str,
        message: str | None = None,
        key: str | None = None,
        cell: Cell | None = None,
    ) -> None:
        """Add a warning, which the user sees before the row is sent, or a remark."""
        column = self.columns.heading_of(key) if key is not None else None
        found = problem_of(code, message, column, received=cell)
        if code in REMARKS:
            self.remarks = (*self.remarks, found)
        else:
            self.warnings = (*self.warnings, found)


def describe_remarks(rows: Iterable[CheckedRow]) -> Iterator[str]:
    """Yield a sentence for each kind of remark, with the first cell that has it."""
    by_code: dict[str, list[Problem]] = {}
    for remark in (each for row in rows for each in row.remarks):
        by_code.setdefault(remark.code, []).append(remark)
    for code, found in by_code.items():
        columns = dict.fromkeys(each.column or "" for each in found)
        noun = "Column" if len(columns) == 1 else "Columns"
        cells = count_noun(len(found), "cell")
        others = [*dict.fromkeys(f'"{each.received}"' for each in found)][1:]
        # The user sees every word that is dropped.
        more = f" So are {', '.join(others)}." if others and code == "says_nothing" else ""
        yield f"{noun} {', '.join(map(repr, columns))}, {cells}: {found[0].text}{more}"


_CELLS_REMEMBERED = 1_000
_CLEARED = object()
"""Value of a cell that empties its field."""

_PLAIN = frozenset((str, int, float, bool))
"""Types of nearly all values."""

_DOLLARS = frozenset(("USD", "CAD", "AUD", "NZD", "SGD", "HKD"))


class RowReader:
    """Reader of one file's rows: reads each cell as its field and collects all problems."""

    def __init__(
        self, target: PushTarget, columns: ColumnMap, meanings: ColumnMeanings | None = None
    ) -> None:
        self._target, self._map, self._meanings = target, columns, meanings
        keys = columns.targets.keys()
        self._columns = [
            (each.index, each.target.key, _cached_cell_reader(each, target), each)
            for each in (columns.columns if meanings is None else meanings.read_by_country())
        ]
        self._by_key = {each.target.key: each for each in columns.columns}
        self._currency_fields = _currency_by_amount(target)
        self._column_currencies = {
            key: meanings.column_currency(self._by_key[key])
            for key in self._currency_fields.keys() & self._by_key.keys()
            if meanings is not None
        }
        self._constants = {
            column.key: value for column, _, value in columns.constants if value is not None
        }
        self._takes_all_day = any(each.name == "all_day" for each in target.columns) and any(
            each.options.day_hours == "all-day" for each in columns.columns
        )
        self._zip = next((key for key in keys if key in ("postal_code", "postcode")), None)

    def read(self, row: SheetRow) -> CheckedRow:
        """Return the row's values and problems. Cells of a row of another shape are not read."""
        values, amounts = self._constants.copy(), dict[str, Amount]()
        checked = CheckedRow(row, self._map, values)
        if row.problems:
            self._add_shape_problems(checked)
        if row.is_outside or row.is_misshapen:
            return checked
        if row.is_hidden:
            checked.warn("hidden_row")
        if row.may_be_split:
            checked.warn("split_row")
        cells, skipped = row.cells, checked.failed_keys
        for index, key, read, column in self._columns:
            if key in skipped:
                continue
            try:
                value = read(cells[index])
            except CellError as error:
                checked.fail(key, received=cells[index], **error.details)
                continue
            if value.__class__ in _PLAIN:
                values[key] = value
            elif value is not None:
                self._add_annotated_value(checked, amounts, column, value)
        self._complete(checked, amounts)
        return checked

    def _complete(self, checked: CheckedRow, amounts: Mapping[str, Amount]) -> None:
        values = checked.values
        for key in values.keys() & (amounts.keys() | self._column_currencies.keys()):
            self._fill_currency(checked, key, amounts.get(key))
        if WHOLE_NAME in values:
            _split_whole_name(checked)
        if "timezone" in values:
            self._apply_time_zone(checked)
        if self._takes_all_day:
            values.setdefault("all_day", True)
        if self._zip in values:
            # A postal code of four digits in a country whose codes have five.
            code, country = str(values[self._zip]), str(values.get("country", ""))
            is_short = code.isascii() and code.isdigit() and len(code) == 4
            if is_short and words.normalized_words(country) in words.FIVE_DIGIT_COUNTRIES:
                checked.warn("lost_zero", None, self._zip, code)

    def _add_annotated_value(
        self, checked: CheckedRow, amounts: dict[str, Amount], column: MappedColumn, value: Any
    ) -> None:
        """Add a value with notes or a unit to the row, or clear the field."""
        key, cell = column.target.key, checked.row.cells[column.index]
        if isinstance(value, ValueWithNotes):
            for code, message in value.notes:
                checked.warn(code, message, key, cell)
            value = value.value
        if isinstance(value, Amount):
            amounts[key] = value
            value = value.value
        if value is not _CLEARED:
            if value is not None:
                checked.values[key] = value
        elif not column.target.can_be_cleared:
            checked.fail(key, "cannot_clear", received=str(cell).strip())
        elif self._target.mode != "create":
            # A new record has no value to be emptied.
            checked.values[key] = None

    def _fill_currency(self, checked: CheckedRow, key: str, amount: Amount | None) -> None:
        """Fill the currency field of an amount, from its own cell or the column's other cells."""
        unit = amount.unit if amount is not None else self._column_currencies[key]
        if unit is None:
            return
        column, place = self._by_key[key], self._currency_fields.get(key)
        cell, home = checked.row.cells[column.index], currency_of_region(column.options.region)
        code = home if unit == "$" and home and home in _DOLLARS else unit
        if place is None:
            checked.warn("currency_left_out" if code == home else "other_currency", None, key, cell)
            return
        name, currency = self._map.display_name(place), checked.values.get(place)
        if currency is None and code.isalpha() and place not in checked.failed_keys:
            checked.values[place] = code
            if code != home:
                checked.warn("currency_taken", f"{name} is imported as {code}.", key, cell)
        elif currency is None and amount is not None:
            fix = f'Enter the currency code in a column "{name}".'
            checked.fail(key, "currency_sign", received=cell, fix=fix)
        elif (
            amount is not None
            and currency != code
            and not (unit == "$" and str(currency) in _DOLLARS)
        ):
            message = f"The value is in {unit}, but {name} is {currency}."
            checked.fail(key, "currency_differs", message, received=text_of(amount))

    def _apply_time_zone(self, checked: CheckedRow) -> None:
        """Read the times of the row again in the time zone that another cell of the row names."""
        zone = str(checked.values["timezone"])
        for index, key, _, column in self._columns:
            cell, options = checked.row.cells[index], column.options
            is_time = column.target.field.kind is Kind.DATETIME and options.timezone is None
            if not is_time or key in checked.failed_keys or cell == "" or not is_timezone(zone):
                continue
            options = replace(options, timezone=str(ZoneInfo(zone)))
            try:
                value = cell_reader(column.target, self._target.mode, options).read(cell)
            except CellError as error:
                checked.fail(key, received=cell, **error.details)
            else:
                checked.values[key] = value.value if isinstance(value, ValueWithNotes) else value

    def _add_shape_problems(self, checked: CheckedRow) -> None:
        keys = {column.heading: key for key, column in self._by_key.items()}
        for problem in checked.row.problems:
            if problem.column is None or problem.column in keys:
                checked.problems = (*checked.problems, problem)
            if problem.column in keys:
                checked.failed_keys = checked.failed_keys | {keys[problem.column]}


def _cached_cell_reader(column: MappedColumn, target: PushTarget) -> Callable[[Cell], Any]:
    """Return the reader of a column's cells; it returns None for a cell that changes nothing."""
    reads, clear = cell_reader(column.target, target.mode, column.options), target.clear

    # Python considers True and 1 equal, so the type is part of the key.
    @lru_cache(_CELLS_REMEMBERED, typed=True)
    def read(cell: Cell) -> Any:
        if not isinstance(cell, str):
            is_unseen = isinstance(cell, PartlyVisibleCell) and not cell.shown
            return with_note(None, "hidden_value") if is_unseen else reads.typed(cell)
        text = cell.strip()
        if not text:
            return None
        return _CLEARED if text == clear else reads.text(text)

    return read


def _currency_by_amount(target: PushTarget) -> dict[str, str]:
    """Map the key of each amount field to the key of its currency field."""
    currency_keys = [each.key for each in target.columns if each.field.format == "currency"]
    found = {}
    for each in target.columns:
        if each.field.kind is Kind.NUMBER and not each.is_percentage:
            similar = [p for p in currency_keys if p.partition("_")[0] in each.key.split("_")]
            chosen = similar or (currency_keys if len(currency_keys) == 1 else [])
            if chosen:
                found[each.key] = chosen[0]
    return found


# -- Whole names -----------------------------------------------------------------------------------

_IS_UNCLEAR = re.compile(r"[()\[\]&/|;@\d]|\s[-\u2013]\s|\s(?:and|und|et|y|en)\s").search
_CAPITALS_MIN = 3


def _split_whole_name(checked: CheckedRow) -> None:
    whole = checked.values.pop(WHOLE_NAME)
    parts = _split_name(whole)
    if parts is None:
        code = "name_unclear" if len(whole.split()) > 1 else "name_of_one_word"
        checked.fail("first_name", code, received=whole)
        checked.failed_keys = checked.failed_keys | {"last_name"}
        return
    checked.values |= dict(zip(("first_name", "last_name"), parts, strict=True))
    message = f'The value is imported as "{parts[0]}" and "{parts[1]}".'
    checked.warn("name_split", message, WHOLE_NAME, whole)


def _split_name(name: str) -> tuple[str, str] | None:
    """Return first and last name of a whole name; None for one word or an unclear name."""
    names = name.replace(",", " , ").split()
    plain = {*map(normalized_heading, names)}
    has_letters = all(each == "," or any(map(str.isalpha, each)) for each in names)
    if _IS_UNCLEAR(name) or not has_letters or plain & (words.TITLES | words.DEGREES):
        return None
    if "," in names:
        last, _, first = name.partition(",")
        parts = " ".join(first.split()), " ".join(last.split())
        return parts if all(parts) and "," not in first else None
    capitals = [each.isupper() and len(each) >= _CAPITALS_MIN for each in names]
    if any(capitals) and not (len(names) == 2 and all(capitals)):
        return None
    at = len(names) - 1
    while at > 1 and normalized_heading(names[at - 1]) in words.PARTICLES:
        at -= 1
    return (" ".join(names[:at]), " ".join(names[at:])) if at > 0 else None
