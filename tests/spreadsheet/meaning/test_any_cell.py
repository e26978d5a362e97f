"""Any cell is read as a JSON value, or has a documented problem."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time
from typing import Any

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
from tests.spreadsheet.meaning.sheet import check_table, make_table, make_target

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


PIECES = (
    *("Ann", "o'", "-", " ", "  ", "\u00a0", "\u3000", "\t", "\n", "\r\n", "\x0b", "\x1f", "\0"),
    *(
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u00ad",
        "\u202e",
        "\ud800",
        "\ufffd",
        "e\u0301",
        "\u00e9",
        "\u00df",
    ),
    *(
        "\u00c3\u00a9",
        "\u0430",
        "\uff41",
        "\U0001f680",
        "&amp;",
        "&#8217;",
        "_x000D_",
        "\\,",
        "\\n",
    ),
    *('="', '"', '""', "'", "''", "=", "+", "@", "tel:", "mailto:", "<", ">", "#", "?", "%", "£"),
    *("x.example", "a@", ".", ",", ";", ":", "/", "https://", "www.", "00", "44", "7700 900123"),
    *("n/a", "null", "false", "MSc", "Dr", "GBP", "usd", "k", "pm", "1", "2", "0", "31", "2026"),
)
STAMPS = CellOptions(day_hours="09:00-17:30")
FIRST = [(c, cell_reader(c, "upsert", STAMPS)) for c, _ in READERS[:: len(MANNERS)]]


ANY_TEXT = some.one_of(TEXTS, some.lists(some.sampled_from(PIECES), max_size=6).map("".join))


@settings(max_examples=300)
@given(text=ANY_TEXT)
def test_no_text_arrives_changed_without_a_remark(text: str) -> None:
    for column, made in FIRST if text.strip() else ():
        try:
            value = made.read(text)
        except CellError:
            continue
        assert isinstance(value, ValueWithNotes) or is_unchanged(column, text, value), column.key


@settings(max_examples=60)
@given(texts=some.lists(ANY_TEXT, min_size=50, max_size=50))
def test_any_row_is_a_task_or_has_problems(texts: list[str]) -> None:
    for resource in ("candidates", "bookings", "leads"):
        target = make_target(resource)
        names = [column.name for column in target.columns]
        (row,) = check_table(make_table(dict(zip(names, texts, strict=False), x="x")), target)
        assert (row.task is None) == (row.outcome == "invalid")


def is_unchanged(column: TargetColumn, text: str, value: Any) -> bool:
    """Return True if a person would read the text as this value."""
    field, number = column.field, getattr(value, "value", value)
    if field.kind in (Kind.NUMBER, Kind.INTEGER):
        # All digits, unless a letter such as "k" multiplies them.
        digits = [re.sub(r"\D", "", each).strip("0") for each in (text, f"{number:f}")]
        return digits[0] == digits[1] or bool(re.search("[a-z]", text, re.IGNORECASE))
    if field.kind in (Kind.DATE, Kind.DATETIME):
        day = datetime.fromisoformat(value)
        return not {day.year, day.year % 100}.isdisjoint(map(int, re.findall("[0-9]+", text)))
    if field.kind is Kind.BOOL or field.values or field.format == "currency":
        return any(each.isalnum() or each in "$£" for each in text)
    if field.format == "email" or column.is_phone:
        sent, there = (re.sub(r"\D" if column.is_phone else " ", "", e) for e in (value, text))
        return sent in there
    return value is not None and text.split() == value.split()


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
