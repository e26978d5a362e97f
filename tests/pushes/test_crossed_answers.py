"""Pushes and undos that receive another record in a response do not adopt or change it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from connector.sandbox.app import HttpExchange
from connector.sandbox.faults import Crossed
from connector.sandbox.server import Sandbox
from connector.state.row import Row
from tests.pushes.pushing import (
    CANDIDATES,
    list_emails,
    list_writes,
    make_create,
    make_creates,
    make_update,
    map_codes,
    map_outcomes,
)
from tests.pushes.test_undo import ONE, Undoer
from tests.support.clock import Time


@dataclass(frozen=True, slots=True)
class Merged:
    """Fault of a create that stores nothing, and is answered with an existing record."""

    status: int = 201

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the record with the natural key in the body, or the oldest."""
        document = {"data": exchange.other_record(), "message": "The record was merged."}
        await exchange.send(JSONResponse(document, self.status))


@pytest.fixture
def pusher(tmp_path: Path) -> Iterator[Undoer]:
    """Account with one candidate, which was created an hour before."""
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        made = Undoer(sandbox, tmp_path, time, connections=1)
        made.create_candidate()
        time.pass_minutes(60)
        yield made


def test_a_create_answered_with_another_record_is_found_with_its_own_id(pusher: Undoer) -> None:
    pusher.sandbox.faults.add(Crossed(), method="POST")

    report = pusher.push(make_creates(1))
    (row,) = report.rows
    made = pusher.read_candidate(row.record_id or "")

    assert ({2: "created"}, {2: "found_after_doubt"}) == (map_outcomes(report), map_codes(report))
    assert "ann2@example.com" == made["email"]
    assert {2: "deleted"} == map_outcomes(pusher.undo(report.batch))
    assert ["old@example.com"] == list_emails(pusher.sandbox)


@pytest.mark.parametrize("status", [200, 201])
def test_a_create_merged_into_another_record_is_held(pusher: Undoer, status: int) -> None:
    pusher.sandbox.faults.add(Merged(status), method="POST")

    report = pusher.push(make_creates(1))
    (row,) = report.rows

    assert ({2: "held"}, None) == (map_outcomes(report), row.record_id)
    (problem,) = row.problems
    assert "not_found" == row.code
    assert "sent and answered with a record " in problem.message
    assert "not answered" not in problem.message
    assert {2: "held"} == map_outcomes(pusher.undo(report.batch))
    assert [f"POST {CANDIDATES}"] == list_writes(pusher.sandbox)


def test_an_undo_with_swapped_responses_repeats_the_requests(pusher: Undoer) -> None:
    (old,) = pusher.sandbox.store.records("candidates")
    pushed = pusher.push(
        [*make_creates(1), make_update(3, old, pusher.read_candidate(old), notes="new")]
    )
    for method in ("GET", "PUT", "DELETE"):
        pusher.sandbox.faults.add(Crossed(), method=method, path=ONE)

    assert {2: "undone", 3: "undone"} == map_outcomes(pusher.undo(pushed.batch))
    assert ["old@example.com"] == list_emails(pusher.sandbox)
    assert None is pusher.read_candidate(old)["notes"]


def test_an_undo_does_not_delete_a_record_older_than_the_push(
    pusher: Undoer, tmp_path: Path
) -> None:
    (old,) = pusher.sandbox.store.records("candidates")
    before = pusher.read_candidate(old)
    other = pusher.create_candidate(email="other@example.com")
    changes = make_update(3, other, pusher.read_candidate(other), notes="new")
    pushed = pusher.push([make_duplicate_create(before), changes])
    with sqlite3.connect(tmp_path / "data" / "state.sqlite") as state:
        stamp = before["updated_at"]
        state.execute(
            "UPDATE rows SET record_id = ?, updated_at = ? WHERE number = 2", (old, stamp)
        )

    report = pusher.undo(pushed.batch)

    assert {2: "conflict", 3: "restored"} == map_outcomes(report)
    assert ["not_ours"] == [each.code for each in report.rows[0].problems]
    assert before == pusher.read_candidate(old)
    assert None is pusher.read_candidate(other)["notes"]


def make_duplicate_create(record: dict[str, str]) -> Row:
    """Return a row without identity fields that creates a record equal to this one."""
    names = ("first_name", "last_name", "email", "employment_type", "phone")
    return replace(make_create(2, **{name: record[name] for name in names}), identity={})
