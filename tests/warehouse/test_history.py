"""History: one row for every observed version, with the interval of its validity."""

from __future__ import annotations

import json
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.content import ContentItem
from connector.warehouse.landing import Counts
from connector.warehouse.stream import Commit, DeletionProof, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows
from tests.warehouse.versions import (
    CANDIDATES,
    CREATED,
    find_violations,
    make_detail,
    make_item,
    read_landed,
    read_versions,
    timestamp_at,
)


def commit_and_check(
    warehouse: Warehouse, *found: FoundDetail, at: float = 0, **rest: Any
) -> Counts:
    """Commit these details and fields of `Commit`, and assert that the history is consistent."""
    fates = warehouse.commit(CANDIDATES, Commit(records=found, **rest), "run-1", timestamp_at(at))
    assert [] == find_violations(warehouse)
    return fates


def list_validity(warehouse: Warehouse, id: str = "1") -> list[tuple[Any, ...]]:
    """Return the earliest begin, begin, first and last observation, and end of each version."""
    names = ("_began_after", "_valid_from", "_observed_from", "_observed_to", "_valid_to")
    return [tuple(row[name] for name in names) for row in read_versions(warehouse, id)]


def list_end_intervals(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Return the earliest and the latest time at which each version can have ended."""
    return [(row["_ended_after"], row["_ended_before"]) for row in read_versions(warehouse)]


def test_a_version_begins_at_the_date_of_the_api_between_two_pulls(warehouse: Warehouse) -> None:
    commit_and_check(warehouse, make_detail("1", 0, -500, city="Bath"))
    commit_and_check(warehouse, make_detail("1", 100, 40, city="York"))
    commit_and_check(warehouse, make_detail("1", 200, 40, city="Leeds"))
    commit_and_check(warehouse, make_detail("1", 300, 999, city="Hull"))

    assert [
        (CREATED, timestamp_at(-500), timestamp_at(0), timestamp_at(0), timestamp_at(40)),
        (
            timestamp_at(0),
            timestamp_at(40),
            timestamp_at(100),
            timestamp_at(100),
            timestamp_at(100),
        ),
        (
            timestamp_at(100),
            timestamp_at(100),
            timestamp_at(200),
            timestamp_at(200),
            timestamp_at(300),
        ),
        (timestamp_at(200), timestamp_at(300), timestamp_at(300), timestamp_at(300), None),
    ] == list_validity(warehouse)
    changed = [row["_changed"] for row in read_versions(warehouse)]
    assert [None, ["updated_at", "city"], ["city"], ["updated_at", "city"]] == changed


def test_an_unchanged_detail_adds_no_version(warehouse: Warehouse) -> None:
    commit_and_check(warehouse, make_detail("1", 0, -500, city="Bath", skills="SQL"))
    fates = commit_and_check(warehouse, make_detail("1", 50, -500, skills="SQL", city="Bath"))
    commit_and_check(warehouse, items=(make_item("1", 70),))

    assert Counts(unchanged=1) == fates
    assert [
        (CREATED, timestamp_at(-500), timestamp_at(0), timestamp_at(50), None)
    ] == list_validity(warehouse)
    # Only now is a change of a field that no list shows, and that the list could not deny.
    commit_and_check(warehouse, make_detail("1", 90, 60, skills="SQL, Python", city="Bath"))
    assert (timestamp_at(50), timestamp_at(60)) == list_validity(warehouse)[1][:2]


def test_a_first_load_makes_one_version(warehouse: Warehouse) -> None:
    """It begins with the list item and counts as observed since the detail."""
    commit_and_check(warehouse, items=(make_item("1", 0, first_name="Ada", status="screening"),))
    listed = read_versions(warehouse)
    commit_and_check(
        warehouse, make_detail("1", 60, -500, first_name="Ada", status="screening", city="Bath")
    )
    whole = read_versions(warehouse)

    assert [(None, timestamp_at(0))] == [
        (row["_hydrated_at"], row["_valid_from"]) for row in listed
    ]
    assert [
        (CREATED, timestamp_at(-500), timestamp_at(60), timestamp_at(60), None)
    ] == list_validity(warehouse)
    assert [("Bath", timestamp_at(60), None)] == [
        (row["city"], row["_hydrated_at"], row["_changed"]) for row in whole
    ]


def test_a_change_observed_only_in_a_list_is_a_separate_version(warehouse: Warehouse) -> None:
    first = make_detail("1", 0, -500, first_name="Ada", status="screening", city="Bath")
    commit_and_check(warehouse, first)
    commit_and_check(warehouse, items=(make_item("1", 50, first_name="Ada", status="screening"),))
    commit_and_check(
        warehouse, items=(make_item("1", 100, first_name="Ada", status="interviewing"),)
    )
    seen = read_versions(warehouse)[1]

    assert "screening" == read_landed(warehouse)["status"]
    assert ("interviewing", None, None) == (seen["status"], seen["city"], seen["_hydrated_at"])
    assert {"id", "created_at", "first_name", "status"} == json.loads(seen["_record"]).keys()
    assert ["status"] == seen["_changed"]
    # The list at 50 still showed the old status, so it changed after that; but the version before
    # was not seen whole after 0.
    assert (timestamp_at(0), timestamp_at(101)) == list_end_intervals(warehouse)[0]
    assert (
        timestamp_at(50),
        timestamp_at(100),
        timestamp_at(100),
        timestamp_at(100),
        None,
    ) == list_validity(warehouse)[1]

    commit_and_check(
        warehouse, items=(make_item("1", 120, first_name="Ada", status="interviewing"),)
    )
    new = {"first_name": "Ada", "status": "interviewing", "city": "York"}
    commit_and_check(warehouse, make_detail("1", 150, 80, **new))

    assert [timestamp_at(80), None] == [row["_valid_to"] for row in read_versions(warehouse)]
    assert (
        timestamp_at(50),
        timestamp_at(80),
        timestamp_at(150),
        timestamp_at(150),
        None,
    ) == list_validity(warehouse)[1]
    whole = read_versions(warehouse)[1]
    assert ("York", timestamp_at(150)) == (whole["city"], whole["_hydrated_at"])
    assert ["status", "updated_at", "city"] == whole["_changed"]


def test_a_record_created_in_the_second_of_its_list_has_one_version(warehouse: Warehouse) -> None:
    commit_and_check(
        warehouse,
        items=(make_item("1", 0, status="offer_made"), make_item("2", 0, status="offer_made")),
    )
    commit_and_check(warehouse, make_detail("1", 0, 0.4, status="offer_accepted"))
    commit_and_check(warehouse, make_detail("2", 5, 1, status="offer_made"))

    assert [("offer_accepted", timestamp_at(0.4))] == [
        (row["status"], row["_valid_from"]) for row in read_versions(warehouse)
    ]
    # What the list showed is kept, since it was another version in what no list shows.
    assert [(None, timestamp_at(0), timestamp_at(6)), (["updated_at"], timestamp_at(1), None)] == [
        (row["_changed"], row["_valid_from"], row["_ended_before"])
        for row in read_versions(warehouse, "2")
    ]


def test_a_status_listed_between_two_details_is_kept(warehouse: Warehouse) -> None:
    commit_and_check(warehouse, make_detail("1", 0, -5, status="screening"))
    commit_and_check(warehouse, items=(make_item("1", 50, status="submitted"),))
    commit_and_check(warehouse, make_detail("1", 100, 70, status="placed"))
    commit_and_check(warehouse, items=(make_item("1", 150, status="rejected"),))
    fates = commit_and_check(warehouse, make_detail("1", 200, 70, status="placed"))

    kept = [(row["status"], row["_hydrated_at"] is None) for row in read_versions(warehouse)]
    assert [
        ("screening", False),
        ("submitted", True),
        ("placed", False),
        ("rejected", True),
        ("placed", False),
    ] == kept
    assert Counts(unchanged=1) == fates


def test_a_detail_status_that_lists_cannot_show_is_not_a_change(warehouse: Warehouse) -> None:
    commit_and_check(warehouse, make_detail("1", 0, -5, status="offer_accepted"))
    commit_and_check(warehouse, items=(make_item("1", 50, status="offer_made"),))
    assert 1 == len(read_versions(warehouse))

    commit_and_check(warehouse, make_detail("2", 0, -5, status="screening"))
    commit_and_check(warehouse, items=(make_item("2", 50, status="offer_made"),))
    commit_and_check(warehouse, make_detail("2", 100, 30, status="offer_accepted"))
    assert ["screening", "offer_accepted"] == [
        row["status"] for row in read_versions(warehouse, "2")
    ]

    commit_and_check(warehouse, make_detail("3", 0, -5, status="screening"))
    commit_and_check(warehouse, items=(make_item("3", 50, status="offer_made"),))
    commit_and_check(warehouse, make_detail("3", 100, 80, status="offer_accepted"))
    statuses = [row["status"] for row in read_versions(warehouse, "3")]
    assert ["screening", "offer_made", "offer_accepted"] == statuses


def test_a_deletion_ends_a_version_and_a_return_begins_the_next(warehouse: Warehouse) -> None:
    """The time between deletion and return belongs to no version."""
    commit_and_check(warehouse, make_detail("1", 0, -5, city="Bath"))
    commit_and_check(warehouse, items=(make_item("1", 40),))
    commit_and_check(warehouse, gone={"1": DeletionProof(timestamp_at(100))})
    commit_and_check(warehouse, gone={"1": DeletionProof(timestamp_at(150))})
    commit_and_check(warehouse, items=(make_item("1", 200),))
    (ended,) = read_versions(warehouse)

    assert (timestamp_at(100), "deletion") == (ended["_valid_to"], ended["_ended_by"])
    # The list at 40 showed the record, and not that its town was the same still.
    assert [(timestamp_at(0), timestamp_at(101))] == list_end_intervals(warehouse)

    commit_and_check(warehouse, make_detail("1", 300, -5, city="Bath"))
    commit_and_check(warehouse, gone={"1": DeletionProof(timestamp_at(400))})
    commit_and_check(warehouse, make_detail("1", 500, 450, city="York"))

    assert [None, ["_deleted_at"], ["_deleted_at", "updated_at", "city"]] == [
        row["_changed"] for row in read_versions(warehouse)
    ]
    assert [timestamp_at(-5), timestamp_at(300), timestamp_at(450)] == [
        row["_valid_from"] for row in read_versions(warehouse)
    ]


def test_versions_from_responses_out_of_order_do_not_overlap(warehouse: Warehouse) -> None:
    commit_and_check(warehouse, make_detail("1", 100, 90, city="Bath", status="placed"))
    commit_and_check(
        warehouse, items=(make_item("1", 100.5, status="screening"), make_item("2", 100))
    )
    assert 1 == len(read_versions(warehouse))

    commit_and_check(warehouse, make_detail("1", 60, 20, city="York", status="placed"))
    late = read_versions(warehouse)[1]
    assert "York" == read_landed(warehouse)["city"]
    assert [timestamp_at(100)] * 3 == [
        late[name] for name in ("_valid_from", "_observed_from", "_observed_to")
    ]
    commit_and_check(warehouse, make_detail("1", 130, 90, city="Bath", status="placed"))
    assert ["Bath", "York", "Bath"] == [row["city"] for row in read_versions(warehouse)]


def test_content_items_of_all_types_share_one_history(warehouse: Warehouse) -> None:
    stream = Stream(CATALOG["content_items"], "type-1")
    stamps = {"created_at": CREATED.isoformat(), "updated_at": timestamp_at(-9).isoformat()}
    raw = {"id": "i", **stamps, "title": "T", "fields": {"body": [1, True], "x": None}}
    found = FoundDetail(ContentItem(raw), timestamp_at(0))
    warehouse.commit(stream, Commit(records=(found,)), "run-1", timestamp_at(0))
    shown = {"id": "i", **stamps, "updated_at": timestamp_at(20).isoformat(), "title": "U"}
    page = (ContentItem(shown, is_item=True, served_at=timestamp_at(50)),)
    warehouse.commit(stream, Commit(items=page), "run-2", timestamp_at(50))
    kept = read_versions(warehouse, "i", "content_items")

    assert [] == find_violations(warehouse, "content_items")
    assert ["type-1"] * 2 == [row["_content_type_id"] for row in kept]
    assert [["updated_at", "title"], timestamp_at(20)] == [
        kept[1]["_changed"],
        kept[1]["_valid_from"],
    ]
    assert kept[0]["fields"] is not None
    assert kept[1]["fields"] is None


def test_history_columns_have_the_types_of_landing_and_comments(warehouse: Warehouse) -> None:
    query = (
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE schema_name = '{}' AND table_name <> 'content_type_fields'"
    )
    landing = rows(warehouse.work, query.format("landing"))
    history = rows(warehouse.work, query.format("history"))
    own = ("_hydrated_at", "_seen_at", "_deleted_at", "_record", "_run_id")
    documented = [row for row in landing if row["column_name"] not in own]

    assert set(CATALOG) == {row["table_name"] for row in history}
    assert [] == [row for row in documented if row not in history]
    assert [] == [row for row in history if not row["comment"]]
