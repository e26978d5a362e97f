"""Journal of pushes: batches that continue, rows that repeat others, and rows that have ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.errors import WarehouseError
from connector.state.database import Database
from connector.state.journal import Journal, Plan
from connector.state.row import (
    Attempt,
    Fate,
    Outcome,
    Policy,
    Problem,
    Row,
    from_columns,
    to_columns,
)
from tests.support.errors import has_code

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """Times that always increase."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """Return the next time."""
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty journal."""
    return Journal(Database(tmp_path), now=Clock())


def create(number: int, name: str = "", **more: Any) -> Row:
    """Return a row that creates a candidate."""
    email = {"email": f"{name or number}@a.example"}
    return Row(number, "candidates", "create", fields=email, identity=email, **more)


def update(number: int, **fields: str) -> Row:
    """Return a row that updates one candidate."""
    return Row(number, "candidates", "update", fields=fields, record_id="c1")


def plan_of(*rows: Row, file: str = "a") -> Plan:
    """Return the plan of a file."""
    copies = [replace(row, attempts=[]) for row in rows]
    return Plan("candidates", "upsert", f"{file}.csv", file * 64, copies)


def begin(journal: Journal, plan: Plan, name: str = "", **policy: bool) -> list[Row]:
    """Begin a batch, and return its rows."""
    batch = journal.begin(plan, Policy(**policy), name or plan.file)
    return journal.rows(batch.batch)


def send(journal: Journal, row: Row, fate: Fate | None = None) -> Row:
    """Save an attempt of a row."""
    row.attempts.append(Attempt(False, "POST", "/candidates", "{}", NOW, NOW, fate))
    row.state, row.outcome = "sent", "held"
    journal.save(row)
    return row


def end(journal: Journal, row: Row, outcome: Outcome, record_id: str = "c9") -> None:
    """Send a row and end it."""
    send(journal, row, "accepted")
    row.end("done", outcome)
    row.record_id = record_id
    journal.save(row)


def outcomes(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return outcome and code of each row."""
    return [(row.outcome, row.code) for row in rows]


def test_a_row_is_read_as_it_was_saved(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2, then={"status": "x"})))
    row.attempts.append(Attempt(True, "PUT", "/c", '{"a": "é"}', NOW, NOW, "lost", "why", "502"))
    row.before, row.is_created, row.updated_at = {"id": "c9", "n": [1, None]}, True, "yesterday"
    row.problems = (Problem("code", "Message", "Column", found="x"),)
    row.warnings = (Problem("other", "Message"),)
    journal.save(row)

    assert row == journal.row(row.key)
    assert to_columns(row) == to_columns(from_columns(to_columns(row)))


def test_a_row_that_has_ended_never_changes(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    end(journal, row, "created")
    row.end("held", "held")

    with pytest.raises(AssertionError):
        journal.save(row)


def test_an_unfinished_file_continues_its_batch(journal: Journal) -> None:
    first, second, _ = begin(journal, plan_of(create(2), create(3), create(4)), "one")
    end(journal, first, "created")
    send(journal, second)
    again = begin(journal, plan_of(create(2), create(3), create(4, "corrected")), "two")

    assert ["one"] * 3 == [row.batch for row in again]
    assert ["done", "sent", "planned"] == [row.state for row in again]
    assert {"email": "corrected@a.example"} == again[2].fields


@pytest.mark.parametrize(("plan", "policy"), [
    (plan_of(create(2), create(3), file="b"), {}), (plan_of(create(2)), {}),
    (plan_of(create(2), create(3)), {"overwrite": True}),
])  # fmt: skip
def test_another_file_or_policy_begins_another_batch(
    journal: Journal, plan: Plan, policy: dict[str, bool]
) -> None:
    begin(journal, plan_of(create(2), create(3)), "one")

    assert "two" == begin(journal, plan, "two", **policy)[0].batch


def test_a_row_follows_the_open_row_of_another_file(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    send(journal, row)
    (other,) = begin(journal, plan_of(create(7, "2"), file="b"))
    assert ("held", "taken_over", row.key) == (other.outcome, other.code, other.same)
    assert [row.key] == [each.key for each in journal.unfinished(other.batch)]

    row.end("done", "created")
    row.record_id = "c9"
    journal.save(row)

    (other,) = journal.rows(other.batch)
    assert ("unchanged", "c9") == (other.outcome, other.record_id)


def test_applied_rows_are_sent_again_on_request_but_no_conversion(journal: Journal) -> None:
    convert = Row(3, "candidates", "convert", record_id="l1")
    row, conversion = begin(journal, plan_of(create(2), convert))
    end(journal, row, "created")
    end(journal, conversion, "converted", "l1")
    again = begin(journal, plan_of(create(2), convert, file="b"), resend=True)

    assert [("not_sent", ""), ("unchanged", "already_pushed")] == outcomes(again)


@pytest.mark.parametrize("is_changed_since", [False, True])
def test_an_update_is_sent_again_if_another_row_changed_the_record(
    journal: Journal, *, is_changed_since: bool
) -> None:
    (row,) = begin(journal, plan_of(update(2, city="York")))
    end(journal, row, "updated", "c1")
    if is_changed_since:
        (other,) = begin(journal, plan_of(update(2, city="Leeds"), file="b"))
        end(journal, other, "updated", "c1")
    (again,) = begin(journal, plan_of(update(2, city="York"), file="c"))

    assert ("planned" if is_changed_since else "done") == again.state


def test_an_emptied_row_still_prevents_a_second_create(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    end(journal, row, "created")
    journal.empty([row.key])

    (emptied,) = journal.rows(row.batch)
    assert ({}, None, []) == (emptied.fields, emptied.before, emptied.attempts)
    assert [("unchanged", "already_pushed")] == outcomes(
        begin(journal, plan_of(create(2), file="b"))
    )


def test_no_write_is_open_twice(journal: Journal) -> None:
    first, second = begin(journal, plan_of(create(2), create(3)))
    send(journal, first)
    second.fields, second.identity = first.fields, first.identity

    with pytest.raises(sqlite3.IntegrityError):
        send(journal, second)
    assert ["sent", "planned"] == [row.state for row in journal.rows(first.batch)]


def test_a_row_that_lacks_its_attempts_is_damage(journal: Journal, tmp_path: Path) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    send(journal, row)
    Database(tmp_path).write("UPDATE rows SET answer = '{}'")

    with pytest.raises(WarehouseError, check=has_code("state_damaged")):
        journal.rows(row.batch)
