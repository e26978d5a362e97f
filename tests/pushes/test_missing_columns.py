"""Columns that are missing, and pushes that wait for a pull."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from connector.errors import UnknownName
from connector.pushes.preview import PushFile
from connector.pushes.report import PushRunOptions, push
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_at
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


@pytest.mark.parametrize(
    ("resource", "text", "named"),
    [
        ("candidates", "Forename,Surname,Mood\nAnn,Lee,good\n", ("email, employment_type", "Mood")),
        (
            "leads",
            "email,lead_status_id\na@b.example,9f0c0f6e-6a2e-4c1e-9a57-1f2d3c4b5a69\n",
            ("first_name",),
        ),
    ],
)
def test_a_missing_required_column_is_reported_once(
    tmp_path: Path, resource: str, text: str, named: tuple[str, ...]
) -> None:
    settings = settings_at("http://127.0.0.1:9", tmp_path, "nobody")
    push_file = PushFile(resource, write_file(tmp_path, "rows.csv", text), "create")
    report = asyncio.run(push(settings, push_file, PushRunOptions()))
    columns = report.preview.columns
    assert ({"invalid": 1}, {"column_missing": 1}) == (report.counts, dict(report.summary.codes))
    messages = [", ".join(columns.missing), *(each.heading for each in columns.unmapped)]
    assert [] == [each for each in named if not any(each in text for text in messages)], messages


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


def test_a_push_of_a_read_only_resource_is_rejected(tmp_path: Path) -> None:
    settings = settings_at("http://127.0.0.1:9", tmp_path, "nobody")
    push_file = PushFile("content_types", tmp_path / "absent.csv", "create")
    with pytest.raises(UnknownName, match="content_types"):
        asyncio.run(push(settings, push_file, PushRunOptions()))
