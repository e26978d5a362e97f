"""Loading into a work file: all values are kept, and unexpected ones reported once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.catalog.job import Job
from connector.errors import WarehouseError
from connector.state.runs import Event
from connector.warehouse.file import open_file
from connector.warehouse.landing import Counts, read_bookmark
from connector.warehouse.queries import resource_state
from connector.warehouse.stream import Bookmark, Commit, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows
from tests.support.errors import has_code

CANDIDATES = Stream(CATALOG["candidates"])
JOBS = Stream(CATALOG["jobs"])
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def make_candidate(id: str, **fields: Any) -> FoundDetail:
    """Return a candidate's detail read at `NOW`."""
    stamps = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
    return FoundDetail(Candidate({"id": id, **stamps, **fields}), NOW)


def commit_records(warehouse: Warehouse, *found: FoundDetail, **rest: Any) -> Counts:
    """Commit these details and other fields of `Commit`."""
    return warehouse.commit(CANDIDATES, Commit(records=found, **rest), "run-1", NOW)[0]


def test_texts_with_any_characters_are_stored_unchanged(warehouse: Warehouse) -> None:
    texts = ["", "a 'b' \"c\"", "x\r\ny\tz", "nul \x00 inside", "👩🏽‍💻 Zoë", "half \ud83d pair"]
    commit_records(warehouse, *(make_candidate(str(n), notes=text) for n, text in enumerate(texts)))
    landed = rows(warehouse.work, "SELECT notes, _record FROM landing.candidates ORDER BY id")

    texts[-1] = "half \ufffd pair"
    assert texts == [row["notes"] for row in landed]
    assert texts == [json.loads(row["_record"])["notes"] for row in landed]


def test_unexpected_values_are_kept_and_reported(warehouse: Warehouse) -> None:
    odd = {"status": "on_mars", "rating": "five", "shoe_size": 44, "first_name": "Ada"}
    what = Commit(records=(make_candidate("1", **odd), make_candidate("2", **odd)))
    _, events = warehouse.commit(CANDIDATES, what, "run-1", NOW)
    landed = rows(warehouse.work, "SELECT status, rating, _record FROM landing.candidates")

    assert [("on_mars", None)] * 2 == [(row["status"], row["rating"]) for row in landed]
    assert all("five" in row["_record"] and "shoe_size" in row["_record"] for row in landed)
    assert {
        ("unknown_field", "shoe_size"),
        ("unknown_value", "status 'on_mars' is not a documented value"),
        ("unreadable_value", "rating is not of the type integer"),
    } == {(each.kind, each.detail) for each in events}


def test_listed_records_are_queued_until_their_details_are_committed(warehouse: Warehouse) -> None:
    items = tuple(
        Job(
            {"id": f"j{n}", "title": f"T{n}", "created_at": f"2026-01-0{n}T00:00:00Z"}, is_item=True
        )
        for n in (1, 2, 3)
    )
    fates, _ = warehouse.commit(JOBS, Commit(items=items), "run-1", NOW)

    assert Counts(listed=3) == fates
    assert ("j3", "j2") == warehouse.query(JOBS, lambda rows: rows.queued(2, frozenset()))
    assert ("j2", "j1") == warehouse.query(JOBS, lambda rows: rows.queued(5, frozenset({"j3"})))
    first, last = items[0].created_at, items[2].created_at
    assert frozenset({"j2"}) == warehouse.query(JOBS, lambda rows: rows.live(first, last))
    detail = FoundDetail(Job({**items[2].raw, "description": "d"}), NOW)
    counts, _ = warehouse.commit(JOBS, Commit(records=(detail,)), "run-2", NOW)
    assert Counts(new=1) == counts
    assert 2 == warehouse.read(resource_state, "jobs").pending


def test_a_failed_commit_stores_nothing(warehouse: Warehouse) -> None:
    commit_records(warehouse, bookmark=Bookmark(proven_at=NOW))
    earlier = Bookmark(proven_at=NOW.replace(year=2025))
    with pytest.raises(AssertionError, match="moved back"):
        commit_records(
            warehouse, make_candidate("1"), events=(Event("test", "lost"),), bookmark=earlier
        )

    assert [] == rows(warehouse.work, "FROM landing.candidates")
    assert NOW == warehouse.read(read_bookmark, CANDIDATES).proven_at


def test_a_file_of_another_program_is_rejected_and_not_changed(tmp_path: Path) -> None:
    foreign = Warehouse(tmp_path / "foreign")
    foreign.folder.mkdir()
    with duckdb.connect(str(foreign.work)) as connection:
        connection.execute("CREATE TABLE theirs AS SELECT 42 AS answer")
    with pytest.raises(WarehouseError, match="another program", check=has_code("not_a_warehouse")):
        foreign.prepare()
    garbage = Warehouse(tmp_path / "garbage")
    garbage.folder.mkdir()
    garbage.work.write_bytes(b"not a database" * 500)
    with pytest.raises(
        WarehouseError, match="not a DuckDB database", check=has_code("not_a_warehouse")
    ):
        garbage.prepare()

    assert [{"answer": 42}] == rows(foreign.work, "FROM theirs")
    assert garbage.work.read_bytes().startswith(b"not a database")


def test_a_newly_declared_column_is_added_to_the_table(warehouse: Warehouse) -> None:
    commit_records(warehouse, make_candidate("1", city="Bath"))
    with open_file(warehouse.work) as connection:
        connection.execute("ALTER TABLE landing.candidates DROP COLUMN languages")
    warehouse.prepare()
    commit_records(warehouse, make_candidate("2", languages="Welsh"))
    landed = rows(warehouse.work, "SELECT city, languages FROM landing.candidates ORDER BY id")

    expected = [{"city": "Bath", "languages": None}, {"city": None, "languages": "Welsh"}]
    assert expected == landed
