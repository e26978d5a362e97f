"""Everything with data of a person is found and erased, and other data stays."""

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
from connector.warehouse.published_file import list_tables, open_snapshot
from tests.privacy.populated_agency import (
    EMAIL,
    FIRST,
    LAST,
    NOW,
    TABLE,
    TRACES,
    WORKBOOK,
    copy_populated_agency,
    find_traces,
)


class ErasedAgency:
    """Agency before and after an erasure, with its preview and its result."""

    def __init__(self, folder: Path) -> None:
        self.agency = copy_populated_agency(folder, models="on")
        publish(self.agency.settings, now=lambda: NOW)
        self.held = list(find_traces(self.agency.folder))
        self.figures = sum_figures(self.agency.warehouse.published)
        self.preview: ErasureResult = erase(self.agency.settings, f" {EMAIL.upper()} ")
        assert self.preview.found is not None
        self.found: PersonLocations = self.preview.found
        self.still_held = list(find_traces(self.agency.folder))
        self.erased: ErasureResult = erase(
            self.agency.settings, EMAIL, applies=True, now=lambda: NOW
        )


@pytest.fixture(scope="module")
def erased_agency(tmp_path_factory: pytest.TempPathFactory) -> ErasedAgency:
    """Agency with one erased person."""
    return ErasedAgency(tmp_path_factory.mktemp("agency"))


def sum_figures(published: Path) -> Mapping[str, Any]:
    """Return the row count and the sum of each number column of every mart, except salaries."""
    found: dict[str, Any] = {}
    marts = [each for each in list_tables(published) if each.startswith("marts.")]
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


def test_whereis_lists_every_place_with_personal_data(erased_agency: ErasedAgency) -> None:
    places = {str(each): each.rows for each in erased_agency.found.places}

    agency = erased_agency.agency
    records = {(each.resource, each.id): each.fields for each in erased_agency.found.records}
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
    assert (erased_agency.agency.batch,) == erased_agency.found.batches


def test_a_preview_of_an_erasure_changes_nothing(erased_agency: ErasedAgency) -> None:
    assert () == erased_agency.preview.receipts
    assert erased_agency.held == erased_agency.still_held
    assert {each.split(": ")[1] for each in erased_agency.held} == {each.lower() for each in TRACES}


def test_an_erasure_removes_the_person_from_every_file(erased_agency: ErasedAgency) -> None:
    assert [] == list(find_traces(erased_agency.agency.folder))
    assert locate_person(erased_agency.agency.settings, EMAIL).is_empty
    # The page was made again, and is more than it was.
    assert "<svg" in (erased_agency.agency.folder / REPORT_FILE).read_text(encoding="utf-8")


def test_an_erasure_keeps_row_counts_and_sums_of_marts(erased_agency: ErasedAgency) -> None:
    assert erased_agency.figures == sum_figures(erased_agency.agency.warehouse.published)


def test_erased_records_stay_as_rows_without_personal_data(erased_agency: ErasedAgency) -> None:
    agency = erased_agency.agency
    left = agency.read_record("candidates", agency.id)
    marked = agency.query_work_file("SELECT resource, erased_at FROM sync.erased ORDER BY ALL")

    assert {"id", "status", "source", "created_at", "updated_at", "industry"} <= left.keys()
    assert not {"first_name", "email", "phone", "expected_salary", "nickname"} & left.keys()
    assert 3 == len(
        agency.query_work_file(f"SELECT 1 FROM history.candidates WHERE id = '{agency.id}'")
    )
    assert {"bookings", "candidates", "companies"} == {resource for resource, _ in marked}
    assert {NOW} == {at for _, at in marked}
    assert "office@firm.example" == agency.read_record("companies", agency.company)["email"]


def test_the_journal_keeps_the_outcome_of_pushed_rows(erased_agency: ErasedAgency) -> None:
    rows = erased_agency.agency.query_work_file(
        "SELECT number, state, code, record_id FROM push.rows ORDER BY 1"
    )
    bodies = erased_agency.agency.query_work_file(
        "SELECT number, body::VARCHAR FROM push.attempts ORDER BY 1"
    )

    assert [
        (2, "applied", "", erased_agency.agency.id),
        (3, "applied", "", erased_agency.agency.id),
        (4, "invalid", "email_format", None),
        (5, "invalid", "person_erased", erased_agency.agency.id),
    ] == rows
    name = {"first_name": "[erased]", "last_name": "[erased]", "email": "[erased]"}
    assert [
        {**name, "employment_type": "permanent", "source": "fair"},
        {"phone": "[erased]", "source": "walk-in"},
    ] == [json.loads(body) for _, body in bodies]


def test_an_erasure_deletes_rows_of_csv_files_and_complete_workbooks(
    erased_agency: ErasedAgency,
) -> None:
    lines = erased_agency.agency.table.read_bytes().decode("utf-8-sig").splitlines(keepends=True)
    (receipt,) = erased_agency.erased.receipts

    assert 2 == len(lines)
    assert "bob@mail.example,Bob Old,2,created,,,,b-1\r\n" == lines[1]
    assert not erased_agency.agency.workbook.exists()
    assert (WORKBOOK,) == receipt.whole_files == erased_agency.found.whole_files
    assert (
        f"Files that were deleted completely, with rows of others:\n  {WORKBOOK}\n"
        in receipt.as_text()
    )


def test_mentions_in_texts_of_others_are_listed_and_kept(tmp_path: Path) -> None:
    agency = copy_populated_agency(tmp_path)
    notes = agency.load_mention()
    mention = Mention("landing.candidates", agency.other, "notes")

    assert (mention,) == locate_person(agency.settings, EMAIL).mentions
    erased = erase(agency.settings, EMAIL, applies=True, now=lambda: NOW)

    (receipt,) = erased.receipts
    assert notes == agency.read_record("candidates", agency.other)["notes"]
    assert (mention,) == receipt.mentions
    assert f"landing.candidates {agency.other}: notes\n" in receipt.as_text()
    assert () == receipt.left
    assert 3 == erased.exit_status


def test_whereis_finds_a_person_by_name(tmp_path: Path) -> None:
    agency = copy_populated_agency(tmp_path)
    agency.load_mention()

    for name in (f"{FIRST} {LAST}", f" {FIRST.upper()}  {LAST.lower()}", LAST):
        found = locate_person(agency.settings, name)

        assert ("candidates", agency.id) in {(each.resource, each.id) for each in found.records}
        assert Mention("landing.candidates", agency.other, "notes") in found.mentions
    assert locate_person(agency.settings, "Nobody Known").is_empty


def test_the_receipt_of_an_erasure_contains_no_personal_data(erased_agency: ErasedAgency) -> None:
    (receipt,) = erased_agency.erased.receipts
    (path,) = erased_agency.erased.receipt_files
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))

    assert () == receipt.left
    assert (
        f"The file [erased] of the push {erased_agency.agency.batch} and its report are outside the"
        " account's folder: delete the person's rows there.",
    ) == receipt.by_hand
    assert 3 == erased_agency.erased.exit_status
    assert receipt.as_json() == kept
    assert erased_agency.found.places == receipt.removed
    assert {"id", "email", "phone", "profile"} == {each.kind for each in receipt.hashes}
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o600 == stat.S_IMODE((erased_agency.agency.folder / "suppression.key").stat().st_mode)
    assert [] == [each for each in TRACES if each.lower() in path.read_text().lower()]
