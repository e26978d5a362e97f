"""Row reader: reads each cell as its field and collects all problems, warnings and remarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.catalog.field import Kind
from connector.errors import count_noun
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import LandedRecord, Operation
from connector.spreadsheet.cells import cell_reader
from connector.spreadsheet.dates import ORDERS, date_meanings
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import WHOLE_NAME, ColumnMap, MappedColumn
from connector.spreadsheet.numbers import Decimal, number_meanings, unit_of
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
    visible_text,
    with_note,
)
from connector.spreadsheet.targets import PushTarget
from connector.spreadsheet.texts import is_timezone
from connector.spreadsheet.words import (
    DEGREES,
    FIVE_DIGIT_COUNTRIES,
    PARTICLES,
    TITLES,
    currency_of_region,
    date_order_of_region,
    decimal_of_region,
    normalized_words,
)

# -- Columns ---------------------------------------------------------------------------------------
# Inference of a column's date order, decimal separator and currency from its own cells.
#
# `03/04/1985` can be two dates and `45,000` two numbers. If a column also has `25/12/1985`, all of
# its dates are day first. If the cells of a column do not decide, the other columns of the file
# may, since one program wrote them; then the country does. What it does not decide, the user
# chooses.


UNSETTLED = frozenset(("ambiguous_date", "ambiguous_number"))
"""Codes of problems that other cells may resolve."""

AmbiguousKind = Literal["date", "number"]
_SORTS: dict[Kind, AmbiguousKind] = {
    Kind.DATE: "date",
    Kind.DATETIME: "date",
    Kind.NUMBER: "number",
    Kind.INTEGER: "number",
}
_WORDS = {"dmy": "dmy", "mdy": "mdy", ".": "dot", ",": "comma"}
_OPTION: dict[AmbiguousKind, str] = {"date": "--date-format", "number": "--decimal"}
_SHOWN = {**ORDERS, ".": "a dot before the fraction", ",": "a comma before the fraction"}
_DAYS_EITHER = 12
_ISO_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.]+Z?)?").fullmatch


@dataclass(slots=True)
class _ColumnProofs:
    """Cells that show how a column is read: its date order or its decimal separator.

    `proofs` has, by reading, the first cell that has no other reading. `example` is the first
    ambiguous cell, and `fraction` the first one in which a decimal separator of the country would
    make a fraction of three digits.
    """

    kind: AmbiguousKind
    decimal: str
    proofs: dict[str, str] = field(default_factory=dict)
    example: str = ""
    fraction: str = ""

    def add_cell(self, text: str) -> None:
        """Note an ambiguous text, or store the text as a proof."""
        meanings = _values_by_reading(self.kind, text)
        if len({*meanings.values()}) > 1:
            self.example = self.example or text
            if self.kind == "number" and meanings[self.decimal] != max(meanings.values(), key=abs):
                self.fraction = self.fraction or text
        elif len(meanings) == 1:
            self.proofs.setdefault(next(iter(meanings)), text)


def _values_by_reading(kind: AmbiguousKind, text: str) -> dict[str, Any]:
    """Return the values that a text can mean, by date order (`dmy`, `mdy`) or decimal separator."""
    if kind == "number":
        number = number_meanings(text)
        return dict(number.values) if number is not None else {}
    try:
        day = date_meanings(text)
    except CellError:
        return {}
    return {k: v for k, v in day.dates.items() if k in ("dmy", "mdy")} if day is not None else {}


@dataclass(slots=True)
class _MixedDates:
    """Dates and texts of one column, in which a program may have swapped day and month.

    A program that reads dates month first converts 3/4/2026 to 4 March, and leaves 25/12/2026 a
    text. A column in which every date could be swapped, and no text could, was probably read in the
    wrong order. One other cell proves that it was not.
    """

    date: str = ""
    text: str = ""
    is_proven: bool = False

    def add_cell(self, cell: Cell) -> None:
        """Note the first date and the first text, and whether the cell proves that none is
        swapped.
        """
        day = _date_in_cell(cell)
        if day is not None:
            self.is_proven |= day.day > _DAYS_EITHER
            if day.day != day.month:
                self.date = self.date or day.isoformat()
        elif isinstance(cell, str) and (text := cell.strip()):
            days = _values_by_reading("date", text).values()
            self.is_proven |= any(each.day <= _DAYS_EITHER for each in days)
            if days:
                self.text = self.text or text

    @property
    def is_mixed(self) -> bool:
        """Return True if day and month of the dates may be swapped."""
        return bool(self.date and self.text) and not self.is_proven


def _date_in_cell(cell: Cell) -> date | None:
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


class ColumnMeanings:
    """What the cells of a file's columns mean, found while its rows are read.

    Attributes:
        inferred: Sentences on the columns whose reading was inferred.
        questions: Questions on columns whose reading the user has to choose.
    """

    def __init__(
        self, rows: Callable[[], Iterator[SheetRow]], columns: Sequence[MappedColumn]
    ) -> None:
        self._rows, self._columns = rows, columns
        self._mixes: dict[str, _MixedDates] = {}
        self._remarks: dict[tuple[str, str | None], tuple[int, Problem]] = {}
        self._currencies: dict[int, str | None] = {}
        self.inferred: list[str] = []
        self.questions: list[FileQuestion] = []

    def date_observer(self, column: MappedColumn) -> Callable[[Cell], None] | None:
        """Return a function to call with each cell of a date column; None for another column."""
        if _SORTS.get(column.target.field.kind) != "date":
            return None
        return self._mixes.setdefault(column.heading, _MixedDates()).add_cell

    def add_remark(self, remark: Problem) -> None:
        """Count a remark; the first one of a code and a column is shown as an example."""
        key = remark.code, remark.column
        count, first = self._remarks.get(key, (0, remark))
        self._remarks[key] = count + 1, first

    def ask_for_hours(self, column: MappedColumn, cell: Cell) -> None:
        """Add the question when days without a time begin and end, once for the file."""
        if not any(each.code == "day_hours" for each in self.questions):
            self.questions.append(
                FileQuestion(
                    "day_hours",
                    f"column {column.heading!r} has days without a time, for example"
                    f" {visible_text(cell)!r}",
                    "Choose with --day-hours all-day, or with two times such as --day-hours"
                    " 09:00-17:30.",
                    stops=False,
                    column=column.heading,
                    received=visible_text(cell),
                )
            )

    def remarks(self) -> Iterator[str]:
        """Yield a sentence for each kind of remark in a column."""
        for (_, column), (count, first) in self._remarks.items():
            where = f"Column {column!r}" if column else "All rows"
            yield f"{where}, {count_noun(count, 'row')}: {first.text}"

    def mixed_dates(self) -> Iterator[FileQuestion]:
        """Yield a question for each column in which a program may have swapped day and month."""
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

    def column_currency(self, column: MappedColumn) -> str | None:
        """Return the only currency that the column's heading or cells show; None for several."""
        if column.index in self._currencies:
            return self._currencies[column.index]
        units = {
            unit
            for word in re.split(r"[\s()\[\]/,]+", column.heading)
            if word and (unit := unit_of(word)) is not None
        }
        for row in self._rows():
            cell = row.cells[column.index] if column.index < len(row.cells) else ""
            if isinstance(cell, Amount):
                units.add(cell.unit)
            elif isinstance(cell, str) and cell and (found := number_meanings(cell.strip())):
                units.add(found.unit)
        units -= {"", "%"}
        self._currencies[column.index] = units.pop() if len(units) == 1 else None
        return self._currencies[column.index]

    def infer_columns(self) -> tuple[MappedColumn, ...]:
        """Read all rows, and return the columns with the inferred readings as their options."""
        proofs = {
            column.index: _ColumnProofs(sort, decimal_of_region(column.options.region))
            for column in self._columns
            if (sort := _possible_ambiguity(column)) is not None
        }
        for row in self._rows():
            for index, found in proofs.items():
                cell = row.cells[index] if index < len(row.cells) else ""
                if isinstance(cell, str) and (text := cell.strip()):
                    found.add_cell(text)
        return tuple(self._infer_column(column, proofs) for column in self._columns)

    def _infer_column(
        self, column: MappedColumn, proofs_by_index: dict[int, _ColumnProofs]
    ) -> MappedColumn:
        """Return the column with its inferred reading, or unchanged; add a sentence or a question.

        `proofs_by_index` has the proofs of each column.
        """
        own = proofs_by_index.get(column.index)
        if own is None or not own.example:
            return column
        proofs, whose = own.proofs, f"column {column.heading!r}"
        if not proofs:
            same_kind = [each for each in proofs_by_index.values() if each.kind == own.kind]
            proofs = {key: text for each in same_kind for key, text in each.proofs.items()}
            whose = "another column"
        region = column.options.region
        usual = own.decimal if own.kind == "number" else date_order_of_region(region)
        if len(proofs) == 1:
            ((reading, proof),) = proofs.items()
            why = f"{proof!r} in {whose} has only this meaning"
        elif proofs or own.fraction:
            self.questions.append(_reading_question(column, own, is_mixed=bool(proofs)))
            return column
        else:
            reading, proof, why = usual, "", "no cell has another order"
        if reading != usual or (own.kind == "date" and not proof):
            self.inferred.append(
                f"Column {column.heading!r} is read with {_SHOWN[reading]}: {why} (change this"
                f" with {_OPTION[own.kind]})."
            )
        if own.kind == "date":
            return replace(column, options=replace(column.options, date_format=reading))
        sign: Decimal = "," if reading == "," else "."
        return replace(
            column, options=replace(column.options, decimal=sign, is_decimal_inferred=True)
        )


