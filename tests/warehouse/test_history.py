"""History: one row for every version that a detail has shown, with the time of its validity."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.content import ContentItem
from connector.warehouse.stream import Commit, DeletionProof, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows

CANDIDATES = Stream(CATALOG["candidates"])
START = datetime(2026, 2, 3, 4, 0, 0, tzinfo=UTC)
CREATED = START - timedelta(days=30)


def at(seconds: float) -> datetime:
    """Return the timestamp of a second after `START`."""
    return START + timedelta(seconds=seconds)


def detail(id: str, read: float, updated: float, **fields: Any) -> FoundDetail:
    """Return a candidate's detail read at second `read` and last changed at second `updated`."""
    stamps = {"created_at": CREATED.isoformat(), "updated_at": at(updated).isoformat()}
    return FoundDetail(Candidate({"id": id, **stamps, **fields}), at(read))


def commit(warehouse: Warehouse, *found: FoundDetail, **rest: Any) -> None:
    """Commit details and other fields of `Commit`, and assert that the history is in order."""
    warehouse.commit(CANDIDATES, Commit(records=found, **rest), "run-1", START)
    assert [] == violations(warehouse)


def versions(warehouse: Warehouse, id: str = "1", table: str = "candidates") -> list[Any]:
    """Return the versions of a record, oldest first."""
    return rows(warehouse.work, f"FROM history.{table} WHERE id = '{id}' ORDER BY _version")


def violations(warehouse: Warehouse) -> list[str]:
    """Return the records whose versions break a rule of the history."""
    found = rows(warehouse.work, "FROM history.candidates ORDER BY id, _version")
    landed = {row["id"]: row for row in rows(warehouse.work, "FROM landing.candidates")}
    broken = []
    for id in {row["id"] for row in found}:
        chain = [row for row in found if row["id"] == id]
        is_numbered = [*range(1, len(chain) + 1)] == [row["_version"] for row in chain]
        names_changes = [bool(row["_changed"]) for row in chain] == [False] + [True] * (
            len(chain) - 1
        )
        follows = all(
            row["_valid_to"] is not None
            and row["_valid_from"] <= row["_valid_to"] <= after["_valid_from"]
            and (row["_valid_to"] == after["_valid_from"] or after["_changed"][0] == "_deleted_at")
            for row, after in pairwise(chain)
        )
        began = all((row["_began_after"] or CREATED) <= row["_valid_from"] for row in chain)
        is_open = chain[-1]["_valid_to"] is None
        is_live = landed[id]["_deleted_at"] is None
        if not (is_numbered and names_changes and follows and began and is_open == is_live):
            broken.append(id)
    return broken


def validity(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Return not before, begin and end of each version."""
    names = ("_began_after", "_valid_from", "_valid_to")
    return [tuple(row[name] for name in names) for row in versions(warehouse)]


def test_a_change_that_keeps_updated_at_is_kept_and_named(warehouse: Warehouse) -> None:
    commit(warehouse, detail("1", 0, -500, city="Bath"))
    record = (detail("1", 100, -500, city="York"),)
    _, events = warehouse.commit(CANDIDATES, Commit(records=record), "run-1", START)

    assert [("silent", "1")] == [(each.kind, each.id) for each in events]
    assert ["Bath", "York"] == [row["city"] for row in versions(warehouse)]
    assert [] == violations(warehouse)


def test_a_deletion_ends_a_version_and_a_return_begins_the_next(warehouse: Warehouse) -> None:
    """The time between deletion and return belongs to no version."""
    commit(warehouse, detail("1", 0, -5, city="Bath"))
    commit(warehouse, gone={"1": DeletionProof(at(100))})
    commit(warehouse, gone={"1": DeletionProof(at(150))})
    commit(warehouse, detail("1", 300, -5, city="Bath"))
    commit(warehouse, gone={"1": DeletionProof(at(400))})
    commit(warehouse, detail("1", 500, 450, city="York"))

    assert [None, ["_deleted_at"], ["_deleted_at", "updated_at", "city"]] == [
        row["_changed"] for row in versions(warehouse)
    ]
    assert [(at(-5), at(100)), (at(300), at(400)), (at(450), None)] == [
        (row["_valid_from"], row["_valid_to"]) for row in versions(warehouse)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_responses_with_random_dates_keep_the_versions_in_order(
    seed: int, warehouse: Warehouse
) -> None:
    chance, now = random.Random(seed), 0.0
    for _ in range(40):
        now += chance.choice((0, 0, 1, 1, 2, 5, -3))
        if chance.randrange(5):
            updated = now + chance.uniform(-3, 1)
            found = detail("1", now, updated, city=chance.choice("AB"), notes=chance.choice("ab"))
            commit(warehouse, found)
        else:
            commit(warehouse, gone={"1": DeletionProof(at(now))})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_each_interval_contains_the_true_time_of_its_change(
    seed: int, warehouse: Warehouse
) -> None:
    chance, city, edits, updated = random.Random(seed), "A", [-100.0], -100.0
    for step in range(60):
        now = 10.0 * step
        if chance.random() < 0.5:
            city = "B" if city == "A" else "A"
            edits.append(now)
            updated = now
        else:
            commit(warehouse, detail("1", now, updated, city=city))
    found = versions(warehouse)

    for row in found[1:]:
        true = [at(each) for each in edits if row["_began_after"] < at(each) < row["_hydrated_at"]]
        assert true
        assert row["updated_at"] == row["_valid_from"] == true[-1]
    assert len(found) > 3


def test_content_items_of_all_types_share_one_history(warehouse: Warehouse) -> None:
    stamps = {"created_at": CREATED.isoformat(), "updated_at": at(-9).isoformat()}
    for parent, id in (("type-1", "i"), ("type-2", "k")):
        raw = {"id": id, **stamps, "title": "T", "fields": {"body": [1, True], "x": None}}
        found = FoundDetail(ContentItem(raw), at(0))
        stream = Stream(CATALOG["content_items"], parent)
        warehouse.commit(stream, Commit(records=(found,)), "run-1", at(0))
    kept = rows(warehouse.work, "FROM history.content_items ORDER BY id")

    assert ["type-1", "type-2"] == [row["_content_type_id"] for row in kept]
    assert None not in [row["fields"] for row in kept]


def test_history_columns_have_the_types_of_landing_and_comments(warehouse: Warehouse) -> None:
    query = (
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE schema_name = '{}' AND table_name <> 'content_type_fields'"
    )
    landing = rows(warehouse.work, query.format("landing"))
    history = rows(warehouse.work, query.format("history"))
    own = ("_hydrated_at", "_deleted_at", "_record", "_run_id")
    documented = [row for row in landing if row["column_name"] not in own]

    assert set(CATALOG) == {row["table_name"] for row in history}
    assert [] == [row for row in documented if row not in history]
    assert [] == [row for row in history if not row["comment"]]
