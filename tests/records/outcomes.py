"""Records of outcomes: cells and rows of spreadsheets, a nightly run, and a removed person."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from tests.records import program
from tests.records.record import Record
from tests.repository import ROOT
from tests.spreadsheet.corpus.cases import list_sample_files

HEADINGS = ("first_name", "last_name", "email", "employment_type", "city", "expected_salary")
ROWS = (
    ("Ann", "Reed", "ann.reed@people.example", "permanent", "Leeds", "45000"),
    ("Ann", "Reed", "ann.reed@people.example", "permanent", "Leeds", "45000"),
    ("Bob", "Poe", "bob.poe@people.example", "interim", "York", "about 45"),
    ("Cid", "", "cid@people.example", "contractor", "", ""),
    ("Dee", "Orr", "dee(at)people.example", "permanent", "Bath", "45.000"),
    ("Eve", "Lund", "eve.lund@people.example", "freelance", "Malmö", "52000"),
    ("Fay", "Ito", "", "permanent", "Kyoto\nEast", "52000"),
)
"""Rows of a staged file: two equal ones, and one error of each common kind."""


def record_cells() -> Record:
    """Return for each file of the corpus what the preview asks, and what becomes of each cell."""
    lines: dict[str, str] = {}
    with program.open_previews() as preview:
        for file in list_sample_files():
            for kind, answer in (("", {}), (" answered", file.answer)):
                if not kind or answer:
                    asked, rows = preview(file, answer)
                    lines[f"{file.name}{kind} asks"] = " ".join(asked)
                    lines |= {f"{file.name}{kind} row {n}": _one_line(row) for n, row in rows}
    return lines


def _one_line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)


def record_rows(folder: Path) -> Record:
    """Push the sample file and a staged one twice. Return each row's outcome, as reported.

    A created record is recorded as the platform has it.
    """
    staged = folder / "staged.csv"
    with staged.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADINGS, *ROWS])
    sample = folder / "people.csv"
    sample.write_bytes((ROOT / "docs" / "samples" / sample.name).read_bytes())
    lines: dict[str, str] = {}
    with program.open_account(folder, {"content_types": 1}, builds_models=False) as account:
        account.run("pull")
        for path in (sample, staged):
            for again in ("", " again"):
                name = f"{path.name}{again}"
                rows = program.push_file(account, path)
                lines[f"{name} rows"] = str(len(rows))
                for row in rows:
                    lines[f"{name} row {row.number}"] = " ".join((row.outcome, *row.codes))
                    if row.outcome == "created":
                        found = account.request("GET", f"candidates/{row.id}")["data"]
                        kept = {key: value for key, value in found.items() if key in KEPT}
                        lines[f"{name} row {row.number} record"] = _one_line(kept)
    return lines


KEPT = {*HEADINGS, "mobile", "status", "available_from", "current_company"}
"""Recorded fields of a created record; ids and timestamps are random."""


NIGHTLY = {
    "jobs": 6, "candidates": 24, "companies": 4, "bookings": 8, "leads": 6, "content_types": 2,
    "content_items": 4,
}  # fmt: skip


def record_nightly(folder: Path) -> Record:
    """Run the nightly job for a small agency, and return the events by kind and asset."""
    with program.open_account(folder, NIGHTLY) as account:
        counts = Counter(" ".join(each) for each in program.run_nightly_job(account))
        published = program.count_published(account, "candidates")
    events = {key: str(counts[key]) for key in sorted(counts)}
    return events | {"published candidates": f"{published} of {NIGHTLY['candidates']}"}


PERSON = {
    "first_name": "Quenby",
    "last_name": "Zadornov",
    "email": "quenby.zadornov@people.example",
    "employment_type": "permanent",
    "mobile": "+44 7946 111222",
}
TRACES = ("quenby", "zadornov", "7946 111222", "7946111222")
"""Texts, in lower case, that no file may contain after the person was removed."""


def record_removal(folder: Path) -> Record:
    """Pull two versions of a person, remove the person, and return the files that still name them.

    The person was deleted on the platform. Another person's record must still be published.
    """
    with program.open_account(folder, {"content_types": 1, "candidates": 5}) as account:
        id = account.request("POST", "candidates", PERSON)["data"]["id"]
        account.run("pull")
        account.pass_days(1)
        account.request("PUT", f"candidates/{id}", {"city": "Zadornovsk"})
        account.run("pull")
        account.pass_days(1)
        account.request("DELETE", f"candidates/{id}")
        account.run("pull", "--accept-deletes")
        before = find_traces(account.data)
        program.remove_person(account, id)
        removed = find_traces(account.data)
        account.pass_days(1)
        account.run("pull")
        after = find_traces(account.data)
        published = program.count_published(account, "candidates")
    return {
        "files with the person before": " ".join(before),
        "files with the person": " ".join(removed) or "none",
        "files with the person after the next pull": " ".join(after) or "none",
        "published candidates": f"{published} of 5",
    }


def find_traces(folder: Path) -> list[str]:
    """Return the names of the files that contain a text of the person, in UTF-8 or UTF-16."""
    return sorted({path.name for path in folder.rglob("*") if path.is_file() and _is_traced(path)})


def _is_traced(path: Path) -> bool:
    content = path.read_bytes().lower()
    return any(text.encode(coding) in content for text in TRACES for coding in ENCODINGS)


ENCODINGS = ("utf-8", "utf-16-le")