def _possible_ambiguity(column: MappedColumn) -> AmbiguousKind | None:
    """Return what can be ambiguous in the column; None if nothing is, or the user declared it."""
    kind = _SORTS.get(column.target.field.kind)
    if column.target.field.values or column.target.reference is not None:
        return None
    declared = column.options.date_format if kind == "date" else column.options.decimal
    return kind if declared is None else None


def _reading_question(
    column: MappedColumn, proofs: _ColumnProofs, *, is_mixed: bool
) -> FileQuestion:
    """Return the question how the column is read, with both values of its example."""
    example = proofs.fraction or proofs.example
    meanings = _values_by_reading(proofs.kind, example).items()
    choices = " or ".join(
        f"{value} ({_OPTION[proofs.kind]} {_WORDS[key]})" for key, value in meanings
    )
    why = "its other cells do not agree" if is_mixed else "no other cell shows which one is right"
    return FileQuestion(
        "reading",
        f"column {column.heading!r} can be read in two ways, because {why}:"
        f" {example!r} is {choices}",
        "Choose with one of these options.",
        stops=False,
        column=column.heading,
        received=example,
        choices=tuple((key, str(value)) for key, value in meanings),
    )


# -- Row reader -----------------------------------------------------------------------------------


@dataclass(slots=True)
class RowDraft:
    """Row during the checks.

    Attributes:
        values: JSON values by the keys of target columns; null empties a field.
        failed_keys: Keys of fields with a problem, so that they are not reported as missing, too.
        natural_key: Natural key of a row that creates a record.
        is_misshapen: True if the cells cannot be matched to columns; no other problem is reported.
        warnings: Problems that do not prevent sending the row after the user has confirmed.
        remarks: Harmless changes of cells.
        amounts: Numbers with the currency in their cells, by key.
    """

    row: SheetRow
    values: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()
    amounts: Mapping[str, Amount] = field(default_factory=dict)
    failed_keys: Set[str] = frozenset()
    is_misshapen: bool = False
    operation: Operation | None = None
    record_id: str | None = None
    landed: LandedRecord | None = None
    natural_key: Mapping[str, Any] = field(default_factory=dict)

    def add(self, problem: Problem) -> None:
        """Add a problem of the row."""
        self.problems = (*self.problems, problem)

    def warn(
        self, code: str, message: str | None, column: str | None, cell: Cell | None = None
    ) -> None:
        """Add a warning, which the user sees before the row is sent, or a remark."""
        found = problem_of(code, message, column, received=cell)
        if code in REMARKS:
            self.remarks = (*self.remarks, found)
        else:
            self.warnings = (*self.warnings, found)

    def fail(self, key: str, problem: Problem) -> None:
        """Add a problem of the field's cell, and remove the field's value."""
        self.add(problem)
        self.failed_keys = self.failed_keys | {key}
        self.values.pop(key, None)


