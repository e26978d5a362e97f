"""Files that reference each other are previewed as they will be applied."""

from __future__ import annotations

import asyncio
import csv
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import UnknownName
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushReport, PushRunOptions, push
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import Pusher
from tests.support.agency import settings_at
from tests.support.command import call, variables

FIRMS = "name,email\nWren & Co,hi@wren.example\nTwin,a@twin.example\nTwin,b@twin.example\n"
JOBS = (
    "title,location,employment_type,description,reference_code,company_name\n"
    "Welder,Leeds,permanent,Welds,W-1,wren & co\n"
    "Painter,Leeds,permanent,Paints,P-1,Twin\n"
    "Joiner,Leeds,permanent,Joins,J-1,Nobody Ltd\n"
)
PEOPLE = (
    "first_name,last_name,email,employment_type\n"
    "Ann,Lee,ann@people.example,permanent\n"
    "Bo,Ray,bo@people.example,permanent\n"
)
LATER = (
    "first_name,last_name,email,employment_type,city\n"
    "Ann,Lee,ANN@people.example,permanent,York\n"
    "Cy,Orr,cy@people.example,permanent,Bath\n"
)
BOOKINGS = (
    "booking_type,start_datetime,end_datetime,candidate_email,job_reference_code,company_email\n"
    "interview,2026-01-05T10:00:00Z,2026-01-05T11:00:00Z,bo@people.example,W-1,hi@wren.example\n"
)


def write_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def map_results(reports: list[PushReport]) -> dict[str, list[tuple[str, str | None]]]:
    """Return outcome and code of each row by file name, in the order of the push."""
    return {
        each.preview.push_file.path.stem: [(row.outcome, row.code) for row in each.results]
        for each in reports
    }


@pytest.mark.slow
def test_a_preview_of_several_files_expects_records_of_earlier_files(tmp_path: Path) -> None:
    files = [
        PushFile("bookings", write_file(tmp_path, "bookings.csv", BOOKINGS), "create"),
        PushFile("jobs", write_file(tmp_path, "jobs.csv", JOBS), "create"),
        PushFile("candidates", write_file(tmp_path, "people.csv", PEOPLE), "create"),
        PushFile(
            "candidates", write_file(tmp_path, "later.csv", LATER), "upsert", match=("email",)
        ),
        PushFile("candidates", write_file(tmp_path, "twice.csv", PEOPLE), "create"),
        PushFile("companies", write_file(tmp_path, "firms.csv", FIRMS), "create"),
    ]
    with Sandbox(counts={"jobs": 1}) as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        foreseen = asyncio.run(push(pusher.settings, files, PushRunOptions()))
        assert [] == sandbox.log
        others = [each for each in files if each.path.stem not in ("later", "twice")]
        manner = PushRunOptions(applies=True, pulls=False, reports=False)
        done = asyncio.run(push(pusher.settings, others, manner))
        made = {name: sandbox.store.records(name) for name in ("companies", "jobs", "bookings")}

    expected: dict[str, list[tuple[str, str | None]]] = {
        "firms": [("create", None)] * 3,
        "jobs": [
            ("create", None), ("invalid", "reference_ambiguous"), ("invalid", "reference_unknown"),
        ],
        "people": [("create", None)] * 2,
        "later": [("update", None), ("create", None)],
        "twice": [("duplicate", "duplicate_in_warehouse")] * 2,
        "bookings": [("create", None)],
    }  # fmt: skip
    assert expected == map_results(foreseen)
    assert list(expected) == list(map_results(foreseen))
    assert {None} == {row.record_id for each in foreseen for row in each.results}
    # The changes are in the JSON output and in the report.
    changes = foreseen[3].as_json()["changes"]
    assert [{"row": 2, "field": "city", "now": None, "then": "York"}] == changes[:1]
    assert {"row": 3, "field": "first_name", "now": None, "then": "Cy"} in changes
    assert foreseen[3].file is not None
    assert "city: (empty) -> York" in foreseen[3].file.read_text(encoding="utf-8-sig")
    assert {
        name: [("created" if outcome == "create" else outcome, code) for outcome, code in rows]
        for name, rows in expected.items()
        if name not in ("later", "twice")
    } == map_results(done)
    (booking,) = made["bookings"].values()
    assert booking["company_id"] in made["companies"]
    assert booking["job_id"] in made["jobs"]


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
    (report,) = asyncio.run(push(settings, [push_file], PushRunOptions()))
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


@pytest.mark.parametrize("pulls", [True, False])
def test_a_push_waits_for_a_running_pull_or_skips_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pulls: bool
) -> None:
    monkeypatch.setattr(sys.modules["connector.pushes.push"], "PULL_CHECK_SECONDS", 0.0)
    messages: list[str] = []
    with Sandbox() as sandbox:
        settings = Pusher(sandbox, tmp_path).settings
        file = PushFile("candidates", write_file(tmp_path, "people.csv", PEOPLE), "create")
        with Ledger(settings.folder) as ledger:
            now = datetime.now(UTC)
            ledger.take_lease("pull", LeaseOwner.of_this_process("other", "pull"), now)

            def waits(why: str) -> None:
                messages.append(why)
                assert [] == sandbox.log
                asyncio.get_running_loop().call_later(0.05, ledger.release_lease, "pull", "other")

            manner = PushRunOptions(applies=True, pulls=pulls, reports=False)
            reports = asyncio.run(push(settings, [file], manner, on_wait=waits))
            assert ([] if pulls else ["pull"]) == [each.name for each in ledger.leases()]

    assert [("created", None)] * 2 == map_results(reports)["people"]
    assert int(pulls) == len(messages)
    assert all("run other" in each for each in messages)


def test_a_push_of_a_read_only_resource_is_rejected(tmp_path: Path) -> None:
    settings = settings_at("http://127.0.0.1:9", tmp_path, "nobody")
    push_file = PushFile("content_types", tmp_path / "absent.csv", "create")
    with pytest.raises(UnknownName, match="content_types"):
        asyncio.run(push(settings, [push_file], PushRunOptions()))
