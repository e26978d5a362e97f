"""A spreadsheet is previewed, applied, corrected and pushed again with the command."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connector.errors import Misused
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.spreadsheet.headings import REPORT_HEADINGS
from tests.pushes.pushing import list_writes
from tests.spreadsheet.meaning.messy import HEADINGS, MessyFile, make_messy_file
from tests.support.command import CommandResult, call, variables

ROWS = int(os.environ.get("MESSY_ROWS", "160"))
"""Rows of the messy file; MESSY_ROWS=3000 is what a recruiter has."""


def call_push(sandbox: Sandbox, folder: Path, *words: str) -> CommandResult:
    """Run `connector push ... --json`."""
    return call(["push", *words, "--json"], variables(sandbox.base_url, folder, sandbox.key))


def read_report(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a CSV report that are not blank."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        delimiter = ";" if ";" in file.readline() else ","
        file.seek(0)
        found = list(csv.DictReader(file, delimiter=delimiter))
    return [row for row in found if any(row.values())]


def write_csv(path: Path, table: list[dict[str, Any]]) -> Path:
    """Write a CSV file of these rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def correct_report(report: Path, messy_file: MessyFile) -> str:
    """Write a copy of the report in which every planted problem is corrected. Returns its path."""
    text = report.read_text(encoding="utf-8-sig")
    table = list(csv.reader(text.splitlines(keepends=True), delimiter=";"))
    lines = {line[table[0].index("_row")]: line for line in table}
    for (number, heading), cell in messy_file.corrected.items():
        lines[str(number)][HEADINGS.index(heading)] = cell
    copy = report.with_name("again.csv")
    with copy.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(table)
    return str(copy)


