"""Pulls and spreadsheets do not bring an erased person back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli.pull import failure_lines
from connector.privacy.erase import erase, remove_suppression
from connector.privacy.person_locations import locate_person
from connector.pulls.run import pull
from connector.pushes.dry_run import PushFile
from connector.pushes.push import PushReport
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.duckdb_file import open_file
from tests.privacy.populated_agency import find_traces
from tests.support.agency import SandboxAccount

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


class ErasedPersonAccount(SandboxAccount):
    """Account that pulled a person and erased them. `id` is their candidate on the server."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        super().__init__(sandbox, folder)
        self.id = str(sandbox.store.create("candidates", PERSON).record["id"])
        self.pull()
        self.held = list(find_traces(self.data, EMAIL, PHONE, NAME))
        erase(self.settings, EMAIL, applies=True)

    def read_loaded_row(self, resource: str, id: str) -> dict[str, Any]:
        """Return the row of a record in the landing."""
        with open_file(self.data / "work.duckdb") as connection:
            sql = f"SELECT * FROM landing.{resource} WHERE id = '{id}'"
            (row,) = connection.execute(sql).to_arrow_table().to_pylist()
        return dict(row)

    def push_row(self, **row: str) -> PushReport:
        """Push a file with this row: an update if it has an id, else a create."""
        path = self.write_csv("people.csv", [row])
        file = PushFile("candidates", path, "update" if "id" in row else "create")
        return self.push(file, pulls=False)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedPersonAccount]:
    """Account with an erased person. Each test continues from the state of the previous ones."""
    with Sandbox(counts=COUNTS) as sandbox:
        yield ErasedPersonAccount(sandbox, tmp_path_factory.mktemp("account"))


@pytest.mark.slow
def test_a_pull_after_an_erasure_finds_no_changes(account: ErasedPersonAccount) -> None:
    report = account.pull()

    assert [] != account.held
    assert [] == list(find_traces(account.data, EMAIL, PHONE, NAME))
    assert 0 == sum(each.new + each.changed for each in report.resources.values())
    assert [] == list(failure_lines(report))


def test_a_changed_record_of_an_erased_person_is_loaded_without_personal_data(
    account: ErasedPersonAccount,
) -> None:
    account.sandbox.store.update("candidates", account.id, {"status": "screening", "mobile": PHONE})

    report = account.pull("candidates")

    row = account.read_loaded_row("candidates", account.id)
    assert "screening" == row["status"]
    assert "fair" == row["source"]
    assert row["email"] is row["mobile"] is row["last_name"] is None
    assert {"suppressed": 1} == report.resources["candidates"].anomalies
    (line,) = failure_lines(report)
    assert line.startswith("candidates: 1 record of erased people")
    assert [] == list(find_traces(account.data, EMAIL, PHONE, NAME))


def test_a_new_record_with_an_erased_email_is_loaded_without_personal_data(
    account: ErasedPersonAccount,
) -> None:
    lead = {**PERSON, "email": EMAIL.upper(), "lead_status_id": LEAD_STATUSES[0]}
    del lead["employment_type"]
    id = str(account.sandbox.store.create("leads", lead).record["id"])

    report = account.pull("leads")

    assert account.read_loaded_row("leads", id)["email"] is None
    assert {"suppressed"} == report.resources["leads"].anomalies.keys()
    assert [] == list(find_traces(account.data, EMAIL, PHONE, NAME))


@pytest.mark.parametrize(
    "row",
    [
        {"email": EMAIL.upper(), "first_name": "O", "last_name": "Z"},
        {"email": "o@mail.example", "first_name": "O", "last_name": "Z", "phone": "02079460958"},
        {"email": "not an address", "first_name": "O", "last_name": "Z", "notes": f"is {EMAIL}"},
    ],
    ids=["address", "number", "in a text"],
)
def test_a_row_with_an_erased_email_is_rejected(
    account: ErasedPersonAccount, row: dict[str, str]
) -> None:
    before = account.emails()

    report = account.push_row(**row, employment_type="permanent")

    (result,) = report.results
    assert ("invalid", ["person_erased"]) == (result.outcome, [e.code for e in result.problems])
    assert before == account.emails()
    assert [] == list(find_traces(account.data, EMAIL, PHONE, NAME))


def test_a_row_with_the_id_of_an_erased_person_is_rejected(account: ErasedPersonAccount) -> None:
    (result,) = account.push_row(id=account.id, current_job_title="Pilot").results

    assert ["person_erased"] == [each.code for each in result.problems]


def test_a_released_person_is_loaded_and_pushed_again(account: ErasedPersonAccount) -> None:
    assert 3 == remove_suppression(account.settings, EMAIL)
    assert 0 == remove_suppression(account.settings, EMAIL)

    report = account.push_row(id=account.id, current_job_title="Pilot")
    asyncio.run(pull(account.settings, ["candidates"], ids=[account.id]))

    assert ["updated"] == [each.outcome for each in report.results]
    assert EMAIL == account.read_loaded_row("candidates", account.id)["email"]
    assert [account.id] == [each.id for each in locate_person(account.settings, EMAIL).records]
