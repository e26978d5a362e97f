"""Rows that a line end splits, and quotes that do not belong in a cell, are noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.spreadsheet.check import check
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.table import open_table
from tests.spreadsheet.meaning.sheet import DeclaredLanding, aimed

HEAD = "first_name,last_name,email,employment_type,city"


def noted(path: Path, *lines: str) -> list[tuple[int, str | None, list[str]]]:
    """Each row of the file: its number, its outcome, and the codes of its problems and warnings."""
    path.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    table = open_table(path)
    columns = map_headings(table.headings, aimed())
    return [
        (each.row.number, each.outcome, [p.code for p in (*each.problems, *each.warnings)])
        for each in check(table.rows(), columns, aimed(), DeclaredLanding())
    ]


def test_rows_beside_a_line_with_one_cell_are_noted(tmp_path: Path) -> None:
    found = noted(
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
def test_quotes_that_may_not_belong_in_a_cell_are_noted(
    tmp_path: Path, city: str, codes: list[str]
) -> None:
    ((_, outcome, found),) = noted(tmp_path / "people.csv", f"Bo,Li,bo@a.example,interim,{city}")

    assert (None, codes) == (outcome, found)
