"""Rows that change, match or convert records send only the differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import Cell
from connector.spreadsheet.row_reader import CheckedRow
from connector.state.row import LandedRecord, Row
from tests.spreadsheet.meaning.sheet import (
    CANDIDATE,
    check_table,
    get_changes,
    list_problems,
    make_landing,
    make_table,
    make_target,
)

ANNA: Mapping[str, Any] = {
    "id": "c1",
    **CANDIDATE,
    "email": "Anna@people.example",
    "notes": "",
    "rating": 4,
    "expected_salary": 45000.0,
    "date_of_birth": "1985-04-03T00:00:00Z",
    "status": "screening",
    "city": "Leeds",
    "phone": None,
}
LISTED = {"id": "c2", "first_name": "Bo", "email": "bo@people.example", "phone": "0161 496 0001"}
SAID = make_landing(
    candidates=[
        ANNA,
        LandedRecord(LISTED, is_whole=False),
        LandedRecord({"id": "c3", "email": "gone@people.example"}, is_deleted=True),
        {"id": "c4", "email": "twin@people.example"},
        {"id": "c5", "email": "twin@people.example"},
    ]
)


def check_updates(
    *rows: Mapping[str, Cell], saved: SavedMap | None = None, **options: Any
) -> list[CheckedRow]:
    """Check rows as updates of the records in `SAID`."""
    return check_table(make_table(*rows), make_target(mode="update", **options), SAID, saved)


def get_task(found: CheckedRow) -> Row:
    """Return the row's task, which must exist."""
    assert found.task is not None, found.problems
    return found.task


def test_an_update_takes_no_email_of_another_record_or_row() -> None:
    taken, first, second = check_updates(
        {"id": "c1", "email": "Twin@people.example"},
        {"id": "c4", "email": "new@people.example"},
        {"id": "c5", "email": "NEW@people.example"},
    )
    assert [("duplicate", None), (None, "update"), ("duplicate", None)] == [
        (each.outcome, each.task and each.task.operation) for each in (taken, first, second)
    ]
    codes = [[problem.code for problem in each.problems] for each in (taken, second)]
    assert [["duplicate_in_warehouse"], ["duplicate_in_file"]] == codes


def test_clearing_requires_the_exact_text_and_an_optional_field() -> None:
    found = check_updates(
        {"id": "c1", "city": "NULL", "notes": "NULL", "first_name": ""},
        {"id": "c1", "city": "", "first_name": "NULL"},
        clear="NULL",
    )

    assert {"city": None} == get_task(found[0]).fields
    assert {"city": ("Leeds", None)} == get_changes(found[0])
    assert [(3, "first_name", "cannot_clear")] == list_problems(found)


def test_a_second_row_for_the_same_record_is_a_duplicate() -> None:
    found = check_updates({"id": "c1", "city": "York"}, {"id": "c1", "city": "Hull"})

    assert [None, "duplicate"] == [each.outcome for each in found]
    assert [(3, "id", "duplicate_in_file")] == list_problems(found)


def test_an_update_accepts_the_values_allowed_for_updates() -> None:
    found = check_updates({"id": "c1", "status": "on_hold", "employment_type": "freelance"})

    assert [(2, "status", "value_not_accepted")] == list_problems(found)
    (found_one,) = check_updates({"id": "c1", "employment_type": "freelance"})
    assert {"employment_type": "freelance"} == get_task(found_one).fields


def test_conditions_of_an_update_consider_the_existing_record() -> None:
    landing = make_landing(
        bookings=[{"id": "b1", "status": "cancelled"}, {"id": "b2", "status": "draft"}]
    )
    rows = make_table(
        {"id": "b1", "cancellation_reason": "Ill"},
        {"id": "b2", "cancellation_reason": "Ill"},
        {"id": "b2", "cancellation_reason": "Ill", "status": "Cancelled"},
    )
    found = check_table(rows, make_target("bookings", "update"), landing)

    assert [None, "invalid", None] == [each.outcome for each in found]
    assert [(3, "cancellation_reason", "only_with")] == list_problems(found)


def test_a_record_known_only_from_lists_is_not_compared() -> None:
    found = check_updates({"id": "c2", "phone": "0161 496 0002"})

    assert {"phone": "+441614960002"} == get_task(found[0]).fields
    assert [(2, "city", "record_not_read")] == list_problems(
        check_updates({"id": "c2", "city": "York"})
    )


