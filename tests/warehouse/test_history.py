"""History: one row for every observed version, with honest intervals, case by case."""

from __future__ import annotations

import json
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.content import ContentItem
from connector.warehouse.bookmark import Stream
from connector.warehouse.landing import LandedCounts
from connector.warehouse.pull_commands import Commit, DeletionProof, FoundDetail
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows
from tests.warehouse.versions import (
    CANDIDATES,
    CREATED,
    detail,
    item,
    landed,
    moment,
    offences,
    versions,
)


def commit(warehouse: Warehouse, *found: FoundDetail, at: float = 0, **rest: Any) -> LandedCounts:
    """Commit these details and the rest, and hold the history to its promises."""
    fates = warehouse.commit(CANDIDATES, Commit(records=found, **rest), "run-1", moment(at))
    assert [] == offences(warehouse)
    return fates


def spans(warehouse: Warehouse, id: str = "1") -> list[tuple[Any, ...]]:
    """Of each version: began after, valid from, observed from and to, valid to."""
    names = ("_began_after", "_valid_from", "_observed_from", "_observed_to", "_valid_to")
    return [tuple(row[name] for name in names) for row in versions(warehouse, id)]


def ends(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Of each version: the interval in which it ended."""
    return [(row["_ended_after"], row["_ended_before"]) for row in versions(warehouse)]


def test_a_version_begins_when_the_api_says_between_two_looks(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 0, -500, city="Bath"))
    commit(warehouse, detail("1", 100, 40, city="York"))
    commit(warehouse, detail("1", 200, 40, city="Leeds"))
    commit(warehouse, detail("1", 300, 999, city="Hull"))

    assert [
        (CREATED, moment(-500), moment(0), moment(0), moment(40)),
        (moment(0), moment(40), moment(100), moment(100), moment(100)),
        (moment(100), moment(100), moment(200), moment(200), moment(300)),
        (moment(200), moment(300), moment(300), moment(300), None),
    ] == spans(warehouse)
    changed = [row["_changed"] for row in versions(warehouse)]
    assert [None, ["updated_at", "city"], ["city"], ["updated_at", "city"]] == changed


def test_an_unchanged_answer_adds_no_row(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 0, -500, city="Bath", skills="SQL"))
    fates = commit(warehouse, detail("1", 50, -500, skills="SQL", city="Bath"))
    commit(warehouse, items=(item("1", 70),))

    assert LandedCounts(unchanged=1) == fates
    assert [(CREATED, moment(-500), moment(0), moment(50), None)] == spans(warehouse)
    # Only now is a change of a field that no list shows, and that the list could not deny.
    commit(warehouse, detail("1", 90, 60, skills="SQL, Python", city="Bath"))
    assert (moment(50), moment(60)) == spans(warehouse)[1][:2]


def test_a_first_load_makes_one_version(warehouse: Warehouse) -> None:
    """The list item begins the first version and the detail completes it: one row, dated by the
    API, observed since the detail, because the list did not show all of it.
    """
    commit(warehouse, items=(item("1", 0, first_name="Ada", status="screening"),))
    listed = versions(warehouse)
    commit(warehouse, detail("1", 60, -500, first_name="Ada", status="screening", city="Bath"))
    whole = versions(warehouse)

    assert [(None, moment(0))] == [(row["_hydrated_at"], row["_valid_from"]) for row in listed]
    assert [(CREATED, moment(-500), moment(60), moment(60), None)] == spans(warehouse)
    assert [("Bath", moment(60), None)] == [
        (row["city"], row["_hydrated_at"], row["_changed"]) for row in whole
    ]


def test_what_only_a_list_showed_is_a_version_of_its_own(warehouse: Warehouse) -> None:
    first = detail("1", 0, -500, first_name="Ada", status="screening", city="Bath")
    commit(warehouse, first)
    commit(warehouse, items=(item("1", 50, first_name="Ada", status="screening"),))
    commit(warehouse, items=(item("1", 100, first_name="Ada", status="interviewing"),))
    seen = versions(warehouse)[1]

    assert "screening" == landed(warehouse)["status"]
    assert ("interviewing", None, None) == (seen["status"], seen["city"], seen["_hydrated_at"])
    assert {"id", "created_at", "first_name", "status"} == json.loads(seen["_record"]).keys()
    assert ["status"] == seen["_changed"]
    # The list at 50 still showed the old status, so it changed after that; but the version before
    # was not seen whole after 0.
    assert (moment(0), moment(101)) == ends(warehouse)[0]
    assert (moment(50), moment(100), moment(100), moment(100), None) == spans(warehouse)[1]

    commit(warehouse, items=(item("1", 120, first_name="Ada", status="interviewing"),))
    new = {"first_name": "Ada", "status": "interviewing", "city": "York"}
    commit(warehouse, detail("1", 150, 80, **new))

    assert [moment(80), None] == [row["_valid_to"] for row in versions(warehouse)]
    assert (moment(50), moment(80), moment(150), moment(150), None) == spans(warehouse)[1]
    whole = versions(warehouse)[1]
    assert ("York", moment(150)) == (whole["city"], whole["_hydrated_at"])
    assert ["status", "updated_at", "city"] == whole["_changed"]


def test_a_record_created_within_the_second_of_its_list_has_one_version(
    warehouse: Warehouse,
) -> None:
    commit(warehouse, items=(item("1", 0, status="offer_made"), item("2", 0, status="offer_made")))
    commit(warehouse, detail("1", 0, 0.4, status="offer_accepted"))
    commit(warehouse, detail("2", 5, 1, status="offer_made"))

    assert [("offer_accepted", moment(0.4))] == [
        (row["status"], row["_valid_from"]) for row in versions(warehouse)
    ]
    # What the list showed is kept, since it was another version in what no list shows.
    assert [(None, moment(0), moment(6)), (["updated_at"], moment(1), None)] == [
        (row["_changed"], row["_valid_from"], row["_ended_before"])
        for row in versions(warehouse, "2")
    ]


def test_a_status_between_two_details_is_not_lost(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 0, -5, status="screening"))
    commit(warehouse, items=(item("1", 50, status="submitted"),))
    commit(warehouse, detail("1", 100, 70, status="placed"))
    commit(warehouse, items=(item("1", 150, status="rejected"),))
    fates = commit(warehouse, detail("1", 200, 70, status="placed"))

    kept = [(row["status"], row["_hydrated_at"] is None) for row in versions(warehouse)]
    assert [
        ("screening", False),
        ("submitted", True),
        ("placed", False),
        ("rejected", True),
        ("placed", False),
    ] == kept
    assert LandedCounts(unchanged=1) == fates


def test_what_a_list_cannot_show_is_no_difference(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 0, -5, status="offer_accepted"))
    commit(warehouse, items=(item("1", 50, status="offer_made"),))
    assert 1 == len(versions(warehouse))

    commit(warehouse, detail("2", 0, -5, status="screening"))
    commit(warehouse, items=(item("2", 50, status="offer_made"),))
    commit(warehouse, detail("2", 100, 30, status="offer_accepted"))
    assert ["screening", "offer_accepted"] == [row["status"] for row in versions(warehouse, "2")]

    commit(warehouse, detail("3", 0, -5, status="screening"))
    commit(warehouse, items=(item("3", 50, status="offer_made"),))
    commit(warehouse, detail("3", 100, 80, status="offer_accepted"))
    statuses = [row["status"] for row in versions(warehouse, "3")]
    assert ["screening", "offer_made", "offer_accepted"] == statuses


def test_a_deletion_ends_a_version_and_a_return_continues(warehouse: Warehouse) -> None:
    """The record is gone since it was first known to be, after it was last seen; its return is the
    next version, and the time between belongs to none.
    """
    commit(warehouse, detail("1", 0, -5, city="Bath"))
    commit(warehouse, items=(item("1", 40),))
    commit(warehouse, gone={"1": DeletionProof(moment(100))})
    commit(warehouse, gone={"1": DeletionProof(moment(150))})
    commit(warehouse, items=(item("1", 200),))
    (ended,) = versions(warehouse)

    assert (moment(100), "deletion") == (ended["_valid_to"], ended["_ended_by"])
    # The list at 40 showed the record, and not that its town was the same still.
    assert [(moment(0), moment(101))] == ends(warehouse)

    commit(warehouse, detail("1", 300, -5, city="Bath"))
    commit(warehouse, gone={"1": DeletionProof(moment(400))})
    commit(warehouse, detail("1", 500, 450, city="York"))

    assert [None, ["_deleted_at"], ["_deleted_at", "updated_at", "city"]] == [
        row["_changed"] for row in versions(warehouse)
    ]
    assert [moment(-5), moment(300), moment(450)] == [
        row["_valid_from"] for row in versions(warehouse)
    ]


def test_answers_out_of_order_never_overlap(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 100, 90, city="Bath", status="placed"))
    commit(warehouse, items=(item("1", 100.5, status="screening"), item("2", 100)))
    assert 1 == len(versions(warehouse))

    commit(warehouse, detail("1", 60, 20, city="York", status="placed"))
    late = versions(warehouse)[1]
    assert "York" == landed(warehouse)["city"]
    assert [moment(100)] * 3 == [
        late[name] for name in ("_valid_from", "_observed_from", "_observed_to")
    ]
    commit(warehouse, detail("1", 130, 90, city="Bath", status="placed"))
    assert ["Bath", "York", "Bath"] == [row["city"] for row in versions(warehouse)]


def test_content_items_share_one_history(warehouse: Warehouse) -> None:
    stream = Stream(CATALOG["content_items"], "type-1")
    stamps = {"created_at": CREATED.isoformat(), "updated_at": moment(-9).isoformat()}
    raw = {"id": "i", **stamps, "title": "T", "fields": {"body": [1, True], "x": None}}
    found = FoundDetail(ContentItem(raw), moment(0))
    warehouse.commit(stream, Commit(records=(found,)), "run-1", moment(0))
    shown = {"id": "i", **stamps, "updated_at": moment(20).isoformat(), "title": "U"}
    page = (ContentItem(shown, is_item=True, served_at=moment(50)),)
    warehouse.commit(stream, Commit(items=page), "run-2", moment(50))
    kept = versions(warehouse, "i", "content_items")

    assert [] == offences(warehouse, "content_items")
    assert ["type-1"] * 2 == [row["_content_type_id"] for row in kept]
    assert [["updated_at", "title"], moment(20)] == [kept[1]["_changed"], kept[1]["_valid_from"]]
    assert kept[0]["fields"] is not None
    assert kept[1]["fields"] is None


def test_every_column_is_typed_as_landed_and_explained(warehouse: Warehouse) -> None:
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