_CELLS_REMEMBERED = 1_000
"""Maximum number of cached cells of one column: the number of rows in a batch."""

_CLEARED = object()
"""Value of a cell that empties its field."""


class RowReader:
    """Reader of one file's rows: reads each cell as its field and collects all problems.

    `meanings` decide ambiguous cells.
    """

    def __init__(
        self, target: PushTarget, columns: ColumnMap, meanings: ColumnMeanings | None = None
    ) -> None:
        self._target, self._meanings, self._unsettled = target, meanings, meanings
        self._watch = meanings.date_observer if meanings is not None else lambda _: None
        self._drops_cleared = target.mode == "create"
        self._currency_fields = _currency_by_amount(target)
        self._prepare_readers(columns.columns)
        self._has_whole_name = WHOLE_NAME in columns.targets
        self._constants = {
            column.key: value for column, _, value in columns.constants if value is not None
        }
        keys = columns.targets.keys()
        self._takes_all_day = any(e.name == "all_day" for e in target.columns) and any(
            each.options.day_hours == "all-day" for each in columns.columns
        )
        self._zip = next((k for k in keys if k in ("postal_code", "postcode")), None)

    def _prepare_readers(self, columns: Sequence[MappedColumn]) -> None:
        """Prepare the reader of each column's cells."""
        self._columns = [
            (
                each.index,
                each.target.key,
                _cached_cell_reader(each, self._target, self._watch(each)),
                each,
            )
            for each in columns
        ]
        self._by_key = {key: column for _, key, _, column in self._columns}
        self._column_currencies: dict[str, str | None] = {}
        for key, column in self._by_key.items():
            if key in self._currency_fields and self._meanings is not None:
                self._column_currencies[key] = self._meanings.column_currency(column)

    def read(self, row: SheetRow) -> RowDraft:
        """Return the row's values and problems.

        A row with the wrong shape is not read further, because its cells may belong to other
        columns.
        """
        values = self._constants.copy()
        draft = RowDraft(row, values)
        if row.is_outside or (row.problems and self._add_shape_problems(draft)):
            return draft
        if row.is_hidden:
            draft.warn("hidden_row", None, None)
        if row.may_be_split:
            draft.warn("split_row", None, None)
        cells, skipped = row.cells, draft.failed_keys
        for index, key, read, column in self._columns:
            if key in skipped:
                continue
            try:
                value = read(cells[index])
            except CellError as error:
                if error.code in UNSETTLED and self._unsettled is not None:
                    return self._reread_with_inferred_meanings(row)
                if error.code == "time_missing" and self._meanings is not None:
                    self._meanings.ask_for_hours(column, cells[index])
                draft.fail(key, error.problem(column.heading, cells[index]))
                continue
            if value.__class__ in _PLAIN:
                values[key] = value
            elif value is not None:
                self._add_annotated_value(draft, column, value)
        self._complete(draft)
        return draft

    def _complete(self, draft: RowDraft) -> None:
        """Read what several cells of the row mean together."""
        values = draft.values
        if draft.amounts or self._column_currencies:
            self._fill_currencies(draft)
        if self._has_whole_name and WHOLE_NAME in values:
            self._split_name(draft)
        if "timezone" in values:
            self._apply_time_zone(draft)
        if self._takes_all_day:
            values.setdefault("all_day", True)
        if self._zip in values:
            self._check_postal_code(draft)
        if self._meanings is not None:
            for each in draft.remarks:
                self._meanings.add_remark(each)

    def _reread_with_inferred_meanings(self, row: SheetRow) -> RowDraft:
        """Infer the readings of all columns from the whole file, and return the row read again."""
        assert self._unsettled is not None
        settled, self._unsettled = self._unsettled.infer_columns(), None
        self._prepare_readers(settled)
        return self.read(row)

    def _add_annotated_value(self, draft: RowDraft, column: MappedColumn, value: Any) -> None:
        """Add a value with notes or a unit to the draft, or clear the field."""
        key, cell = column.target.key, draft.row.cells[column.index]
        if isinstance(value, ValueWithNotes):
            for code, message in value.notes:
                draft.warn(code, message, column.heading, cell)
            value = value.value
        if isinstance(value, Amount):
            draft.amounts = {**draft.amounts, key: value}
            value = value.value
        if value is _CLEARED:
            self._clear_field(draft, column, cell)
        elif value is not None:
            draft.values[key] = value

    # -- Currencies --------------------------------------------------------------------------------

    def _fill_currencies(self, draft: RowDraft) -> None:
        """Fill the currency fields from the amounts' cells and columns; add a problem if they
        differ.
        """
        for key in draft.values.keys() & (draft.amounts.keys() | self._column_currencies.keys()):
            unit = draft.amounts[key].unit if key in draft.amounts else self._column_currencies[key]
            if unit is not None:
                self._fill_currency(draft, key, unit, is_own=key in draft.amounts)

    def _fill_currency(self, draft: RowDraft, key: str, unit: str, *, is_own: bool) -> None:
        """Fill the currency field of one amount; `is_own` is True if the cell shows the unit."""
        column, place = self._by_key[key], self._currency_fields.get(key)
        home = currency_of_region(column.options.region)
        code = home if unit == "$" and home and home in _DOLLARS else unit
        received = text_of(draft.amounts[key]) if is_own else str(draft.values[key])
        cell = draft.row.cells[column.index]
        currency = draft.values.get(place) if place is not None else None
        if place is None:
            remark = "currency_left_out" if code == home else "other_currency"
            draft.warn(remark, None, column.heading, cell)
        elif currency is None and code.isalpha() and place not in draft.failed_keys:
            draft.values[place] = code
            if code != home:
                name = place.replace("_", " ")
                message = f"The {name} is imported as {code}."
                draft.warn("currency_taken", message, column.heading, cell)
        elif currency is None and is_own:
            fix = f'Enter the currency code in a column "{place.replace("_", " ")}".'
            problem = problem_of("currency_sign", None, column.heading, received=cell, fix=fix)
            draft.fail(key, problem)
        elif currency != code and is_own and not (unit == "$" and str(currency) in _DOLLARS):
            other = (
                self._by_key[place].heading if place in self._by_key else place.replace("_", " ")
            )
            message = f"The value is in {unit}, but {other} is {currency}."
            draft.fail(
                key, problem_of("currency_differs", message, column.heading, received=received)
            )

    # -- Names, zones and codes --------------------------------------------------------------------

    def _split_name(self, draft: RowDraft) -> None:
        """Replace a whole name by first and last name; add a problem if it is unclear."""
        column = self._by_key[WHOLE_NAME]
        whole = draft.values.pop(WHOLE_NAME)
        parts = split_name(whole)
        if parts is None:
            code = "name_unclear" if len(whole.split()) > 1 else "name_of_one_word"
            draft.fail("first_name", problem_of(code, None, column.heading, received=whole))
            draft.failed_keys = draft.failed_keys | {"last_name"}
            return
        first, last = parts
        draft.values |= {"first_name": first, "last_name": last}
        message = f'The value is imported as "{first}" and "{last}".'
        draft.warn("name_split", message, column.heading, whole)

    def _apply_time_zone(self, draft: RowDraft) -> None:
        """Read the times of the row again in the time zone that another cell of the row names."""
        zone = draft.values["timezone"]
        for index, key, _, column in self._columns:
            cell = draft.row.cells[index]
            if (
                column.target.field.kind is not Kind.DATETIME
                or key in draft.failed_keys
                or cell == ""
            ):
                continue
            if column.options.timezone is None and is_timezone(str(zone)):
                options = replace(column.options, timezone=str(ZoneInfo(str(zone))))
                try:
                    value = cell_reader(column.target, self._target.mode, options).read(cell)
                except CellError as error:
                    draft.fail(key, error.problem(column.heading, cell))
                    continue
                draft.values[key] = value.value if isinstance(value, ValueWithNotes) else value

    def _check_postal_code(self, draft: RowDraft) -> None:
        """Warn of a postal code of four digits in a country whose codes have five."""
        assert self._zip is not None
        code, country = str(draft.values[self._zip]), str(draft.values.get("country", ""))
        is_short = code.isascii() and code.isdigit() and len(code) == 4
        if is_short and normalized_words(country) in FIVE_DIGIT_COUNTRIES:
            column = self._by_key.get(self._zip)
            draft.warn("lost_zero", None, column.heading if column else None, code)

    def _add_shape_problems(self, draft: RowDraft) -> bool:
        """Add the problems of the row's shape; return True if it is misshapen.

        A problem in a column without a field is ignored.
        """
        mapped = {column.heading: key for key, column in self._by_key.items()}
        for problem in draft.row.problems:
            if problem.column is None:
                draft.is_misshapen = True
                draft.add(problem)
            elif problem.column in mapped:
                draft.fail(mapped[problem.column], problem)
        return draft.is_misshapen

    def _clear_field(self, draft: RowDraft, column: MappedColumn, cell: Cell) -> None:
        """Set the field to null for an update; add a problem if the API requires a value."""
        key, received = column.target.key, str(cell).strip()
        if not column.target.can_be_cleared:
            draft.fail(key, problem_of("cannot_clear", None, column.heading, received=received))
        elif not self._drops_cleared:
            # A new record has no value to be emptied.
            draft.values[key] = None


