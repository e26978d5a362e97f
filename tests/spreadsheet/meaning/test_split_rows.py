"""Rows that a line end splits, and quotes that do not belong in a cell, cause warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.table import open_table
from tests.spreadsheet.meaning.sheet import InMemoryLanding, make_target

HEAD = "first_name,last_name,email,employment_type,city"


def check_lines(path: Path, *lines: str) -> list[tuple[int, str | None, list[str]]]:
    """Check a CSV file of these lines. Return number, outcome and codes of problems of each row."""
    path.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    table = open_table(path)
    columns = map_headings(table.headings, make_target())
    return [
        (each.row.number, each.outcome, [p.code for p in (*each.problems, *each.warnings)])
        for each in check_rows(table.rows(), columns, make_target(), InMemoryLanding())
    ]


def test_rows_next_to_a_line_with_one_cell_have_a_warning(tmp_path: Path) -> None:
    found = check_lines(
        tmp_path / "people.csv",
        "Ze",
        "lda,Lee,zelda@a.example,interim,Leeds",
        "Bo,Li,bo@a.example,interim,Leeds",
        "",
        "Cy,Oz,cy@a.example,interim,York",
        " Upon Ouse",
    )

    assert [
        (2, "invalid", ["row_width"]),
        (3, None, ["split_row"]),
        (4, None, []),
        (6, None, ["split_row"]),
        (7, "invalid", ["row_width"]),
    ] == found


@pytest.mark.parametrize(
    ("city", "codes"),
    [
        ('5" Screens', []),
        ("6'2\" Hill", []),
        ('The "Old" Town', []),
        ('O"Neill', ["odd_letters"]),
        ('York"', ["odd_letters"]),
        ('Yo""rk', ["odd_letters"]),
    ],
)
def test_suspicious_quotes_in_a_cell_give_a_warning(
    tmp_path: Path, city: str, codes: list[str]
) -> None:
    ((_, outcome, found),) = check_lines(
        tmp_path / "people.csv", f"Bo,Li,bo@a.example,interim,{city}"
    )

    assert (None, codes) == (outcome, found)
