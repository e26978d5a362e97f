"""Rows that create records: required fields, references and duplicates."""

from __future__ import annotations

import pytest

from connector.catalog.content import ContentTypeField
from connector.errors import Misused, UnknownName
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import SheetRow
from connector.state.row import Problem
from tests.spreadsheet.meaning.sheet import (
    CANDIDATE,
    InMemoryLanding,
    ValuesTable,
    check_table,
    list_problems,
    make_landing,
    make_table,
    make_target,
)

STATUS = "9f0c0f6e-6a2e-4c1e-9a57-1f2d3c4b5a69"
JOB = {"title": "Nurse", "location": "Leeds", "employment_type": "interim", "description": "Care."}
BOOKING = {"booking_type": "internal", "start_datetime": "2026-05-04T09:30:00Z"}
UUID = "0b6f3c52-2f4e-4a5e-9a57-1f2d3c4b5a69"
RELATED = make_landing(
    candidates=[{"id": "c1", "email": "zoe@people.example"}],
    companies=[
        {"id": "k1", "name": "Wren & Co"},
        {"id": "k2", "name": "Twin"},
        {"id": "k3", "name": "twin"},
    ],
    jobs=[{"id": "j1", "reference_code": "00123", "title": "Nurse"}],
)


def test_a_required_field_without_a_column_is_reported() -> None:
    row = {name: cell for name, cell in CANDIDATE.items() if name != "employment_type"}
    constant = SavedMap("candidates", constants={"employment_type": "Interim"})

    assert [(2, None, "column_missing")] == list_problems(
        check_table(make_table(row), make_target())
    )
    (found,) = check_table(make_table(row), make_target(), saved=constant)
    assert found.task is not None
    assert "interim" == found.task.fields["employment_type"]


def test_fields_that_create_rejects_are_set_by_a_following_update() -> None:
    (candidate,) = check_table(make_table({**CANDIDATE, "status": "Screening"}), make_target())
    draft, closed = check_table(
        make_table({**JOB, "status": "draft"}, {**JOB, "title": "Cook", "status": "closed"}),
        make_target("jobs"),
    )
    cancelled = {"status": "cancelled", "cancellation_reason": "Ill"}
    (booking,) = check_table(make_table({**BOOKING, **cancelled}), make_target("bookings"))

    later = [each.task.then for each in (candidate, draft, closed, booking) if each.task]
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
            {"email": "a@b.example", "lead_status_id": STATUS, "first_name": ""},
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
def test_declared_rules_of_a_resource_are_checked(
    resource: str, row: dict[str, str], code: str, column: str | None
) -> None:
    found = check_table(make_table(row), make_target(resource))

    assert {(2, column, code)} == set(list_problems(found))
    # A contract needs candidate, job, company and an end.
    assert (4 if code == "required_when" else 1) == len(list_problems(found))


def test_an_id_selects_one_of_several_records_with_the_same_name() -> None:
    rows = make_table({**BOOKING, "company_name": "k3"}, {**BOOKING, "company_name": "k9"})
    found = check_table(rows, make_target("bookings", landing=RELATED), RELATED)

    assert found[0].task is not None
    assert {**BOOKING, "company_id": "k3"} == found[0].task.fields
    assert [(3, "company_name", "reference_unknown")] == list_problems(found)


def test_ids_are_checked_if_the_resource_has_loaded_records() -> None:
    wrong = make_table({**BOOKING, "candidate_id": "c9", "company_id": "k1"})

    assert [(2, "candidate_id", "reference_unknown")] == list_problems(
        check_table(wrong, make_target("bookings"), RELATED)
    )
    nothing = check_table(wrong, make_target("bookings"), InMemoryLanding())
    assert {"reference_unknown"} == {code for _, _, code in list_problems(nothing)}
    ids = dict.fromkeys(("candidate_id", "company_id", "job_id"), UUID)
    found = check_table(make_table({**BOOKING, **ids}), make_target("bookings"), InMemoryLanding())
    assert [] == list_problems(found)
    by_name = check_table(
        make_table({**BOOKING, "company_name": "Wren & Co"}),
        make_target("bookings"),
        InMemoryLanding(),
    )
    assert "The local copy has no companies" in by_name[0].problems[0].message


def test_rows_without_a_key_are_duplicates_only_if_identical() -> None:
    rows = make_table(JOB, {**JOB, "location": "York"}, JOB)

    assert [None, None, "duplicate"] == [
        each.outcome for each in check_table(rows, make_target("jobs"))
    ]
    coded = make_table(
        {**JOB, "reference_code": "A1"}, {**JOB, "reference_code": "a1", "title": "B"}
    )
    assert [None, "duplicate"] == [each.outcome for each in check_table(coded, make_target("jobs"))]


def test_a_row_that_an_earlier_push_created_is_recognized_by_its_task() -> None:
    rows = make_table({**CANDIDATE, "status": "screening"}, CANDIDATE)
    (first, _), landing = (
        check_table(rows, make_target()),
        make_landing(candidates=[{"id": "c1", **CANDIDATE}]),
    )
    again, twin = check_table(rows, make_target(), landing)

    assert ("duplicate", "duplicate") == (again.outcome, twin.outcome)
    assert first.task == again.task
    assert first.task is not None
    assert twin.task is None


def test_blank_rows_are_skipped_and_malformed_ones_are_not_checked() -> None:
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

    found = check_table(TableWithShape(headings, ()), make_target())

    assert [3, 4, 5] == [each.row.number for each in found]
    assert [(wide,), (cell,), ()] == [each.problems for each in found]
    assert ["invalid", "invalid", None] == [each.outcome for each in found]


def test_existing_records_are_searched_in_batches() -> None:
    landing = InMemoryLanding()
    rows = make_table(*({**CANDIDATE, "email": f"p{n}@people.example"} for n in range(2500)))

    assert 2500 == sum(each.outcome is None for each in check_table(rows, make_target(), landing))
    assert 3 == landing.queries


@pytest.mark.parametrize(
    ("resource", "mode", "options", "error", "message"),
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
def test_invalid_push_targets_are_rejected(
    resource: str, mode: str, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_target(resource, mode, **options)  # type: ignore[arg-type] # on purpose


def test_items_of_a_type_that_requires_own_values_are_only_updated() -> None:
    field = ContentTypeField({"id": "f1", "name": "Summary", "is_required": True})
    landing = make_landing((field,))
    target = make_target("content_items", "update", landing, parent="posts")
    assert ["id", "title", "slug", "status"] == [each.name for each in target.columns]
    with pytest.raises(Misused, match="Summary"):
        make_target("content_items", "create", landing, parent="posts")


def test_clearing_a_field_of_a_new_record_sends_nothing() -> None:
    wanted = make_target(clear="NULL")
    rows = make_table(
        {**CANDIDATE, "notes": "NULL"}, {**CANDIDATE, "email": " NULL ", "notes": "null"}
    )
    found = check_table(rows, wanted)

    assert found[0].task is not None
    assert CANDIDATE == found[0].task.fields
    assert [(3, "email", "cannot_clear")] == list_problems(found)
