"""Whoever was erased does not come back unnoticed: neither by a pull nor by a spreadsheet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli.pull import failure_lines
from connector.privacy.erase import erase, release
from connector.privacy.person_locations import locate_person
from connector.pulls.outcome import PullReport
from connector.pulls.run import pull
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushReport, PushRunOptions, push
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.duckdb_file import open_file
from tests.privacy.populated_agency import traces
from tests.support.agency import pulled, settings_of

COUNTS = {
    "jobs": 2,
    "candidates": 5,
    "companies": 2,
    "bookings": 4,
    "leads": 3,
    "content_types": 1,
    "content_items": 1,
}
EMAIL, PHONE, NAME = "Olwen.Zz@mail.example", "+44 20 7946 0958", "Zzyzxworth"
PERSON = {
    "first_name": "Olwen",
    "last_name": NAME,
    "email": EMAIL,
    "phone": PHONE,
    "employment_type": "permanent",
    "source": "fair",
}


class Agency:
    """A sandbox with a person in it who was pulled, and then erased."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.settings = settings_of(sandbox, folder)
        self.data = self.settings.folder
        self.id = str(sandbox.store.create("candidates", PERSON).record["id"])
        pulled(sandbox, folder)
        self.held = list(traces(self.data, EMAIL, PHONE, NAME))
        erase(self.settings, EMAIL, applies=True)

    def pull(self, *resources: str) -> PullReport:
        """Pull once more."""
        return pulled(self.sandbox, self.folder, *resources)

    def landed(self, resource: str, id: str) -> dict[str, Any]:
        """The landed row of a record."""
        with open_file(self.data / "work.duckdb") as connection:
            sql = f"SELECT * FROM landing.{resource} WHERE id = '{id}'"
            (row,) = connection.execute(sql).to_arrow_table().to_pylist()
        return dict(row)

    def push(self, **row: str) -> PushReport:
        """Push a table of one row, and apply it."""
        path = self.folder / "people.csv"
        path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n", encoding="utf-8")
        asked = PushFile("candidates", path, "update" if "id" in row else "create")
        manner = PushRunOptions(applies=True, pulls=False)
        (report,) = asyncio.run(push(self.settings, [asked], manner))
        return report

    def emails(self) -> list[str]:
        """The addresses of all candidates on the platform."""
        return [str(each["email"]) for each in self.sandbox.store.records("candidates").values()]


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agency]:
    """The agency; what the tests do to it they tell each other in their order."""
    with Sandbox(counts=COUNTS) as sandbox:
        yield Agency(sandbox, tmp_path_factory.mktemp("agency"))


@pytest.mark.slow
def test_quiet_pull_finds_nothing_new(agency: Agency) -> None:
    report = agency.pull()

    assert [] != agency.held
    assert [] == list(traces(agency.data, EMAIL, PHONE, NAME))
    assert 0 == sum(each.new + each.changed for each in report.resources.values())
    assert [] == list(failure_lines(report))


def test_changed_record_lands_stripped(agency: Agency) -> None:
    agency.sandbox.store.update("candidates", agency.id, {"status": "screening", "mobile": PHONE})

    report = agency.pull("candidates")

    row = agency.landed("candidates", agency.id)
    assert "screening" == row["status"]
    assert "fair" == row["source"]
    assert row["email"] is row["mobile"] is row["last_name"] is None
    assert {"suppressed": 1} == report.resources["candidates"].anomalies
    (told,) = failure_lines(report)
    assert told.startswith("candidates: 1 record of erased people")
    assert [] == list(traces(agency.data, EMAIL, PHONE, NAME))


def test_new_record_with_the_address_lands_stripped(agency: Agency) -> None:
    lead = {**PERSON, "email": EMAIL.upper(), "lead_status_id": LEAD_STATUSES[0]}
    del lead["employment_type"]
    id = str(agency.sandbox.store.create("leads", lead).record["id"])

    report = agency.pull("leads")

    assert agency.landed("leads", id)["email"] is None
    assert {"suppressed"} == report.resources["leads"].anomalies.keys()
    assert [] == list(traces(agency.data, EMAIL, PHONE, NAME))


@pytest.mark.parametrize(
    "row",
    [
        {"email": EMAIL.upper(), "first_name": "O", "last_name": "Z"},
        {"email": "o@mail.example", "first_name": "O", "last_name": "Z", "phone": "02079460958"},
        {"email": "not an address", "first_name": "O", "last_name": "Z", "notes": f"is {EMAIL}"},
    ],
    ids=["address", "number", "in a text"],
)
def test_row_is_refused(agency: Agency, row: dict[str, str]) -> None:
    before = agency.emails()

    report = agency.push(**row, employment_type="permanent")

    (result,) = report.results
    assert ("invalid", ["person_erased"]) == (result.outcome, [e.code for e in result.problems])
    assert before == agency.emails()
    assert [] == list(traces(agency.data, EMAIL, PHONE, NAME))


def test_row_with_the_id_is_refused(agency: Agency) -> None:
    (result,) = agency.push(id=agency.id, current_job_title="Pilot").results

    assert ["person_erased"] == [each.code for each in result.problems]


def test_release_lets_the_person_in_again(agency: Agency) -> None:
    assert 3 == release(agency.settings, EMAIL)
    assert 0 == release(agency.settings, EMAIL)

    report = agency.push(id=agency.id, current_job_title="Pilot")
    asyncio.run(pull(agency.settings, ["candidates"], ids=[agency.id]))

    assert ["updated"] == [each.outcome for each in report.results]
    assert EMAIL == agency.landed("candidates", agency.id)["email"]
    assert [agency.id] == [each.id for each in locate_person(agency.settings, EMAIL).records]
