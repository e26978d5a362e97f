"""The recruiter's way: a messy spreadsheet is previewed, applied, corrected and pushed again, by
the command and against a server.
"""

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
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from tests.spreadsheet.meaning.messy import HEADINGS, MessyFile, messy
from tests.support.agency import rows
from tests.support.command import CommandResult, call, variables

ROWS = int(os.environ.get("MESSY_ROWS", "160"))
"""Rows of the messy file; MESSY_ROWS=3000 is what a recruiter has."""

WRITES = ("POST", "PUT", "DELETE")


def push(sandbox: Sandbox, folder: Path, *words: str) -> CommandResult:
    """Call `connector push ... --json`."""
    return call(["push", *words, "--json"], variables(sandbox.base_url, folder, sandbox.key))


def writes(sandbox: Sandbox) -> list[str]:
    """Every write that the server has seen, as method and path."""
    return [f"{e.method} {e.path}" for e in sandbox.log if e.method in WRITES]


def reported(path: str | Path) -> list[dict[str, str]]:
    """The report's rows that are not blank."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        delimiter = ";" if ";" in file.readline() else ","
        file.seek(0)
        found = list(csv.DictReader(file, delimiter=delimiter))
    return [row for row in found if any(row.values())]


def written(path: Path, table: list[dict[str, Any]]) -> Path:
    """A csv of these rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def correct(report: Path, made: MessyFile) -> str:
    """A copy of the report in which every planted problem is put right."""
    text = report.read_text(encoding="utf-8-sig")
    table = list(csv.reader(text.splitlines(keepends=True), delimiter=";"))
    for (number, heading), cell in made.corrected.items():
        table[number - 1][HEADINGS.index(heading)] = cell
    copy = report.with_name("again.csv")
    with copy.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(table)
    return str(copy)