def map_candidates_by_email(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """Return the server's candidates by email."""
    return {each["email"]: each for each in sandbox.store.records("candidates").values()}


def test_a_messy_file_is_applied_after_its_report_is_corrected(tmp_path: Path) -> None:
    made = make_messy_file(11, ROWS)
    source = tmp_path / "people.csv"
    source.write_bytes(made.content)
    with Sandbox(counts={"jobs": 1}) as sandbox:
        seen = call_push(sandbox, tmp_path, "candidates", str(source), "--mode", "create")
        assert 3 == seen.status, seen.err
        assert [] == sandbox.log
        assert made.filled_row_count == seen.object["rows"]

        words = ("candidates", str(source), "--mode", "create", "--apply")
        preview = call_push(sandbox, tmp_path, *words)
        assert (3, made.filled_row_count - len(made.bad_rows)) == (
            preview.status,
            preview.object["not_sent"],
        )
        assert ["columns_lost"] == [q["code"] for q in preview.object["questions"] if q["stops"]]
        assert [] == sandbox.log
        done = call_push(sandbox, tmp_path, *words, "--ignore", "*")
        assert 3 == done.status, done.err
        good = made.filled_row_count - len(made.bad_rows)
        assert good == done.object["created"] == len(sandbox.store.records("candidates"))
        report = read_report(done.object["report"])
        reported = {(int(row["_row"]), code) for row in report for code in row["_code"].split(", ")}
        assert {(each.row, each.code) for each in made.planted} <= reported
        assert made.bad_rows == {
            int(row["_row"]) for row in report if row["_outcome"] in ("invalid", "duplicate")
        }

        corrected = correct_report(Path(done.object["report"]), made)
        again = call_push(sandbox, tmp_path, "candidates", corrected, "--mode", "create", "--apply")
        assert 0 == again.status, again.out + again.err
        assert len(made.bad_rows) == again.object["created"]
        assert good == again.object["unchanged"]
        created = Counter(
            each["email"].lower() for each in map_candidates_by_email(sandbox).values()
        )
        assert made.filled_row_count == len(sandbox.store.records("candidates")) == len(created)

        spent = len(list_writes(sandbox))
        same = call_push(sandbox, tmp_path, "candidates", corrected, "--mode", "create", "--apply")
        assert (0, spent) == (same.status, len(list_writes(sandbox)))
        assert made.filled_row_count == same.object["unchanged"]


def test_an_edit_by_a_colleague_after_the_preview_is_a_conflict(tmp_path: Path) -> None:
    """It stays a conflict after a pull. A new preview or --overwrite resolves it."""
    with Sandbox(counts={"candidates": 3}) as sandbox:
        call(["pull"], variables(sandbox.base_url, tmp_path, sandbox.key))
        who = next(iter(map_candidates_by_email(sandbox).values()))
        source = str(write_csv(tmp_path / "city.csv", [{"email": who["email"], "city": "Leeds"}]))
        words = ("--mode", "update", "--match", "email")
        call_push(sandbox, tmp_path, "candidates", source, *words)
        sandbox.store.update("candidates", who["id"], {"city": "Bath"})
        first = call_push(sandbox, tmp_path, "candidates", source, *words, "--apply")
        again = call_push(sandbox, tmp_path, "candidates", source, *words, "--apply")
        report = call_push(
            sandbox, tmp_path, "candidates", first.object["report"], *words, "--apply"
        )
        held = sandbox.store.records("candidates")[who["id"]]["city"]
        call_push(sandbox, tmp_path, "candidates", source, *words)
        seen = call_push(sandbox, tmp_path, "candidates", source, *words, "--apply")

        assert [(3, 1)] * 3 == [
            (c.status, c.object.get("conflict")) for c in (first, again, report)
        ]
        assert "Bath" == held
        assert (0, 1) == (seen.status, seen.object.get("updated")), seen.out


def test_a_second_file_refers_to_the_records_of_the_first(tmp_path: Path) -> None:
    firms = [{"name": f"Firm {n}", "email": f"f{n}@firms.example"} for n in range(3)]
    about = {"location": "Leeds", "employment_type": "permanent", "description": "Work."}
    jobs = [{"title": f"Job {n}", "company_name": f"Firm {n}", **about} for n in range(3)]
    with Sandbox(counts={"candidates": 1}) as sandbox:
        for resource, rows in (("companies", firms), ("jobs", jobs)):
            source = str(write_csv(tmp_path / f"{resource}.csv", rows))
            done = call_push(sandbox, tmp_path, resource, source, "--mode", "create", "--apply")
            assert 0 == done.status, done.out + done.err
            assert 3 == done.object["created"]
        made = sandbox.store.records("jobs").values()
        firm_ids = set(sandbox.store.records("companies"))
        assert firm_ids == {each["company_id"] for each in made}


def test_a_lost_answer_is_waited_for_with_a_message_unless_no_wait_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(seconds: float) -> None:
        assert seconds > 0
        raise Misused("waited")

    with Sandbox(counts={"candidates": 1}) as sandbox:
        sandbox.faults.add(Drop("none"), method="POST")
        source = str(write_csv(tmp_path / "one.csv", [{"first_name": "A", "last_name": "B",
            "email": "a@people.example", "employment_type": "permanent"}]))  # fmt: skip
        words = ("candidates", source, "--mode", "create", "--apply", "--no-pull")
        left = call_push(sandbox, tmp_path, *words, "--no-wait")
        with monkeypatch.context() as patch:
            patch.setattr("connector.pushes.report.asyncio.sleep", stop)
            waited = call_push(sandbox, tmp_path, *words)

    assert (3, 1) == (left.status, left.object["held"]), left.err
    assert "unconfirmed, because the answers were lost" not in left.err
    assert (
        "1 row unconfirmed, because the answers were lost. The push searches for the records "
        in waited.err
    )
    assert 1 == list_writes(sandbox).count("POST /api/v1/candidates")


def test_the_report_of_a_workbook_marks_its_problem_cells(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        book = tmp_path / "people.xlsx"
        words = ["template", "candidates", "--out", str(book)]
        made = call(words, variables(sandbox.base_url, tmp_path, sandbox.key))
        assert 0 == made.status, made.err
        untouched = call_push(
            sandbox, tmp_path, "candidates", str(book), "--mode", "create", "--apply"
        )
        assert 3 == untouched.status, untouched.err
        assert 1 == untouched.object["invalid"]
        assert [] == list_writes(sandbox)
        workbook = openpyxl.load_workbook(book)
        sheet = workbook.worksheets[0]
        headings = [cell.value for cell in sheet[1]]
        for number, email in ((2, "ok@people.example"), (3, "wrong")):
            for index, heading in enumerate(headings, 1):
                sheet.cell(number, index).value = {
                    "first_name": "Eve", "last_name": "Orr", "email": email,
                    "employment_type": "permanent", "phone": "0161 496 0123",
                }.get(str(heading))  # fmt: skip
        workbook.save(book)
        done = call_push(sandbox, tmp_path, "candidates", str(book), "--mode", "create", "--apply")

        assert (3, 1, 1) == (done.status, done.object["created"], done.object["invalid"])
        assert "+441614960123" == map_candidates_by_email(sandbox)["ok@people.example"]["phone"]
        sheet = openpyxl.load_workbook(done.object["report"])["Report"]
        shown = [cell.value for cell in sheet[3]]
        assert "email address" in str(shown[len(headings) + REPORT_HEADINGS.index("_problem")])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("candidates",), "no file was given"),
        (("people", "x.csv", "--mode", "create"), "not a resource that can be pushed"),
        (("candidates", "absent.csv", "--mode", "create"), "absent.csv"),
        (("candidates", "x.ods", "--mode", "create"), "xlsx"),
    ],
)
def test_a_usage_error_is_reported_and_sends_no_request(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        (tmp_path / "x.ods").write_bytes(b"%PDF-1.7")
        words = tuple(str(tmp_path / w) if w == "x.ods" else w for w in words)
        words = (*words, *(() if "--mode" in words else ("--mode", "create")))
        done = call_push(sandbox, tmp_path, *words)

        assert 2 == done.status, done.out
        assert message in json.dumps(done.object["error"])
        assert [] == sandbox.log
