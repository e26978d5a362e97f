"""Rows that change, match or convert records: only what differs is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from connector.ledger.push_states import LandedRecord, Task
from connector.spreadsheet.cells import CellOptions, ColumnPolicy
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import Cell
from tests.spreadsheet.meaning.sheet import CANDIDATE, aimed, checked, landing, problems, table

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
LISTED = {"id": "c2", "first_name": "Bo", "email": "bo@people.example", "phone": "4960001"}
SAID = landing(
    candidates=[
        ANNA,
        LandedRecord(LISTED, is_whole=False),
        LandedRecord({"id": "c3", "email": "gone@people.example"}, is_deleted=True),
        {"id": "c4", "email": "twin@people.example"},
        {"id": "c5", "email": "twin@people.example"},
    ]
)


def updated(
    *rows: Mapping[str, Cell], saved: SavedMap | None = None, **options: Any
) -> list[CheckedRow]:
    """The rows as updates of the landing that is said."""
    return checked(table(*rows), aimed(mode="update", **options), SAID, saved)


def task(found: CheckedRow) -> Task:
    """The row's task; there must be one."""
    assert found.task is not None, found.problems
    return found.task


def test_only_what_differs_is_wanted() -> None:
    (found,) = updated(
        {
            "id": "c1",
            "first_name": "Anna",
            "rating": "4",
            "expected_salary": "45000",
            "date_of_birth": "1985-04-03",
            "city": "York",
            "notes": "",
        }
    )

    assert {"first_name": "Anna", "city": "York"} == task(found).fields
    assert {"first_name": "Zoë", "city": "Leeds"} == task(found).base
    assert {"first_name": ("Zoë", "Anna"), "city": ("Leeds", "York")} == found.changes
    assert ("update", "c1", "c1") == (task(found).operation, task(found).record_id, found.record_id)
    assert {"email": "Anna@people.example"} == task(found).identity


def test_row_that_changes_nothing_is_unchanged() -> None:
    found = updated({"id": "c1", "city": "Leeds", "phone": ""})

    assert [("unchanged", None, "c1")] == [(e.outcome, e.task, e.record_id) for e in found]
    assert "unchanged" == updated({"id": "c1", "city": ""})[0].outcome


@pytest.mark.parametrize(
    ("policy", "changes"),
    [
        ("overwrite", {"city": ("Leeds", "York"), "phone": (None, "0161 4960")}),
        ("fill", {"phone": (None, "0161 4960")}),
        ("never", {}),
    ],
)
def test_policy_says_what_a_column_may_do(policy: ColumnPolicy, changes: dict[str, Any]) -> None:
    options = CellOptions(policy=policy)
    saved = SavedMap("candidates", {"city": ("city", options), "phone": ("phone", options)})
    (found,) = updated({"id": "c1", "city": "York", "phone": "0161 4960"}, saved=saved)

    assert changes == found.changes
    assert (None if changes else "unchanged") == found.outcome


@pytest.mark.parametrize(
    ("there", "cell", "then"),
    [
        (None, "Met.", "Met."),
        ("Called.", "Met.", "Called.\n\nMet."),
        ("Called.\n", "Met.\nLiked.", "Called.\n\nMet.\nLiked."),
        ("Called.\r\n\r\nMet.\r\nLiked.", "Met.\nLiked.", None),
        ("Called.\n\nMet. \n\nMet again.", "Met.", None),
        ("Called. Met.", "Met.", "Called. Met.\n\nMet."),
        ("Called.", "", None),
        ("Called.", "NULL", None),
    ],
)
def test_a_long_text_is_appended_once(there: str | None, cell: str, then: str | None) -> None:
    saved = SavedMap("candidates", {"notes": ("notes", CellOptions(policy="append"))})
    said = landing(candidates=[{**ANNA, "notes": there}])
    target = aimed(mode="update", clear="NULL")
    (found,) = checked(table({"id": "c1", "notes": cell}), target, said, saved)

    assert ({} if then is None else {"notes": (there, then)}) == found.changes


def test_clearing_needs_the_very_text_and_a_field_that_may_be_empty() -> None:
    found = updated(
        {"id": "c1", "city": "NULL", "notes": "NULL", "first_name": ""},
        {"id": "c1", "city": "", "first_name": "NULL"},
        clear="NULL",
    )

    assert {"city": None} == task(found[0]).fields
    assert {"city": ("Leeds", None)} == found[0].changes
    assert [(3, "first_name", "cannot_clear")] == problems(found)


def test_records_are_found_by_fields_and_never_chosen() -> None:
    found = updated(
        {"email": "ANNA@people.example", "city": "York"},
        {"email": "nobody@people.example", "city": "York"},
        {"email": "twin@people.example", "city": "York"},
        {"email": "", "city": "York"},
        {"email": "anna", "city": "York"},
        match=["email"],
    )

    assert {"city": "York"} == task(found[0]).fields
    assert [
        (3, "email", "record_unknown"),
        (4, "email", "record_ambiguous"),
        (5, "email", "match_missing"),
        (6, "email", "email_format"),
    ] == problems(found)
    assert "c4, c5" in found[2].problems[0].message
    assert [(2, "id", "record_deleted"), (3, "id", "record_unknown")] == problems(
        updated({"id": "c3", "city": "York"}, {"id": "c9", "city": "York"})
    )


def test_update_without_anything_to_find_records_by_is_said_of_each_row() -> None:
    assert [(2, None, "match_missing")] == problems(updated({"city": "York"}))


