"""A wrong quote in a CSV file rejects only the rows that it damages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import write_file

HEAD = "First Name,Last Name,Email,Employment Type,City,Current Company,Notes"


def make_row(name: str, city: str = "York", company: str = "Acme", notes: str = "") -> str:
    """Return a CSV line of a candidate with the columns of `HEAD`."""
    return f"{name},Poe,{name.lower()}@people.example,permanent,{city},{company},{notes}"


def split_rows_by_problem(
    folder: Path, *lines: str, head: str = HEAD
) -> tuple[list[int], list[str]]:
    """Return the numbers of rows with a problem, and the first cells of rows without one."""
    content = "\r\n".join([head, *lines, ""]).encode()
    rows = list(open_table(write_file(folder, content)).rows())
    whole = [str(each.cells[0]) for each in rows if not each.problems]
    return [each.number for each in rows if each.problems], whole


ANN, BOB, CID, DEE = (make_row(each) for each in ("Ann", "Bob", "Cid", "Dee"))


@pytest.mark.parametrize(
    ("lines", "rejected_rows"),
    [
        ([ANN, make_row("Bob", company='"Acme'), make_row("Cid", company='Acme"'), DEE], [3, 4]),
        ([ANN, make_row("Bob", company='"Acme'), CID, make_row("Dee", company='Acme"')], [3, 4, 5]),
        ([ANN, make_row("Bob", notes='"see'), make_row("Cid", notes='x"'), DEE], [3, 4]),
        ([ANN, make_row("Bob", company='"Acme'), make_row("Cid", company='"Acme, Ltd"'), DEE], [3]),
        ([ANN, make_row("Bob", company='"Acme'), CID, DEE], [3]),
        ([ANN, BOB, make_row("Cid", company='"Acme')], [4]),
        ([ANN, make_row("Bob", city='"York, UK"Acme', company="x"), CID], [3]),
        ([ANN, make_row("Bob", notes='"one\r\ntwo"x'), CID], [3, 4]),
        ([make_row("Ann", company='"Acme'), BOB], [2]),
    ],
    ids=[
        *("next row", "two rows", "many lines", "opened again", "never closed", "last row"),
        *("text behind", "text behind lines", "first row"),
    ],
)
def test_a_wrong_quote_rejects_only_the_rows_it_affects(
    tmp_path: Path, lines: Sequence[str], rejected_rows: list[int]
) -> None:
    found, whole = split_rows_by_problem(tmp_path, *lines)

    assert rejected_rows == found
    names = [each.partition(",")[0] for each in "\r\n".join(lines).split("\r\n")]
    assert [name for number, name in enumerate(names, 2) if number not in rejected_rows] == whole


def test_each_row_joined_by_a_wrong_quote_is_reported(tmp_path: Path) -> None:
    lines = [HEAD, make_row("Bob", company='"Acme'), make_row("Cid", company='Acme"'), DEE]
    table = open_table(write_file(tmp_path, "\n".join(lines).encode()))
    first, second, third = table.rows()

    for row in (first, second):
        (problem,) = row.problems
        assert "quote_not_closed" == problem.code
        assert "opens in row 2 and closes in row 3" in problem.message
    assert ("Bob", "Cid") == (first.cells[0], second.cells[0])
    assert () == third.problems


def test_lines_within_a_quoted_cell_are_not_rows(tmp_path: Path) -> None:
    note = '"Dear all,\na, b, c, d, e, f, g\nwrites Ann, ann@people.example, x, y, z, w, v\nbye"'
    found, whole = split_rows_by_problem(
        tmp_path, ANN, make_row("Bob", notes=note), CID.replace("Cid", '"Cid\nA."'), DEE
    )

    assert ([], ["Ann", "Bob", "Cid\nA.", "Dee"]) == (found, whole)
