"""Rows that make records: what they need, what waits, what is there twice."""

from __future__ import annotations

import pytest

from connector.errors import Misused, UnknownName
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import LandedRecord
from connector.spreadsheet.cells import CellOptions
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.matching import ClaimedKeys
from connector.spreadsheet.problems import PROBLEMS, SheetRow
from tests.spreadsheet.meaning.sheet import (
    CANDIDATE,
    DeclaredLanding,
    ValuesTable,
    aimed,
    checked,
    landing,
    problems,
    table,
)

JOB = {"title": "Nurse", "location": "Leeds", "employment_type": "interim", "description": "Care."}
BOOKING = {"booking_type": "internal", "start_datetime": "2026-05-04T09:30:00Z"}
RELATED = landing(
    candidates=[{"id": "c1", "email": "zoe@people.example"}],
    companies=[
        {"id": "k1", "name": "Wren & Co"},
        {"id": "k2", "name": "Twin"},
        {"id": "k3", "name": "twin"},
    ],
    jobs=[{"id": "j1", "reference_code": "00123", "title": "Nurse"}],
)


def test_good_row_becomes_a_task() -> None:
    born, kind = CellOptions(date_format="DD/MM/YYYY"), CellOptions(values={"Perm": "permanent"})
    decided = {"Born": ("date_of_birth", born), "Kind": ("employment_type", kind)}
    row = {**CANDIDATE, "rating": "4", "notes": " No idea ", "mobile": "", "Born": "03/04/1985"}
    row |= {"Kind": "perm"}
    del row["employment_type"]
    (found,) = checked(table(row), aimed(), saved=SavedMap("candidates", decided))
    task = found.task

    assert found.outcome is None
    assert task is not None
    values = {**CANDIDATE, "rating": 4, "notes": "No idea", "date_of_birth": "1985-04-03"}
    assert values == task.fields
    assert (2, "create", "candidates") == (task.number, task.operation, task.resource)
    assert {"email": "zoe@people.example"} == task.identity
    assert ({}, {}, None) == (task.afterwards, task.base, task.record_id)


def test_everything_wrong_with_a_row_is_said_at_once() -> None:
    wrong = {"last_name": "", "email": "anna", "employment_type": "freelance", "rating": "x"}
    found = checked(table({**CANDIDATE, **wrong}), aimed())

    assert [
        (2, "email", "email_format"),
        (2, "rating", "not_a_number"),
        (2, "employment_type", "value_not_accepted"),
        (2, "last_name", "required"),
    ] == problems(found)
    assert ("invalid", None) == (found[0].outcome, found[0].task)
    for each in found[0].problems:
        assert each.code in PROBLEMS
        assert each.fix is not None
        assert each.message.endswith(".")


def test_required_field_without_a_column_is_said_of_the_row() -> None:
    row = {name: cell for name, cell in CANDIDATE.items() if name != "employment_type"}
    constant = SavedMap("candidates", constants={"employment_type": "Interim"})

    assert [(2, None, "column_missing")] == problems(checked(table(row), aimed()))
    (found,) = checked(table(row), aimed(), saved=constant)
    assert found.task is not None
    assert "interim" == found.task.fields["employment_type"]


def test_what_create_refuses_and_update_accepts_follows_it() -> None:
    (candidate,) = checked(table({**CANDIDATE, "status": "Screening"}), aimed())
    draft, closed = checked(
        table({**JOB, "status": "draft"}, {**JOB, "title": "Cook", "status": "closed"}),
        aimed("jobs"),
    )
    cancelled = {"status": "cancelled", "cancellation_reason": "Ill"}
    (booking,) = checked(table({**BOOKING, **cancelled}), aimed("bookings"))

    later = [each.task.afterwards for each in (candidate, draft, closed, booking) if each.task]
    assert [{"status": "screening"}, {}, {"status": "closed"}, cancelled] == later
    now = [each.task.fields.get("status") for each in (candidate, draft, closed) if each.task]
    assert [None, "draft", None] == now


