"""Journal of pushes: batches that continue, rows that repeat others, and rows that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.errors import UnknownName
from connector.state.database import Database
from connector.state.journal import HELD_BACK, Journal, Plan
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


def test_a_finished_file_begins_another_batch(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)), "one")
    end(journal, row, "created")
    journal.end("one", "done", requests=1, seconds=1.0)
    (again,) = begin(journal, plan_of(create(2)), "two")

    assert ("two", "unchanged", "already_pushed", "c9") == (
        *(again.batch, again.outcome, again.code, again.record_id),
    )


def test_rows_that_were_held_back_can_be_sent_later(journal: Journal) -> None:
    warned, other = Row(2, "candidates"), create(3)
    warned.end("refused", "not_sent", HELD_BACK)
    begin(journal, plan_of(warned, other))
    again = begin(journal, plan_of(create(2), other))

    assert ["planned", "planned"] == [row.state for row in again]


def test_equal_rows_of_a_file_are_sent_once(journal: Journal) -> None:
    rows = begin(journal, plan_of(create(2, "same"), create(3), create(4, "same")))

    assert [("not_sent", ""), ("not_sent", ""), ("duplicate", "same_row")] == outcomes(rows)


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


def test_a_row_that_waits_is_compared_again_when_its_batch_continues(journal: Journal) -> None:
    """The other file may have been pushed meanwhile, although it was begun later."""
    (waiting,) = begin(journal, plan_of(create(2)), "one")
    send(journal, waiting, "limited")
    waiting.state, waiting.outcome = "planned", "not_sent"
    journal.save(waiting)
    (other,) = begin(journal, plan_of(create(2), file="b"), "two")
    end(journal, other, "created")
    journal.resume("one")

    assert [("unchanged", "already_pushed")] == outcomes(journal.rows("one"))


def test_applied_rows_are_sent_again_on_request_but_no_conversion(journal: Journal) -> None:
    convert = Row(3, "candidates", "convert", record_id="l1")
    row, conversion = begin(journal, plan_of(create(2), convert))
    end(journal, row, "created")
    end(journal, conversion, "converted", "l1")
    again = begin(journal, plan_of(create(2), convert, file="b"), resend=True)

    assert [("not_sent", ""), ("unchanged", "already_pushed")] == outcomes(again)


def test_undone_rows_can_be_pushed_again(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    end(journal, row, "created")
    journal.mark_undone(row.key, None, by="Ann")
    (again,) = begin(journal, plan_of(create(2), file="b"))

    assert ("planned", "Ann") == (again.state, journal.batch(row.batch).undone_by)


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


def test_records_of_other_rows_and_known_records_are_taken(journal: Journal) -> None:
    plan = plan_of(create(2), create(3))
    batch = journal.begin(plan, Policy(), "one", known_ids=["old"]).batch
    first, second = journal.rows(batch)
    end(journal, first, "created", "c7")

    assert frozenset({"old", "c7"}) == journal.taken(second.key, ["old", "c7", "c8"])
    assert frozenset({"old"}) == journal.taken(first.key, ["old", "c7"])


def test_open_rows_are_found_by_the_record_that_they_write(journal: Journal) -> None:
    named, nameless = create(2), Row(3, "jobs", "create", fields={"title": "x"})
    for row in begin(journal, plan_of(named, nameless)):
        send(journal, row)

    assert [2] == [number for _, number in journal.open_subjects().values()]
    assert 2 == len(journal.unconfirmed())
    health = journal.health()
    assert health.open is not None
    assert (2, None) == (health.open.rows, health.held)


def test_an_emptied_row_still_prevents_a_second_create(journal: Journal) -> None:
    (row,) = begin(journal, plan_of(create(2)))
    end(journal, row, "created")
    journal.empty([row.key])

    (emptied,) = journal.rows(row.batch)
    assert ({}, None, []) == (emptied.fields, emptied.before, emptied.attempts)
    assert [("unchanged", "already_pushed")] == outcomes(
        begin(journal, plan_of(create(2), file="b"))
    )


def test_an_unknown_batch_is_named(journal: Journal) -> None:
    begin(journal, plan_of(create(2)), "one")

    with pytest.raises(UnknownName, match="'two' is not a batch"):
        journal.batch("two")
