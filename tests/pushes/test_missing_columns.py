"""Columns that are missing."""

from __future__ import annotations

import csv
from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.support.command import call, variables

PEOPLE = (
    "first_name,last_name,email,employment_type\n"
    "Ann,Lee,ann@people.example,permanent\n"
    "Bo,Ray,bo@people.example,permanent\n"
)


def write_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_column_missing_for_creates_of_an_upsert_is_reported_once(tmp_path: Path) -> None:
    text = "email,city\nold@people.example,York\nann@b.example,Rome\nbo@b.example,Bonn\n"
    with Sandbox() as sandbox:
        body = {"first_name": "Al", "last_name": "Old", "email": "old@people.example"}
        sandbox.store.create("candidates", {**body, "employment_type": "permanent"})
        file = write_file(tmp_path, "rows.csv", text)
        words = ["push", "candidates", str(file), "--mode", "upsert", "--match", "email", "--apply"]
        done = call(words, variables(sandbox.base_url, tmp_path, sandbox.key))
        (record,) = sandbox.store.records("candidates").values()

    assert "York" == record["city"]
    assert 3 == done.status
    lacking = "first_name, last_name, employment_type: 2 rows cannot create candidates."
    assert 1 == done.err.count(lacking), done.err
    assert 1 == done.err.count("first_name, last_name, employment_type")
    with (tmp_path / "rows.report.csv").open(encoding="utf-8-sig", newline="") as report:
        rows = [(each["_outcome"], each["_code"]) for each in csv.DictReader(report)]
    assert [("updated", ""), *[("invalid", "column_missing")] * 2] == rows