def test_the_base_of_a_change_is_the_value_that_the_user_last_saw() -> None:
    record = LandedRecord({"id": "c1", "city": "Hull"}, seen={"id": "c1", "city": "Leeds"})
    rows, target = make_table({"id": "c1", "city": "York"}), make_target(mode="update")
    (found,) = check_table(rows, target, make_landing(candidates=[record]))

    assert ({"city": "York"}, {"city": "Leeds"}) == (get_task(found).fields, get_task(found).base)


def test_a_write_only_field_is_sent_without_a_base() -> None:
    landing = make_landing(jobs=[{"id": "j1", "title": "Nurse"}])
    row = {"id": "j1", "title": "Nurse", "internal_notes": "Urgent"}
    (found,) = check_table(make_table(row), make_target("jobs", "update"), landing)

    assert ({"internal_notes": "Urgent"}, {}) == (get_task(found).fields, get_task(found).base)


def test_an_upsert_updates_existing_records_and_creates_others() -> None:
    rows = make_table(
        {"email": "anna@people.example", "city": "York", "employment_type": "freelance"},
        {**CANDIDATE, "city": "York"},
        {**CANDIDATE, "email": "new@people.example", "employment_type": "freelance"},
        {"email": "twin@people.example"},
        {**CANDIDATE, "email": "ZOE@people.example"},
        {"email": "other@people.example"},
    )
    found = check_table(rows, make_target(mode="upsert", match=["email"]), SAID)

    assert [None, None, "invalid", "invalid", "duplicate", "invalid"] == [e.outcome for e in found]
    assert ["update", "create"] == [get_task(each).operation for each in found[:2]]
    assert {"city": "York", "employment_type": "freelance"} == get_task(found[0]).fields
    assert {**CANDIDATE, "city": "York"} == get_task(found[1]).fields
    assert [
        (4, "employment_type", "value_not_accepted"),
        (5, "email", "record_ambiguous"),
        (6, "email", "duplicate_in_file"),
        *((7, name, "required") for name in ("first_name", "last_name", "employment_type")),
    ] == list_problems(found)


def test_an_upsert_by_another_field_creates_no_duplicate() -> None:
    landing = make_landing(candidates=[{"id": "c1", **CANDIDATE, "phone": "0161 496 0001"}])
    rows = make_table(
        {**CANDIDATE, "phone": "0161 496 0002"},
        {**CANDIDATE, "phone": "0161 496 0001", "first_name": "Z"},
    )
    found = check_table(rows, make_target(mode="upsert", match=["phone"]), landing)

    assert [(2, "email", "duplicate_in_warehouse")] == list_problems(found)
    assert ["duplicate", None] == [each.outcome for each in found]
    assert {"first_name": "Z"} == get_task(found[1]).fields


LEADS = make_landing(
    leads=[
        {"id": "l1", "email": "a@b.example", "status": "lead"},
        {"id": "l2", "email": "c@d.example", "status": "active"},
        LandedRecord({"id": "l3", "email": "e@f.example", "converted_at": "2026-01-01T00:00:00Z"}),
        LandedRecord({"id": "l4", "email": "g@h.example"}, is_deleted=True),
    ]
)


@pytest.mark.parametrize("match_field", ["id", "email"])
def test_leads_are_converted_once_by_id_or_email(match_field: str) -> None:
    ids = {"l1": "a@b.example", "l2": "c@d.example", "l3": "e@f.example"}
    cells = [*ids, "l1"] if match_field == "id" else [*ids.values(), "A@b.example"]
    found = check_table(
        make_table(*({match_field: cell} for cell in cells)), make_target("leads", "convert"), LEADS
    )

    assert [None, "unchanged", "unchanged", "duplicate"] == [each.outcome for each in found]
    assert ("convert", {}, "l1") == (
        get_task(found[0]).operation,
        get_task(found[0]).fields,
        get_task(found[0]).record_id,
    )
    assert [
        (3, None, "converted_already"),
        (4, None, "converted_already"),
        (5, match_field, "duplicate_in_file"),
    ] == list_problems(found)


def test_an_update_without_a_match_column_is_reported_for_each_row() -> None:
    assert [(2, None, "match_missing")] == list_problems(check_updates({"city": "York"}))


def test_a_deleted_lead_is_not_converted() -> None:
    (found,) = check_table(make_table({"id": "l4"}), make_target("leads", "convert"), LEADS)

    assert ["record_deleted"] == [each.code for each in found.problems]
    assert "converted" in found.problems[0].message


def test_the_column_named_id_precedes_other_columns_for_the_id() -> None:
    columns = map_headings(["Record ID", "id"], make_target(mode="update"))

    assert ("id",) == tuple(each.heading for each in columns.columns)
    assert "column 'id' already fills id" == columns.unmapped[0].reason
