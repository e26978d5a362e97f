"""A push and an undo whose answers show another record: nothing of it is adopted or touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from connector.ledger.push_plan import PushPolicy
from connector.ledger.push_states import Task
from connector.sandbox.exchange import Fault, HttpExchange
from connector.sandbox.faults import Crossed, Drop, Merged, Status
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    codes,
    create,
    creates,
    emails,
    listed,
    outcomes,
    update,
    writes,
)
from tests.pushes.test_undo import ONE, Undoer, found
from tests.support.clock import Time


@pytest.fixture
def undoer(tmp_path: Path) -> Iterator[Undoer]:
    """An account with one candidate, made an hour before."""
    time = Time()
    with Sandbox(clock=time.servers) as sandbox:
        made = Undoer(sandbox, tmp_path, time, connections=1)
        made.create_one()
        time.pass_minutes(60)
        yield made


def test_a_create_answered_with_another_record_is_found_under_its_own_id(undoer: Undoer) -> None:
    undoer.sandbox.faults.add(Crossed(), method="POST")

    report = undoer.push(creates(1))
    (row,) = listed(report)
    made = undoer.record(row.record_id or "")

    assert ({2: "created"}, {2: "found_after_doubt"}) == (outcomes(report), codes(report))
    assert "ann2@example.com" == made["email"]
    assert {2: "deleted"} == found(undoer.undo(report.batch))
    assert ["old@example.com"] == emails(undoer.sandbox)


@pytest.mark.parametrize("status", [200, 201])
def test_a_create_merged_into_another_record_is_held(undoer: Undoer, status: int) -> None:
    undoer.sandbox.faults.add(Merged(status), method="POST")

    report = undoer.push(creates(1))
    (row,) = listed(report)

    assert ({2: "held"}, None) == (outcomes(report), row.record_id)
    (problem,) = row.problems
    assert "not_found" == row.code
    assert "sent and answered with a record " in problem.message
    assert "not answered" not in problem.message
    assert {2: "held"} == found(undoer.undo(report.batch))
    assert [f"POST {CANDIDATES}"] == writes(undoer.sandbox)


def test_a_create_merged_into_an_older_record_of_the_same_values_is_held(undoer: Undoer) -> None:
    (old,) = undoer.sandbox.store.records("candidates")
    undoer.sandbox.faults.add(Merged(), method="POST")

    report = undoer.push([same_as(undoer.record(old))])

    assert ({2: "held"}, None) == (outcomes(report), listed(report)[0].record_id)
    assert ["old@example.com"] == emails(undoer.sandbox)


def test_two_creates_answered_with_each_others_record_keep_their_own(undoer: Undoer) -> None:
    undoer.sandbox.faults.add(Crossed(), method="POST", nth=2)

    report = undoer.push(creates(3))

    assert {2: "created", 3: "created", 4: "created"} == outcomes(report)
    assert [f"ann{row.number}@example.com" for row in listed(report)] == [
        undoer.record(row.record_id or "")["email"] for row in listed(report)
    ]


def test_an_update_whose_answers_are_crossed_is_repeated_or_not_sent(undoer: Undoer) -> None:
    (old,) = undoer.sandbox.store.records("candidates")
    other = undoer.create_one(email="other@example.com", notes="new")
    row = update(2, old, undoer.record(old), notes="new")
    undoer.sandbox.faults.add(Crossed(), method="GET", path=ONE, times=3)
    unread = undoer.push([row])
    before = undoer.record(other)
    undoer.sandbox.faults.add(Crossed(), method="GET", path=ONE)
    undoer.sandbox.faults.add(Crossed(), method="PUT")
    report = undoer.push([row])

    assert {2: "not_sent"} == outcomes(unread)
    assert {2: "updated"} == outcomes(report)
    assert ("new", before) == (undoer.record(old)["notes"], undoer.record(other))
    assert old == listed(report)[0].record_id


def test_an_undo_whose_answers_are_crossed_looks_again(undoer: Undoer) -> None:
    (old,) = undoer.sandbox.store.records("candidates")
    pushed = undoer.push([*creates(1), update(3, old, undoer.record(old), notes="new")])
    for method in ("GET", "PUT", "DELETE"):
        undoer.sandbox.faults.add(Crossed(), method=method, path=ONE)

    assert {2: "undone", 3: "undone"} == found(undoer.undo(pushed.batch))
    assert ["old@example.com"] == emails(undoer.sandbox)
    assert None is undoer.record(old)["notes"]


def test_an_undo_leaves_a_record_that_is_older_than_the_push(
    undoer: Undoer, tmp_path: Path
) -> None:
    (old,) = undoer.sandbox.store.records("candidates")
    before = undoer.record(old)
    other = undoer.create_one(email="other@example.com")
    changes = update(3, other, undoer.record(other), notes="new")
    pushed = undoer.push([same_as(before), changes])
    with sqlite3.connect(tmp_path / "data" / "ledger.sqlite") as ledger:
        stamp = before["updated_at"]
        ledger.execute("UPDATE push_rows SET record_id = ?, updated_at = ?", (old, stamp))

    report = undoer.undo(pushed.batch)

    assert {2: "conflict", 3: "restored"} == found(report)
    assert ["not_ours"] == [each.code for each in report.rows[0].problems]
    assert before == undoer.record(old)
    assert None is undoer.record(other)["notes"]


def same_as(record: dict[str, str]) -> Task:
    """A row without an identity that creates the same record again."""
    names = ("first_name", "last_name", "email", "employment_type", "phone")
    return replace(create(2, **{name: record[name] for name in names}), identity={})


def test_a_row_that_is_held_after_a_restart_names_the_answer_that_came(undoer: Undoer) -> None:
    undoer.sandbox.faults.add(Merged(), method="POST")
    first = undoer.push(creates(1), sleep=None)
    undoer.time.pass_minutes(60)

    report = undoer.push(creates(1))

    assert ({2: "held"}, {2: "held"}) == (outcomes(first), outcomes(report))
    (problem,) = listed(report)[0].problems
    assert "the row was sent and answered with a record " in problem.message


class NoRecord:
    """Answer 201 without a record; nothing is created."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Answer."""
        await exchange.send(JSONResponse({"data": None}, 201))


ANSWERS: dict[str, Fault] = {
    "answered 502": Status(502),
    "answered without a record in 'data'": NoRecord(),
    "not answered": Drop("none"),
}
"""What the message on a row says, by the answer to its create."""


@pytest.mark.parametrize("said", ANSWERS)
def test_a_row_that_is_held_says_whether_an_answer_came(undoer: Undoer, said: str) -> None:
    undoer.sandbox.faults.add(ANSWERS[said], method="POST")

    report = undoer.push(creates(1), PushPolicy(policy="hold"))

    (problem,) = listed(report)[0].problems
    assert f"the row was sent and {said}, but its record is not found" == problem.message
