"""Any cell is read as a JSON value, or has a documented problem."""

from __future__ import annotations

import json
from datetime import date, datetime, time

from hypothesis import given, settings
from hypothesis import strategies as some

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.spreadsheet.cells import CellReader, cell_reader
from connector.spreadsheet.problems import (
    PROBLEMS,
    Amount,
    Cell,
    CellError,
    ValueWithNotes,
    visible_text,
)
from connector.spreadsheet.targets import AS_WRITTEN, CellOptions, TargetColumn, target_columns

MANNERS = (
    AS_WRITTEN,
    CellOptions(
        *("dmy", ",", "Europe/London", "GB"), whole_numbers=True, values={"x": "1", "y": ""}
    ),
    CellOptions("mdy"),
)
READERS: list[tuple[TargetColumn, CellReader]] = [
    (column, cell_reader(column, "upsert", options))
    for declared in CATALOG.values()
    if "create" in declared.operations
    for column in target_columns(declared, "upsert")
    for options in MANNERS
]
NUMERIC = some.text("0123456789.,-+eE€£$%' \u00a0k", min_size=1, max_size=12)
DATED = some.text("0123456789-/.:TZ +aprAPR", min_size=1, max_size=22)
TEXTS = some.one_of(some.text(min_size=1, max_size=40), NUMERIC, DATED)
TYPED = some.one_of(
    some.integers(), some.floats(), some.booleans(), some.dates(), some.datetimes(), some.times()
)
_TYPES = {
    Kind.STRING: (str,),
    Kind.UUID: (str,),
    Kind.NUMBER: (int, float),
    Kind.INTEGER: (int,),
    Kind.BOOL: (bool,),
    Kind.DATE: (str,),
    Kind.DATETIME: (str,),
}


@settings(max_examples=120)
@given(cell=some.one_of(TEXTS, TYPED))
def test_any_cell_is_a_value_or_a_documented_problem(
    cell: str | float | bool | date | datetime | time,
) -> None:
    if isinstance(cell, str) and not cell.strip():
        return
    refusals = set()
    for column, made in READERS:
        try:
            value = made.read(cell)
        except CellError as error:
            refusals.add(error.problem().code)
            continue
        value = value.value if isinstance(value, ValueWithNotes) else value
        value = value.value if isinstance(value, Amount) else value
        if value is None:
            continue
        json.dumps(value, allow_nan=False)
        is_looked_up = column.reference is not None and column.reference.by is not None
        assert isinstance(value, str if is_looked_up else _TYPES[column.field.kind])
        if not is_looked_up:
            _, problem = column.field.parse(value)
            assert problem is None, (column.key, value)
    assert refusals <= set(PROBLEMS)
    assert visible_text(cell).replace("\n", "").isprintable()


@settings(max_examples=200)
@given(cents=some.integers(0, 10**12))
def test_plain_numbers_are_read_exactly(cents: int) -> None:
    (column,) = (
        s for s in target_columns(CATALOG["candidates"], "create") if s.key == "expected_salary"
    )
    text = f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02}"

    assert float(text) == cell_reader(column, "create").read(text)
    german = cell_reader(column, "create", CellOptions(decimal=","))
    assert float(text) == german.read(text.replace(".", ","))


@settings(max_examples=200)
@given(day=some.dates(date(1900, 1, 1), date(2199, 12, 31)))
def test_dates_are_read_in_the_declared_format(day: date) -> None:
    (column,) = (
        s for s in target_columns(CATALOG["candidates"], "create") if s.key == "available_from"
    )
    british = cell_reader(column, "create", CellOptions(date_format="dmy"))
    american = cell_reader(column, "create", CellOptions(date_format="mdy"))
    cells: list[tuple[CellReader, Cell]] = [
        (british, f"{day.day:02}/{day.month:02}/{day.year}"),
        (british, f"{day.day}/{day.month}/{day.year}"),
        (american, f"{day.month}/{day.day}/{day.year}"),
        (british, day.isoformat()),
        (american, day),
    ]

    assert {day.isoformat()} == {made.read(cell) for made, cell in cells}
