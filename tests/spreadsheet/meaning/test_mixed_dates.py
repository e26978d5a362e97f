"""A column in which a program converted half of the dates with day and month swapped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import pytest

from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.problems import Cell, PartlyVisibleCell
from connector.spreadsheet.row_reader import ColumnMeanings
from tests.spreadsheet.meaning.sheet import CANDIDATE, InMemoryLanding, make_table, make_target


def list_questions(column: str, cells: Sequence[Cell]) -> list[tuple[str, str | None]]:
    """Return code and column of each question about a column with these cells."""
    made = make_table(
        *({**CANDIDATE, "email": f"a{n}@people.example", column: c} for n, c in enumerate(cells))
    )
    target = make_target()
    columns = map_headings(made.headings, target)
    meanings = ColumnMeanings(made.rows, columns.columns)
    rows = list(check_rows(made.rows(), columns, target, InMemoryLanding(), meanings=meanings))
    assert len(cells) == len(rows)
    return [(each.code, each.column) for each in meanings.mixed_dates()]


APRIL, JULY, LATE = date(2026, 4, 3), date(2026, 7, 5), date(2026, 4, 23)


@pytest.mark.parametrize(
    "cells",
    [
        (APRIL, JULY, "25/12/2026", "31/05/2026"),
        (APRIL, "25/12/2026"),
        ("25/12/2026", "2026-04-03"),
        ("2026-04-03 00:00:00", "31-05-2026"),
        (datetime(2026, 4, 3), "12/25/2026"),
        (PartlyVisibleCell(APRIL, "03-Apr", "dd-mmm"), "25/12/2026"),
        (APRIL, date(2026, 5, 5), "13/04/2026", ""),
    ],
)
def test_ambiguous_dates_of_a_column_raise_one_question(cells: Sequence[Cell]) -> None:
    for column in ("available_from", "date_of_birth"):
        assert [("mixed_dates", column)] == list_questions(column, cells)


@pytest.mark.parametrize(
    "cells",
    [
        (LATE, date(2026, 4, 24)),
        (APRIL, LATE, "25/12/2026"),
        (APRIL, JULY),
        ("25/12/2026", "31/05/2026"),
        (APRIL, "25/12/2026", "03/04/2026"),
        (APRIL, "25/12/2026", "04/04/2026"),
        (date(2026, 5, 5), "25/12/2026"),
        (APRIL, "1 March 2026"),
        (APRIL, "03.04.2026", "25.12.2026"),
        (APRIL, "soon"),
    ],
)
def test_unambiguous_dates_raise_no_question(cells: Sequence[Cell]) -> None:
    assert [] == list_questions("available_from", cells)


def test_numbers_raise_no_question_about_dates() -> None:
    assert [] == list_questions("expected_salary", (45000, "52000"))