def test_second_row_of_one_record_is_a_duplicate() -> None:
    found = updated({"id": "c1", "city": "York"}, {"id": "c1", "city": "Hull"})

    assert [None, "duplicate"] == [each.outcome for each in found]
    assert [(3, "id", "duplicate_in_file")] == problems(found)


def test_update_takes_its_own_values() -> None:
    found = updated({"id": "c1", "status": "on_hold", "employment_type": "freelance"})

    assert [(2, "status", "value_not_accepted")] == problems(found)
    (found_one,) = updated({"id": "c1", "employment_type": "freelance"})
    assert {"employment_type": "freelance"} == task(found_one).fields


def test_condition_of_an_update_looks_at_the_record() -> None:
    said = landing(bookings=[{"id": "b1", "status": "cancelled"}, {"id": "b2", "status": "draft"}])
    rows = table(
        {"id": "b1", "cancellation_reason": "Ill"},
        {"id": "b2", "cancellation_reason": "Ill"},
        {"id": "b2", "cancellation_reason": "Ill", "status": "Cancelled"},
    )
    found = checked(rows, aimed("bookings", "update"), said)

    assert [None, "invalid", None] == [each.outcome for each in found]
    assert [(3, "cancellation_reason", "only_with")] == problems(found)


def test_record_that_only_a_list_has_shown_is_not_compared() -> None:
    found = updated({"id": "c2", "phone": "4960002"})

    assert {"phone": "4960002"} == task(found[0]).fields
    assert [(2, "city", "record_not_read")] == problems(updated({"id": "c2", "city": "York"}))


def test_write_only_field_is_wanted_without_a_base() -> None:
    said = landing(jobs=[{"id": "j1", "title": "Nurse"}])
    row = {"id": "j1", "title": "Nurse", "internal_notes": "Urgent"}
    (found,) = checked(table(row), aimed("jobs", "update"), said)

    assert ({"internal_notes": "Urgent"}, {}) == (task(found).fields, task(found).base)


def test_upsert_updates_what_is_there_and_makes_what_is_not() -> None:
    rows = table(
        {"email": "anna@people.example", "city": "York", "employment_type": "freelance"},
        {**CANDIDATE, "city": "York"},
        {**CANDIDATE, "email": "new@people.example", "employment_type": "freelance"},
        {"email": "twin@people.example"},
        {**CANDIDATE, "email": "ZOE@people.example"},
        {"email": "other@people.example"},
    )
    found = checked(rows, aimed(mode="upsert", match=["email"]), SAID)

    assert [None, None, "invalid", "invalid", "duplicate", "invalid"] == [e.outcome for e in found]
    assert ["update", "create"] == [task(each).operation for each in found[:2]]
    assert {"city": "York", "employment_type": "freelance"} == task(found[0]).fields
    assert {**CANDIDATE, "city": "York"} == task(found[1]).fields
    assert [
        (4, "employment_type", "value_not_accepted"),
        (5, "email", "record_ambiguous"),
        (6, "email", "duplicate_in_file"),
        *((7, name, "required") for name in ("first_name", "last_name", "employment_type")),
    ] == problems(found)


def test_upsert_by_another_field_still_makes_no_second_record() -> None:
    said = landing(candidates=[{"id": "c1", **CANDIDATE, "phone": "4960001"}])
    rows = table(
        {**CANDIDATE, "phone": "4960002"}, {**CANDIDATE, "phone": "4960001", "first_name": "Z"}
    )
    found = checked(rows, aimed(mode="upsert", match=["phone"]), said)

    assert [(2, "email", "duplicate_in_warehouse")] == problems(found)
    assert ["duplicate", None] == [each.outcome for each in found]
    assert {"first_name": "Z"} == task(found[1]).fields


LEADS = landing(
    leads=[
        {"id": "l1", "email": "a@b.example", "status": "lead"},
        {"id": "l2", "email": "c@d.example", "status": "active"},
        LandedRecord({"id": "l3", "email": "e@f.example", "converted_at": "2026-01-01T00:00:00Z"}),
        LandedRecord({"id": "l4", "email": "g@h.example"}, is_deleted=True),
    ]
)


@pytest.mark.parametrize("by", ["id", "email"])
def test_leads_are_converted_by_id_or_email_and_once(by: str) -> None:
    ids = {"l1": "a@b.example", "l2": "c@d.example", "l3": "e@f.example"}
    cells = [*ids, "l1"] if by == "id" else [*ids.values(), "A@b.example"]
    found = checked(table(*({by: cell} for cell in cells)), aimed("leads", "convert"), LEADS)

    assert [None, "unchanged", "unchanged", "duplicate"] == [each.outcome for each in found]
    assert ("convert", {}, "l1") == (
        task(found[0]).operation,
        task(found[0]).fields,
        task(found[0]).record_id,
    )
    assert [
        (3, None, "converted_already"),
        (4, None, "converted_already"),
        (5, by, "duplicate_in_file"),
    ] == problems(found)


def test_lead_that_is_gone_is_not_converted() -> None:
    (found,) = checked(table({"id": "l4"}), aimed("leads", "convert"), LEADS)

    assert ["record_deleted"] == [each.code for each in found.problems]
    assert "converted" in found.problems[0].message


def test_of_two_columns_for_the_id_its_own_name_goes_first() -> None:
    columns = map_headings(["Record ID", "id"], aimed(mode="update"))

    assert ("id",) == tuple(each.heading for each in columns.columns)
    assert "column 'id' already fills id" == columns.unmapped[0].reason
