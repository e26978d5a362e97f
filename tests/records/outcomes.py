"""Records of spreadsheets: each cell of the corpus, and the outcome of the rows of two files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.records import program
from tests.records.program import Account
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
    """Push the sample file and a staged one. Return rows by outcome, and the created records."""
    staged = folder / "staged.csv"
    with staged.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADINGS, *ROWS])
    sample = folder / "people.csv"
    sample.write_bytes((ROOT / "docs" / "samples" / sample.name).read_bytes())
    lines: dict[str, str] = {}
    with program.open_account(folder, {"content_types": 1}) as account:
        account.run("pull")
        for path in (sample, staged):
            for again in ("", " again"):
                before = {*account.ids("candidates")}
                name = f"{path.name}{again}"
                lines[f"{name} counts"] = _push(account, path)
                for id in sorted({*account.ids("candidates")} - before):
                    found = account.request("GET", f"candidates/{id}")["data"]
                    kept = {key: found[key] for key in HEADINGS}
                    lines[f"{name} created {found['last_name']}, {found['email']}"] = _one_line(
                        kept
                    )
    return lines


def _push(account: Account, path: Path) -> str:
    """Push a file with `--apply`, and return its rows by outcome."""
    text = account.run(
        *("push", "candidates", path, "--mode", "create", "--apply", "--json"), expects=(0, 1, 2, 3)
    )
    return _one_line({name: count for name, count in json.loads(text).items() if name in COUNTED})


COUNTED = ("rows", "created", "unchanged", "invalid", "duplicate", "warned", "held", "rejected")
