"""Everything that holds a person is found, and after the erasure nothing does; the rest stays."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connector.ledger.person import Mention
from connector.privacy.erase import ErasureResult, erase
from connector.privacy.person_locations import locate_person
from connector.privacy.receipt import PersonLocations
from connector.publishing.publication import publish
from connector.report.page import REPORT_FILE
from connector.warehouse.published_file import open_snapshot, tables
from tests.privacy.populated_agency import (
    EMAIL,
    FIRST,
    LAST,
    NOW,
    TABLE,
    TRACES,
    WORKBOOK,
    populated_agency,
    traces,
)


class ErasedAgency:
    """The agency as it was, what was found, and what came of erasing the person."""

    def __init__(self, folder: Path) -> None:
        self.agency = populated_agency(folder, models="on")
        publish(self.agency.settings, now=lambda: NOW)
        self.held = list(traces(self.agency.folder))
        self.figures = figures(self.agency.warehouse.published)
        self.preview: ErasureResult = erase(self.agency.settings, f" {EMAIL.upper()} ")
        assert self.preview.found is not None
        self.found: PersonLocations = self.preview.found
        self.still_held = list(traces(self.agency.folder))
        self.erased: ErasureResult = erase(
            self.agency.settings, EMAIL, applies=True, now=lambda: NOW
        )


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> ErasedAgency:
    """An agency whose person was erased."""
    return ErasedAgency(tmp_path_factory.mktemp("agency"))


def figures(published: Path) -> Mapping[str, Any]:
    """Of every mart its rows and the sums of its figures, but for what candidates earn."""
    found: dict[str, Any] = {}
    marts = [each for each in tables(published) if each.startswith("marts.")]
    with open_snapshot(published) as ask:
        for table in marts:
            columns = ask(f"SELECT column_name, column_type FROM (DESCRIBE {table})").rows
            sums = [
                name
                for name, type in columns
                if type.startswith(("DECIMAL", "DOUBLE", "BIGINT", "INTEGER", "HUGEINT", "BOOLEAN"))
                and (table, name) not in PAY
            ]
            shown = ", ".join(f'sum("{name}"::DOUBLE)' for name in sums)
            answer = ask(f"SELECT count(*), {shown or 'NULL'} FROM {table}").rows
            found[table] = dict(zip(("rows", *sums), answer[0], strict=True))
    return found


PAY = frozenset(
    (("marts.dim_candidates", "expected_salary"), ("marts.dim_candidates", "expected_day_rate"))
)


def test_whereis_lists_every_place(erased: ErasedAgency) -> None:
    places = {str(each): each.rows for each in erased.found.places}

    agency = erased.agency
    records = {(each.resource, each.id): each.fields for each in erased.found.records}
    contact = ("email", "name", "phone", "title")
    assert {"first_name", "email", "phone", "nickname", "notes"} <= set(
        records["candidates", agency.id]
    )
    assert (
        tuple(f"primary_contact_{each}" for each in contact)
        == (records["companies", agency.company])
    )
    assert ["bookings", "bookings", "candidates", "companies"] == [name for name, _ in records]
    assert {
        "work.duckdb landing.candidates": 1,
        "work.duckdb history.candidates": 3,
        "work.duckdb landing.companies": 1,
        "work.duckdb sync.events": 1,
        "ledger.sqlite push_rows": 3,
        "ledger.sqlite push_attempts": 2,
        "ledger.sqlite push_before": 1,
        "ledger.sqlite push_problems": 1,
        "ledger.sqlite push_batches": 1,
        TABLE: 1,
        WORKBOOK: 1,
        REPORT_FILE: 1,
        "work.duckdb.damaged-20260901T090000Z-1.wal": 1,
    }.items() <= places.items()
    assert {"work.duckdb landing.bookings", "recruitment.duckdb marts.dim_candidates"} <= set(
        places
    )
    assert (erased.agency.batch,) == erased.found.batches


def test_preview_changes_nothing(erased: ErasedAgency) -> None:
    assert () == erased.preview.receipts
    assert erased.held == erased.still_held
    assert {each.split(": ")[1] for each in erased.held} == {each.lower() for each in TRACES}


def test_no_byte_is_left(erased: ErasedAgency) -> None:
    assert [] == list(traces(erased.agency.folder))
    assert locate_person(erased.agency.settings, EMAIL).is_empty
    # The page was made again, and is more than it was.
    assert "<svg" in (erased.agency.folder / REPORT_FILE).read_text(encoding="utf-8")


def test_statistics_stay(erased: ErasedAgency) -> None:
    """Every mart has the rows and the sums that it had, but for what the person earned."""
    assert erased.figures == figures(erased.agency.warehouse.published)


def test_rows_stay_as_tombstones(erased: ErasedAgency) -> None:
    agency = erased.agency
    left = agency.record("candidates", agency.id)
    marked = agency.rows("SELECT resource, erased_at FROM sync.erased ORDER BY ALL")

    assert {"id", "status", "source", "created_at", "updated_at", "industry"} <= left.keys()
    assert not {"first_name", "email", "phone", "expected_salary", "nickname"} & left.keys()
    assert 3 == len(agency.rows(f"SELECT 1 FROM history.candidates WHERE id = '{agency.id}'"))
    assert {"bookings", "candidates", "companies"} == {resource for resource, _ in marked}
    assert {NOW} == {at for _, at in marked}
    assert "office@firm.example" == agency.record("companies", agency.company)["email"]


def test_journal_keeps_its_outcomes(erased: ErasedAgency) -> None:
    rows = erased.agency.rows("SELECT number, state, code, record_id FROM push.rows ORDER BY 1")
    bodies = erased.agency.rows("SELECT number, body::VARCHAR FROM push.attempts ORDER BY 1")

    assert [
        (2, "applied", "", erased.agency.id),
        (3, "applied", "", erased.agency.id),
        (4, "invalid", "email_format", None),
        (5, "invalid", "person_erased", erased.agency.id),
    ] == rows
    name = {"first_name": "[erased]", "last_name": "[erased]", "email": "[erased]"}
    assert [
        {**name, "employment_type": "permanent", "source": "fair"},
        {"phone": "[erased]", "source": "walk-in"},
    ] == [json.loads(body) for _, body in bodies]


def test_a_csv_loses_the_row_and_a_workbook_goes_whole(erased: ErasedAgency) -> None:
    lines = erased.agency.table.read_bytes().decode("utf-8-sig").splitlines(keepends=True)
    (receipt,) = erased.erased.receipts

    assert 2 == len(lines)
    assert "bob@mail.example,Bob Old,2,created,,,,b-1\r\n" == lines[1]
    assert not erased.agency.workbook.exists()
    assert (WORKBOOK,) == receipt.whole_files == erased.found.whole_files
    assert (
        f"Files that were deleted completely, with rows of others:\n  {WORKBOOK}\n"
        in receipt.as_text()
    )


def test_mention_in_a_text_of_somebody_else_is_listed(tmp_path: Path) -> None:
    agency = populated_agency(tmp_path)
    notes = agency.mention()
    mention = Mention("landing.candidates", agency.other, "notes")

    assert (mention,) == locate_person(agency.settings, EMAIL).mentions
    erased = erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = erased.receipts
    assert notes == agency.record("candidates", agency.other)["notes"]
    assert (mention,) == receipt.mentions
    assert f"landing.candidates {agency.other}: notes\n" in receipt.as_text()
    assert () == receipt.left
    assert 3 == erased.exit_status


def test_whereis_finds_a_person_by_name(tmp_path: Path) -> None:
    agency = populated_agency(tmp_path)
    agency.mention()

    for name in (f"{FIRST} {LAST}", f" {FIRST.upper()}  {LAST.lower()}", LAST):
        found = locate_person(agency.settings, name)

        assert ("candidates", agency.id) in {(each.resource, each.id) for each in found.records}
        assert Mention("landing.candidates", agency.other, "notes") in found.mentions
    assert locate_person(agency.settings, "Nobody Known").is_empty


def test_receipt_tells_nothing_of_the_person(erased: ErasedAgency) -> None:
    (receipt,) = erased.erased.receipts
    (path,) = erased.erased.kept
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))

    assert () == receipt.left
    assert (
        f"The file [erased] of the push {erased.agency.batch} and its report are outside the"
        " account's folder: delete the person's rows there.",
    ) == receipt.by_hand
    assert 3 == erased.erased.exit_status
    assert receipt.as_json() == kept
    assert erased.found.places == receipt.removed
    assert {"id", "email", "phone", "profile"} == {each.kind for each in receipt.hashes}
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o600 == stat.S_IMODE((erased.agency.folder / "suppression.key").stat().st_mode)
    assert [] == [each for each in TRACES if each.lower() in path.read_text().lower()]