def _cached_cell_reader(
    column: MappedColumn, target: PushTarget, watch: Callable[[Cell], None] | None
) -> Callable[[Cell], Any]:
    """Return the reader of a column's cells, which reads repeated cells only once.

    It returns None for a cell that leaves the field unchanged, or raises `CellError`.
    """
    reads, clear = cell_reader(column.target, target.mode, column.options), target.clear

    # Python considers True and 1 equal, so the type is part of the key.
    @lru_cache(_CELLS_REMEMBERED, typed=True)
    def read(cell: Cell) -> Any:
        if watch is not None:
            watch(cell)
        if not isinstance(cell, str):
            if isinstance(cell, PartlyVisibleCell) and not cell.shown:
                return with_note(None, "hidden_value")
            return reads.typed(cell)
        text = cell.strip()
        if not text:
            return None
        return _CLEARED if text == clear else reads.text(text)

    return read


_PLAIN = frozenset((str, int, float, bool))
"""Types of nearly all values."""

_DOLLARS = frozenset(("USD", "CAD", "AUD", "NZD", "SGD", "HKD"))
_IS_UNCLEAR = re.compile(r"[()\[\]&/|;@\d]|\s[-\u2013]\s|\s(?:and|und|et|y|en)\s").search
_CAPITALS_MIN = 3