def people(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """The server's candidates by email."""
    return {each["email"]: each for each in sandbox.store.records("candidates").values()}


def test_a_messy_file_is_applied_whole_once_it_is_corrected(tmp_path: Path) -> None:
    made = messy(11, ROWS)
    source = tmp_path / "people.csv"
    source.write_bytes(made.content)
    with Sandbox(counts={"jobs": 1}) as sandbox:
        seen = push(sandbox, tmp_path, "candidates", str(source), "--mode", "create")
        assert 3 == seen.status, seen.err
        assert [] == sandbox.log
        assert made.people == seen.object["rows"]

        words = ("candidates", str(source), "--mode", "create", "--apply")
        asked = push(sandbox, tmp_path, *words)
        assert (3, made.people - len(made.bad_rows)) == (asked.status, asked.object["not_sent"])
        assert ["columns_lost"] == [q["code"] for q in asked.object["questions"] if q["stops"]]
        assert [] == sandbox.log
        done = push(sandbox, tmp_path, *words, "--ignore", "*")
        assert 3 == done.status, done.err
        good = made.people - len(made.bad_rows)
        assert good == done.object["created"] == len(sandbox.store.records("candidates"))
        report = reported(done.object["report"])
        told = {(int(row["_row"]), code) for row in report for code in row["_code"].split(", ")}
        assert {(each.row, each.code) for each in made.planted} <= told
        assert made.bad_rows == {
            int(row["_row"]) for row in report if row["_outcome"] in ("invalid", "duplicate")
        }

        corrected = correct(Path(done.object["report"]), made)
        again = push(sandbox, tmp_path, "candidates", corrected, "--mode", "create", "--apply")
        assert 0 == again.status, again.out + again.err
        assert len(made.bad_rows) == again.object["created"]
        assert good == again.object["unchanged"]
        created = Counter(each["email"].lower() for each in people(sandbox).values())
        assert made.people == len(sandbox.store.records("candidates")) == len(created)

        spent = len(writes(sandbox))
        same = push(sandbox, tmp_path, "candidates", corrected, "--mode", "create", "--apply")
        assert (0, spent) == (same.status, len(writes(sandbox)))
        assert made.people == same.object["unchanged"]


def test_updates_send_what_differs_and_refuse_what_others_changed(tmp_path: Path) -> None:
    """Of rows that mostly change nothing only those that do are sent; a field that somebody else
    has changed since the pull is a conflict that shows the other value, and stays as it is.
    """
    with Sandbox(counts={"candidates": 30}) as sandbox:
        call(["pull"], variables(sandbox.base_url, tmp_path, sandbox.key))
        everybody = list(people(sandbox).values())
        table = [
            {"email": each["email"], "city": "Leeds" if number < 3 else each["city"] or ""}
            for number, each in enumerate(everybody)
        ]
        sandbox.store.update("candidates", everybody[0]["id"], {"city": "Bath"})
        source = str(written(tmp_path / "cities.csv", table))
        words = ("candidates", source, "--mode", "update", "--match", "email")
        before = len(sandbox.log)
        done = push(sandbox, tmp_path, *words, "--no-pull", "--apply")

        assert 3 == done.status, done.out + done.err
        assert {"updated": 2, "conflict": 1, "unchanged": 27} == {
            name: done.object.get(name) for name in ("updated", "conflict", "unchanged")
        }
        assert 2 == sum(e.method == "PUT" for e in sandbox.log)
        assert 5 == len(sandbox.log) - before
        (conflict,) = [r for r in reported(done.object["report"]) if r["_outcome"] == "conflict"]
        assert "Bath" in conflict["_problem"]
        assert "Bath" == sandbox.store.records("candidates")[everybody[0]["id"]]["city"]
        landed = rows(
            tmp_path / "recruitment.duckdb", "FROM landing.candidates WHERE city = 'Leeds'"
        )
        assert {each["id"] for each in everybody[1:3]} <= {row["id"] for row in landed}


def test_a_colleagues_edit_after_the_preview_is_a_conflict(tmp_path: Path) -> None:
    """What was changed since the person saw it is not written over, though a pull has landed it
    meanwhile: not by the same file, not by its report, only after another look or by --overwrite.
    """
    with Sandbox(counts={"candidates": 3}) as sandbox:
        call(["pull"], variables(sandbox.base_url, tmp_path, sandbox.key))
        who = next(iter(people(sandbox).values()))
        source = str(written(tmp_path / "city.csv", [{"email": who["email"], "city": "Leeds"}]))
        words = ("--mode", "update", "--match", "email")
        push(sandbox, tmp_path, "candidates", source, *words)
        sandbox.store.update("candidates", who["id"], {"city": "Bath"})
        first = push(sandbox, tmp_path, "candidates", source, *words, "--apply")
        again = push(sandbox, tmp_path, "candidates", source, *words, "--apply")
        report = push(sandbox, tmp_path, "candidates", first.object["report"], *words, "--apply")
        held = sandbox.store.records("candidates")[who["id"]]["city"]
        push(sandbox, tmp_path, "candidates", source, *words)
        seen = push(sandbox, tmp_path, "candidates", source, *words, "--apply")

        assert [(3, 1)] * 3 == [
            (c.status, c.object.get("conflict")) for c in (first, again, report)
        ]
        assert "Bath" == held
        assert (0, 1) == (seen.status, seen.object.get("updated")), seen.out


def test_files_are_pushed_in_the_order_in_which_they_refer(tmp_path: Path) -> None:
    firms = [{"name": f"Firm {n}", "email": f"f{n}@firms.example"} for n in range(3)]
    about = {"location": "Leeds", "employment_type": "permanent", "description": "Work."}
    jobs = [{"title": f"Job {n}", "company_name": f"Firm {n}", **about} for n in range(3)]
    with Sandbox(counts={"candidates": 1}) as sandbox:
        done = push(
            sandbox, tmp_path,
            "jobs", str(written(tmp_path / "jobs.csv", jobs)),
            "companies", str(written(tmp_path / "firms.csv", firms)),
            "--mode", "create", "--apply",
        )  # fmt: skip

        assert 0 == done.status, done.out + done.err
        assert [3, 3] == [each["created"] for each in done.object["files"]]
        made = sandbox.store.records("jobs").values()
        firm_ids = set(sandbox.store.records("companies"))
        assert firm_ids == {each["company_id"] for each in made}


def test_leads_are_converted_once(tmp_path: Path) -> None:
    with Sandbox(counts={"leads": 1}) as sandbox:
        body = {"email": "won@leads.example", "lead_status_id": LEAD_STATUSES[0], "last_name": "W"}
        sandbox.store.create("leads", body)
        source = str(written(tmp_path / "won.csv", [{"email": "won@leads.example"}]))
        words = ("leads", source, "--mode", "convert")
        call(["pull", "leads"], variables(sandbox.base_url, tmp_path, sandbox.key))
        preview = push(sandbox, tmp_path, *words)
        calls = [push(sandbox, tmp_path, *words, "--apply") for _ in range(2)]

        assert [0, 0] == [each.status for each in calls], calls[1].out
        assert (1, 1) == (calls[0].object["converted"], calls[1].object["unchanged"])
        assert all("1 conversion: a conversion cannot" in c.err for c in (preview, calls[0]))
        assert "conversion" not in calls[1].err
        assert 1 == sum(each.endswith("/convert") for each in writes(sandbox))


def test_a_lost_answer_is_waited_for_aloud_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(seconds: float) -> None:
        assert seconds > 0
        raise Misused("waited")

    with Sandbox(counts={"candidates": 1}) as sandbox:
        sandbox.faults.add(Drop("none"), method="POST")
        source = str(written(tmp_path / "one.csv", [{"first_name": "A", "last_name": "B",
            "email": "a@people.example", "employment_type": "permanent"}]))  # fmt: skip
        words = ("candidates", source, "--mode", "create", "--apply", "--no-pull")
        left = push(sandbox, tmp_path, *words, "--no-wait")
        with monkeypatch.context() as patch:
            patch.setattr("connector.pushes.push.asyncio.sleep", stop)
            waited = push(sandbox, tmp_path, *words)

    assert (3, 1) == (left.status, left.object["held"]), left.err
    assert "unconfirmed, because the answers were lost" not in left.err
    assert (
        "1 row unconfirmed, because the answers were lost. The push searches for the records "
        in waited.err
    )
    assert 1 == writes(sandbox).count("POST /api/v1/candidates")


def test_a_workbook_comes_back_with_its_problems_marked(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        book = tmp_path / "people.xlsx"
        words = ["template", "candidates", "--out", str(book)]
        made = call(words, variables(sandbox.base_url, tmp_path, sandbox.key))
        assert 0 == made.status, made.err
        untouched = push(sandbox, tmp_path, "candidates", str(book), "--mode", "create", "--apply")
        assert (3, 1) == (untouched.status, untouched.object["invalid"])
        assert [] == writes(sandbox)
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
        done = push(sandbox, tmp_path, "candidates", str(book), "--mode", "create", "--apply")

        assert (3, 1, 1) == (done.status, done.object["created"], done.object["invalid"])
        assert "0161 496 0123" == people(sandbox)["ok@people.example"]["phone"]
        told = openpyxl.load_workbook(done.object["report"])["Report"]
        comment = told.cell(3, headings.index("email") + 1).comment
        assert comment is not None
        assert "email address" in comment.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("candidates",), "needs a file"),
        (("people", "x.csv", "--mode", "create"), "not a resource that can be pushed"),
        (("candidates", "absent.csv", "--mode", "create"), "absent.csv"),
        (("candidates", "x.ods", "--mode", "create"), "xlsx"),
    ],
)
def test_a_mistake_is_told_and_sends_nothing(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    with Sandbox(counts={"jobs": 1}) as sandbox:
        (tmp_path / "x.ods").write_bytes(b"%PDF-1.7")
        words = tuple(str(tmp_path / w) if w == "x.ods" else w for w in words)
        words = (*words, *(() if "--mode" in words else ("--mode", "create")))
        done = push(sandbox, tmp_path, *words)

        assert 2 == done.status, done.out
        assert said in json.dumps(done.object["error"])
        assert [] == sandbox.log
