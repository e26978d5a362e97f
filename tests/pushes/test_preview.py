"""Previews, their reports, and what they print."""

from __future__ import annotations

import asyncio
import csv
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook

from connector.pushes.preview import PushFile
from connector.pushes.report import PushReport, PushRunOptions, push
from connector.sandbox.server import Sandbox
from connector.spreadsheet.table import open_table
from tests.repository import ROOT
from tests.support.agency import settings_at, settings_of
from tests.support.command import call, variables


def preview_creates(folder: Path, count: int) -> PushReport:
    """Preview a file of `count` creates; every tenth is invalid."""
    settings = settings_at("http://127.0.0.1:9", folder, "nobody")
    push_file = PushFile("candidates", write_creates(folder, count), "create")
    return asyncio.run(push(settings, push_file, PushRunOptions()))


def write_creates(folder: Path, count: int) -> Path:
    """Write a file of `count` creates; every tenth is invalid."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{count}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("first_name", "last_name", "email", "employment_type"))
        for n in range(count):
            email = "two@a.example three@a.example" if n % 10 == 0 else f"p{n}@people.example"
            writer.writerow(("Zoë", f"N{n}", email, "permanent"))
    return path


def apply_creates(sandbox: Sandbox, folder: Path, count: int) -> PushReport:
    """Apply a file of `count` creates with a budget of two requests, which suffices for one row."""
    push_file = PushFile("candidates", write_creates(folder, count), "create")
    manner = PushRunOptions(applies=True, pulls=False)
    return asyncio.run(push(settings_of(sandbox, folder), push_file, manner, budget=2))


def list_row_outcomes(report: PushReport) -> list[tuple[int, str]]:
    """Return the number and outcome of each row of the report."""
    assert report.file is not None
    with report.file.open(encoding="utf-8-sig", newline="") as file:
        return [(int(row["_row"]), row["_outcome"]) for row in csv.DictReader(file)]


def test_a_preview_reports_rows_with_problems_or_all_rows_if_requested(tmp_path: Path) -> None:
    settings = settings_at("http://127.0.0.1:9", tmp_path, "nobody")
    path = write_creates(tmp_path, 20)

    def preview(path: Path, **options: Any) -> PushReport:
        push_file = PushFile("candidates", path, "create")
        return asyncio.run(push(settings, push_file, PushRunOptions(**options)))

    some, every = preview(path), preview(path, report_rows="all")
    good = tmp_path / "good.csv"
    head = path.read_text(encoding="utf-8").partition("\n")[0]
    good.write_text(f"{head}\nA,B,c@d.example,interim\n", encoding="utf-8")
    none = preview(good)

    assert {"create": 18, "invalid": 2} == some.counts == every.counts
    assert [(2, "invalid"), (12, "invalid")] == list_row_outcomes(some)
    assert list(range(2, 22)) == [number for number, _ in list_row_outcomes(every)]
    assert (None, {"create": 1}) == (none.file, none.counts)
    assert [] == list_row_outcomes(preview(good, output=tmp_path / "named.csv"))


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
    push_file = PushFile("candidates", path, "create")
    report = asyncio.run(push(settings, push_file, PushRunOptions()))
    assert report.file is not None
    there, read = open_table(path), open_table(report.file)

    assert read.is_report
    wrong = [row.cells for row in there.rows() if row.cells[2] == "none"]
    assert wrong == [row.cells for row in read.rows()]
    if is_workbook:
        shown = load_workbook(report.file)
        assert [1, 2, 3] == [cell.row for cell in shown["Report"]["A"]]
        assert [4, 5] == [cell.value for cell in shown["Report"]["G"][1:]]


@pytest.mark.slow
def test_a_preview_does_not_import_pandas(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        apply_creates(sandbox, tmp_path / "old", 20)
    for name, counts in {
        "new": {"invalid": 2, "create": 18},
        "old": {"invalid": 2, "unchanged": 1, "create": 17},
    }.items():
        command = (
            "import sys; from pathlib import Path; "
            "from tests.pushes.test_preview import preview_creates; "
            f"counts = preview_creates(Path({str(tmp_path / name)!r}), 20).counts; "
            f"print(counts == {counts}, 'pandas' in sys.modules)"
        )
        output = subprocess.check_output([sys.executable, "-c", command], cwd=ROOT, text=True)
        assert "True False\n" == output