def split_name(name: str) -> tuple[str, str] | None:
    """Return first and last name of a whole name; None for one word or an unclear name.

    A comma follows the last name, and capitals are the last name. Otherwise it is the last word,
    with particles before it. Titles and degrees are removed.
    """
    if _IS_UNCLEAR(name):
        return None
    parts = [_words_without_titles(part) for part in name.split(",")]
    parts = [part for part in parts if part and not {*map(normalized_heading, part)} <= DEGREES]
    if any(not any(map(str.isalpha, word)) for part in parts for word in part):
        return None
    if len(parts) != 1:
        return (" ".join(parts[1]), " ".join(parts[0])) if len(parts) == 2 else None
    (words,) = parts
    if normalized_heading(words[-1]) in DEGREES:
        return None
    capitals = [each.isupper() and len(each) >= _CAPITALS_MIN for each in words]
    split_at = len(words) - 1
    if capitals[0] and False in capitals and True not in capitals[capitals.index(False) :]:
        split_at = capitals.index(False)
        return " ".join(words[split_at:]), " ".join(words[:split_at])
    while split_at > 1 and (
        normalized_heading(words[split_at - 1]) in PARTICLES
        or (capitals[split_at - 1] and capitals[-1])
    ):
        split_at -= 1
    return (" ".join(words[:split_at]), " ".join(words[split_at:])) if split_at > 0 else None


def _words_without_titles(part: str) -> list[str]:
    """Return the words of a name, without titles such as Dr at the beginning."""
    words = part.split()
    while words and normalized_heading(words[0]) in TITLES:
        del words[0]
    return words


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
