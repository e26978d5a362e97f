"""What an earlier version's erasure overwrote of others is found, said, and read again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connector.catalog import CATALOG
from connector.catalog.resource import Resource
from connector.cli import main
from connector.operations.doctor import upkeep
from connector.operations.verify import verify
from connector.privacy.erase import erase
from connector.privacy.harm import harmed
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings.layers import RECEIPTS_FOLDER
from connector.settings.model import Settings
from connector.suppression.identifiers import Kind, make_key, token
from connector.suppression.listed import Suppressed
from connector.warehouse.duckdb_file import opened
from tests.pulls.landed import pulled, settings_of

COUNTS = {"jobs": 2, "candidates": 5, "companies": 2, "bookings": 4, "leads": 3}
TITLE = "UX/UI Designer"
OLD = datetime.now(UTC) + timedelta(days=-2)


class Harmed:
    """A sandbox that was pulled, and then erased from by an earlier version: what it left of others
    is put into the file by hand, with its receipt.
    """

    def __init__(self, sandbox: Sandbox, folder: Path, passed: list[timedelta]) -> None:
        self.sandbox, self.folder = sandbox, folder
        self.settings: Settings = settings_of(sandbox, folder)
        ids = list(sandbox.store.records("candidates"))
        self.one, self.named, self.plain = ids[:3]
        (self.company, newest, *_) = sandbox.store.records("companies")
        sandbox.store.update("candidates", self.one, {"skills": TITLE, "notes": f"is a {TITLE}"})
        sandbox.store.update("candidates", self.named, {"notes": "Ask Gone <gone@x.example>."})
        sandbox.store.update("candidates", self.plain, {"notes": "see gone@x.example"})
        sandbox.store.update("companies", self.company, {"legal_name": TITLE})
        # A pull always looks at the newest.
        sandbox.store.update("companies", newest, {"legal_name": "Newest Ltd"})
        sandbox.store.update(
            "leads",
            next(iter(sandbox.store.records("leads"))),
            {"email": "gone@x.example", "first_name": "Gone", "last_name": "Away"},
        )
        pulled(sandbox, folder)
        # What was written shortly before a pull is read again by the next one.
        passed[0] += timedelta(hours=12)
        pulled(sandbox, folder)
        self._overwrite("candidates", self.one, TITLE)
        self._overwrite("candidates", self.named, "gone@x.example")
        self._overwrite("companies", self.company, TITLE)
        place = self.settings.folder / RECEIPTS_FOLDER
        place.mkdir()
        at = OLD.isoformat()
        receipt = {"erasure": "erasure-old", "begun_at": at, "ended_at": at, "hashes": []}
        (place / "erasure-old.json").write_text(json.dumps(receipt), encoding="utf-8")

    def _overwrite(self, resource: str, id: str, text: str) -> None:
        with opened(self.settings.folder / "work.duckdb") as connection:
            for name in (f"landing.{resource}", f"history.{resource}"):
                columns = [
                    column
                    for column, type in connection.execute(
                        f"SELECT column_name, column_type FROM (DESCRIBE {name})"
                    ).fetchall()
                    if type in ("VARCHAR", "JSON")
                ]
                sets = ", ".join(
                    f"{c} = replace({c}::VARCHAR, '{text}', '[erased]')" for c in columns
                )
                connection.execute(f"UPDATE {name} SET {sets} WHERE id = '{id}'")

    def texts(self, resource: str, id: str, column: str) -> list[str]:
        """What the landed row and the versions of a record show."""
        with opened(self.settings.folder / "work.duckdb") as connection:
            return [
                text
                for (text,) in connection.execute(
                    f"SELECT {column} FROM landing.{resource} WHERE id = '{id}' UNION ALL "
                    f"(SELECT {column} FROM history.{resource} WHERE id = '{id}' ORDER BY _version)"
                ).fetchall()
            ]

    def call(self, *arguments: str) -> Result:
        """Call the command on the agency."""
        environ = {
            "CONNECTOR_BASE_URL": self.sandbox.base_url,
            "CONNECTOR_API_KEY": self.sandbox.key,
            "CONNECTOR_DATA_DIR": str(self.settings.folder),
            "CONNECTOR_MODELS": "off",
        }
        return CliRunner().invoke(main, list(arguments), env=environ)

    def said(self) -> tuple[str, str | None]:
        """What the doctor says of erasures, and what to do."""
        (check,) = (
            each for each in upkeep(self.settings, {}, datetime.now(UTC)) if each.name == "erasures"
        )
        return check.found, check.action


@pytest.fixture
def agency(tmp_path: Path) -> Iterator[Harmed]:
    """The agency with the harm in it."""
    passed = [timedelta(days=-3)]
    with Sandbox(counts=COUNTS, clock=lambda: datetime.now(UTC) + passed[0]) as sandbox:
        made = Harmed(sandbox, tmp_path, passed)
        passed[0] = timedelta()
        yield made


def test_harm_is_found_and_read_again(agency: Harmed) -> None:
    pulled(agency.sandbox, agency.folder)
    found = harmed(agency.settings)
    report = asyncio.run(verify(agency.settings))
    said, action = agency.said()

    assert {
        "candidates": tuple(sorted((agency.one, agency.named))),
        "companies": (agency.company,),
    } == found
    assert {"candidates": 2, "companies": 1} == dict(report.harmed)
    assert 3 == report.exit_status
    assert said.endswith("candidates 2, companies 1")
    assert "--reread-erased" in (action or "")

    agency.sandbox.store.update("companies", agency.company, {"legal_name": "was [erased] here"})
    done = asyncio.run(pull(agency.settings, ids=found))

    assert (0, 3) == (done.exit_status, done.requests)
    assert [TITLE, "[erased]", TITLE] == agency.texts("candidates", agency.one, "skills")
    assert f"is a {TITLE}" == agency.texts("candidates", agency.one, "notes")[0]
    assert "was [erased] here" == agency.texts("companies", agency.company, "legal_name")[0]
    assert {} == harmed(agency.settings)
    assert asyncio.run(verify(agency.settings)).is_equal
    assert ("none was cut off, and none has overwritten others", None) == agency.said()


def test_rightly_erased_is_reported_once(agency: Harmed) -> None:
    erase(agency.settings, "gone@x.example", applies=True)

    assert {agency.one, agency.named} == set(harmed(agency.settings)["candidates"])
    done = agency.call("pull", "--reread-erased")

    assert 0 == done.exit_code, done.output
    assert "nothing is to be read" in agency.call("pull", "--reread-erased").stderr
    assert 2 == agency.call("pull", "--reread-erased", "--full").exit_code
    assert {} == harmed(agency.settings)
    assert "Ask Gone <[erased]>." == agency.texts("candidates", agency.named, "notes")[0]
    assert "see [erased]" == agency.texts("candidates", agency.plain, "notes")[0]


def test_number_of_an_erased_person_takes_nobody_out(agency: Harmed) -> None:
    number = "+44 20 7946 0123"
    key = make_key(agency.settings.folder)
    kind: Kind = "phone"
    list_ = Suppressed(key, frozenset((token(key, kind, number),)))
    store = agency.sandbox.store
    person = {
        "first_name": "New",
        "last_name": "One",
        "email": "new@x.example",
        "phone": "020 7946 0123",
        "notes": "My number is 020 7946 0123.",
        "source": number,
    }
    store.update("candidates", agency.one, person)
    store.update("candidates", agency.plain, {"notes": f"call {number}"})
    store.update("companies", agency.company, {"phone": number})
    for resource, id in (("candidates", agency.one), ("companies", agency.company)):
        record = _record(agency, resource, id)
        assert record is list_.strip(record)

    assert "call [erased]" == list_.strip(_record(agency, "candidates", agency.plain)).raw["notes"]


def _record(agency: Harmed, resource: str, id: str) -> Resource:
    return CATALOG[resource].record(dict(agency.sandbox.store.records(resource)[id]))