@pytest.mark.parametrize(
    ("resource", "row", "code", "column"),
    [
        ("candidates", {**CANDIDATE, "status": "on_hold"}, "value_not_accepted", "status"),
        ("jobs", {**JOB, "employment_type": "freelance"}, "value_not_accepted", "employment_type"),
        ("bookings", {**BOOKING, "cancellation_reason": "Ill"}, "only_with", "cancellation_reason"),
        (
            "leads",
            {"email": "a@b.example", "lead_status_id": "s", "first_name": ""},
            "one_of_required",
            None,
        ),
        (
            "bookings",
            {"booking_type": "contract", "start_datetime": "2026-05-04T09:30:00Z", "title": "T"},
            "required_when",
            None,
        ),
    ],
)
def test_rules_of_the_declaration_hold(
    resource: str, row: dict[str, str], code: str, column: str | None
) -> None:
    found = checked(table(row), aimed(resource))

    assert {(2, column, code)} == set(problems(found))
    # A contract needs candidate, job, company and an end.
    assert (4 if code == "required_when" else 1) == len(problems(found))


def test_references_are_resolved_and_never_chosen() -> None:
    rows = table(
        {**BOOKING, "candidate_email": "ZOE@people.example", "job_reference_code": "00123"},
        {**BOOKING, "company_name": "wren & co ", "candidate_email": "nobody@people.example"},
        {**BOOKING, "company_name": "Twin", "job_reference_code": "123"},
    )
    found = checked(rows, aimed("bookings", said=RELATED), RELATED)

    assert found[0].task is not None
    assert {**BOOKING, "candidate_id": "c1", "job_id": "j1"} == found[0].task.fields
    assert [
        (3, "candidate_email", "reference_unknown"),
        (4, "job_reference_code", "reference_unknown"),
        (4, "company_name", "reference_ambiguous"),
    ] == problems(found)
    assert "k2, k3" in found[2].problems[1].message
    assert "k2 k3" == found[2].problems[1].found


def test_one_of_several_records_of_a_name_is_given_by_its_id() -> None:
    rows = table({**BOOKING, "company_name": "k3"}, {**BOOKING, "company_name": "k9"})
    found = checked(rows, aimed("bookings", said=RELATED), RELATED)

    assert found[0].task is not None
    assert {**BOOKING, "company_id": "k3"} == found[0].task.fields
    assert [(3, "company_name", "reference_unknown")] == problems(found)


def test_ids_are_checked_where_anything_is_landed() -> None:
    wrong = table({**BOOKING, "candidate_id": "c9", "company_id": "k1"})

    assert [(2, "candidate_id", "reference_unknown")] == problems(
        checked(wrong, aimed("bookings"), RELATED)
    )
    assert [] == problems(checked(wrong, aimed("bookings"), DeclaredLanding()))
    by_name = checked(
        table({**BOOKING, "company_name": "Wren & Co"}), aimed("bookings"), DeclaredLanding()
    )
    assert "The local copy has no companies" in by_name[0].problems[0].message


def test_second_row_of_one_record_is_a_duplicate() -> None:
    rows = table(
        {**CANDIDATE, "last_name": ""},
        CANDIDATE,
        {**CANDIDATE, "email": "ZOE@People.example", "first_name": "Z."},
        {**CANDIDATE, "email": "zoe2@people.example"},
    )
    found = checked(rows, aimed())

    assert ["invalid", None, "duplicate", None] == [each.outcome for each in found]
    assert (4, "email", "duplicate_in_file") == problems(found)[1]
    assert "The row is a duplicate of row 3." == found[2].problems[0].message


def test_rows_without_a_key_are_duplicates_only_if_identical() -> None:
    rows = table(JOB, {**JOB, "location": "York"}, JOB)

    assert [None, None, "duplicate"] == [each.outcome for each in checked(rows, aimed("jobs"))]
    coded = table({**JOB, "reference_code": "A1"}, {**JOB, "reference_code": "a1", "title": "B"})
    assert [None, "duplicate"] == [each.outcome for each in checked(coded, aimed("jobs"))]


def test_record_that_exists_is_a_duplicate() -> None:
    said = landing(
        candidates=[
            {"id": "c1", "email": "zoe@people.example"},
            {"id": "c2", "email": "zoe2@people.example"},
            {"id": "c3", "email": "ZOE2@people.example"},
            LandedRecord({"id": "c4", "email": "gone@people.example"}, is_deleted=True),
        ]
    )
    emails = ("zoe@people.example", "zoe2@people.example", "gone@people.example")
    found = checked(table(*({**CANDIDATE, "email": each} for each in emails)), aimed(), said)

    assert ["duplicate", "duplicate", None] == [each.outcome for each in found]
    assert ["c1", None, None] == [each.record_id for each in found]
    assert "c2, c3" in found[1].problems[0].message


