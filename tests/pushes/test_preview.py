"""Previews, their reports, and what they print."""

from __future__ import annotations

import asyncio
import csv
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook

from connector.pushes.options import PushOptions
from connector.pushes.report import push
from connector.spreadsheet.report import Summary
from connector.spreadsheet.table import open_table
from connector.state.row import Problem, Row
from tests.support.agency import settings_at
from tests.support.command import call, variables


def test_the_terminal_shows_the_first_rows_of_the_file_and_of_each_problem(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people = [("Ann", "ann"), ("Bo", "bo"), ("Cy", "cy"), ("Di", "di"), ("Bo", "bo"), ("Cy", "cy")]
    lines = [f"{name},Lee,{mail}@a.example,interim" for name, mail in people]
    lines += ["Eve,Lee,eve at a.example,interim", "Flo,Lee,flo@a.example,freelance"]
    head = "Forename,Surname,E-mail,Type of employment"
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    words = ["push", "candidates", str(path), "--mode", "create"]
    environ = variables("http://127.0.0.1:9", tmp_path, "nobody")
    done, as_json = call(words, environ), call([*words, "--json"], environ)

    shown = done.out.splitlines()
    assert ["Row 2 would create:", "  first_name: Ann", "  last_name: Lee"] == shown[4:7]
    assert ["Row 2", "Row 3", "Row 4"] == [
        each.removesuffix(" would create:") for each in shown if each.endswith("create:")
    ]
    changes = as_json.object["changes"]
    assert {"row": 5, "field": "email", "now": None, "then": "di@a.example"} in changes
    assert "4 rows have errors and are not sent:" in done.err
    assert "E-mail, row 6: The row is a duplicate of row 3." in done.err
    assert "E-mail, row 7: The row is a duplicate of row 4." in done.err
    assert 'E-mail, row 8: "eve at a.example" is not an email address.' in done.err
    assert '"freelance" is not allowed when creating a candidate.' in done.err
    assert "Allowed: permanent, contractor, interim." in done.err
    assert "Warning" not in done.err
    (report,) = tmp_path.glob("people.report.csv")
    with report.open(encoding="utf-8-sig", newline="") as file:
        text = " ".join(f"{row['_problem']} {row['_fix']}" for row in csv.DictReader(file))
    assert "--" not in text
    assert "first_name" not in text


def test_a_row_with_two_problems_of_a_kind_is_named_once() -> None:
    row = Row(2, "candidates")
    row.end("refused", "invalid", "a", *[Problem("a", "The value is odd", "City")] * 2)
    (group,) = Summary.of([row]).problems.values()

    assert ["row 2: The value is odd"] == group.describe()


@pytest.mark.parametrize("is_workbook", [False, True])
def test_the_report_of_invalid_rows_keeps_their_cells(tmp_path: Path, *, is_workbook: bool) -> None:
    settings = settings_at("http://127.0.0.1:9", tmp_path, "nobody")
    head = ["first_name", "last_name", "email", "date_of_birth", "rating", "employment_type"]
    lines: list[list[Any]] = [
        ["Ann", "Lee", "ann@a.example", date(1990, 4, 3), 4, "interim"],
        ["Bo", "Li", "none", date(1990, 4, 3), 0.5, "interim"],
        ["Cy", "=1+1", "none", "soon", "€ 45,000.50", "interim"],
    ]
    path = tmp_path / ("people.xlsx" if is_workbook else "people.csv")
    if is_workbook:
        book = Workbook()
        sheet: Any = book.active
        for line in [head, [], *lines]:
            sheet.append(line)
        sheet["B5"].data_type = "s"
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head, *lines])
    push_file = PushOptions("create").push_file("candidates", path)
    report = asyncio.run(push(settings, push_file))
    assert report.file is not None
    there, read = open_table(path), open_table(report.file)

    assert read.is_report
    wrong = [row.cells for row in there.rows() if row.cells[2] == "none"]
    assert wrong == [row.cells for row in read.rows()]
    if is_workbook:
        shown = load_workbook(report.file)
        assert [1, 2, 3] == [cell.row for cell in shown["Report"]["A"]]
        assert [4, 5] == [cell.value for cell in shown["Report"]["G"][1:]]
