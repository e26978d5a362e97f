"""A wrong quote in a csv costs the rows that it damages, and no other row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import text_file

HEAD = "First Name,Last Name,Email,Employment Type,City,Current Company,Notes"


def line(name: str, city: str = "York", company: str = "Acme", notes: str = "") -> str:
    """A row of text about a candidate."""
    return f"{name},Poe,{name.lower()}@people.example,permanent,{city},{company},{notes}"


def refused(folder: Path, *lines: str, head: str = HEAD) -> tuple[list[int], list[str]]:
    """Numbers of the rows with a problem, and first cells of the others."""
    content = "\r\n".join([head, *lines, ""]).encode()
    rows = list(open_table(text_file(folder, content)).rows())
    whole = [str(each.cells[0]) for each in rows if not each.problems]
    return [each.number for each in rows if each.problems], whole


ANN, BOB, CID, DEE = (line(each) for each in ("Ann", "Bob", "Cid", "Dee"))


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        ([ANN, line("Bob", company='"Acme'), line("Cid", company='Acme"'), DEE], [3, 4]),
        ([ANN, line("Bob", company='"Acme'), CID, line("Dee", company='Acme"')], [3, 4, 5]),
        ([ANN, line("Bob", notes='"see'), line("Cid", notes='x"'), DEE], [3, 4]),
        ([ANN, line("Bob", company='"Acme'), line("Cid", company='"Acme, Ltd"'), DEE], [3]),
        ([ANN, line("Bob", company='"Acme'), CID, DEE], [3]),
        ([ANN, BOB, line("Cid", company='"Acme')], [4]),
        ([ANN, line("Bob", city='"York, UK"Acme', company="x"), CID], [3]),
        ([ANN, 'Bob,Poe,bob@people.example,permanent,York"Acme, Ltd",x', CID], [3]),
        ([ANN, line("Bob", notes='"one\r\ntwo"x'), CID], [3, 4]),
        ([line("Ann", company='"Acme'), BOB], [2]),
    ],
    ids=[
        *("next row", "two rows", "many lines", "opened again", "never closed", "last row"),
        *("text behind", "separator missing", "text behind lines", "first row"),
    ],
)
def test_a_wrong_quote_costs_its_own_rows(
    tmp_path: Path, lines: Sequence[str], numbers: list[int]
) -> None:
    found, whole = refused(tmp_path, *lines)

    assert numbers == found
    names = [each.partition(",")[0] for each in "\r\n".join(lines).split("\r\n")]
    assert [name for number, name in enumerate(names, 2) if number not in numbers] == whole


def test_each_swallowed_row_is_named(tmp_path: Path) -> None:
    lines = [HEAD, line("Bob", company='"Acme'), line("Cid", company='Acme"'), DEE]
    table = open_table(text_file(tmp_path, "\n".join(lines).encode()))
    first, second, third = table.rows()

    for row in (first, second):
        (problem,) = row.problems
        assert "quote_not_closed" == problem.code
        assert "opens in row 2 and closes in row 3" in problem.message
    assert ("Bob", "Cid") == (first.cells[0], second.cells[0])
    assert () == third.problems


@pytest.mark.parametrize(
    "cell",
    [
        *('5" screens', 'Monitor 15"', 'Robert "Bob" Poe', '"York\nUK"', '"Acme\r\nLtd"'),
        *('"5"" screens"', '"The ""Old"" Inn, Ltd"', '"York, UK"', 'O"Neill'),
    ],
)
def test_a_cell_that_adds_up_is_text(tmp_path: Path, cell: str) -> None:
    found, whole = refused(tmp_path, ANN, line("Bob", city=cell), CID)

    assert ([], ["Ann", "Bob", "Cid"]) == (found, whole)


def test_lines_of_prose_are_no_rows(tmp_path: Path) -> None:
    note = '"Dear all,\na, b, c, d, e, f, g\nwrites Ann, ann@people.example, x, y, z, w, v\nbye"'
    found, whole = refused(
        tmp_path, ANN, line("Bob", notes=note), CID.replace("Cid", '"Cid\nA."'), DEE
    )

    assert ([], ["Ann", "Bob", "Cid\nA.", "Dee"]) == (found, whole)


def test_one_bad_quote_in_many_rows_refuses_one(tmp_path: Path) -> None:
    lines = [line(f"Ann{number}", notes='"a\r\nb, c"') for number in range(100)]
    lines[50] = line("Ann50", city='"York, UK"Acme')
    found, whole = refused(tmp_path, *lines)

    assert ([52], 99) == (found, len(whole))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_file_whose_only_row_is_damaged_is_read(tmp_path: Path, delimiter: str) -> None:
    for broken in ('1,"2', '"1"2,3'):
        content = f"a,b\n{broken}\n".replace(",", delimiter)
        (row,) = open_table(text_file(tmp_path, content.encode())).rows()
        assert 1 == len(row.problems)