def test_row_that_was_created_before_is_known_by_its_task() -> None:
    rows = table({**CANDIDATE, "status": "screening"}, CANDIDATE)
    (first, _), said = (checked(rows, aimed()), landing(candidates=[{"id": "c1", **CANDIDATE}]))
    again, twin = checked(rows, aimed(), said)

    assert ("duplicate", "duplicate") == (again.outcome, twin.outcome)
    assert first.task == again.task
    assert first.task is not None
    assert twin.task is None


def test_blank_rows_are_no_rows_and_misshapen_ones_are_not_read() -> None:
    wide = Problem("row_width", "The row has 9 cells.")
    cell = Problem("spreadsheet_error", "The cell's formula failed.", "email")
    harmless = Problem("spreadsheet_error", "The cell's formula failed.", "Other")
    headings = (*CANDIDATE, "Other")

    class TableWithShape(ValuesTable):
        def rows(self):  # type: ignore[no-untyped-def] # as the class it stands for
            yield SheetRow(2, (" ",) * 5)
            yield SheetRow(3, ("x",) * 9, (wide,))
            yield SheetRow(4, (*CANDIDATE.values(), "#N/A"), (cell, harmless))
            yield SheetRow(5, (*CANDIDATE.values(), "#N/A"), (harmless,))

    found = checked(TableWithShape(headings, ()), aimed())

    assert [3, 4, 5] == [each.row.number for each in found]
    assert [(wide,), (cell,), ()] == [each.problems for each in found]
    assert ["invalid", "invalid", None] == [each.outcome for each in found]


def test_clearing_makes_nothing_of_a_record_that_is_new() -> None:
    wanted = aimed(clear="NULL")
    rows = table({**CANDIDATE, "notes": "NULL"}, {**CANDIDATE, "email": " NULL ", "notes": "null"})
    found = checked(rows, wanted)

    assert found[0].task is not None
    assert CANDIDATE == found[0].task.fields
    assert [(3, "email", "cannot_clear")] == problems(found)


def test_rows_are_looked_up_in_batches() -> None:
    said = DeclaredLanding()
    rows = table(*({**CANDIDATE, "email": f"p{n}@people.example"} for n in range(2500)))

    assert 2500 == sum(each.outcome is None for each in checked(rows, aimed(), said))
    assert 3 == said.asked


@pytest.mark.parametrize(
    ("resource", "mode", "options", "error", "said"),
    [
        ("people", "create", {}, UnknownName, "'people'"),
        ("candidates", "merge", {}, UnknownName, "'merge'"),
        ("candidates", "convert", {}, Misused, "cannot be written with --mode convert"),
        ("content_types", "create", {}, Misused, "cannot be written"),
        ("candidates", "upsert", {}, Misused, "needs a field"),
        ("candidates", "create", {"match": ["email"]}, Misused, "--match cannot be used"),
        ("candidates", "upsert", {"match": ["colour"]}, UnknownName, "'colour'"),
        ("jobs", "update", {"match": ["internal_notes"]}, UnknownName, "'internal_notes'"),
        ("candidates", "update", {"clear": " "}, Misused, "is blank"),
        ("candidates", "create", {"parent": "posts"}, Misused, "--type cannot be used with"),
        ("content_items", "create", {}, Misused, "need a content type"),
        ("content_items", "create", {"parent": "x"}, Misused, "no content type 'x'"),
    ],
)
def test_targets_that_make_no_sense_are_refused(
    resource: str, mode: str, options: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        aimed(resource, mode, **options)  # type: ignore[arg-type] # on purpose


def test_claims_hold_more_keys_than_they_began_with() -> None:
    claims = ClaimedKeys()

    assert all(claims.claim(f"key {n}", n) is None for n in range(20_000))
    assert list(range(20_000)) == [claims.claim(f"key {n}", 99_999) for n in range(20_000)]
    assert claims.claim("key 7", 7) is None
