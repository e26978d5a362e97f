"""The push journal is durable, writable by one push, and prevents repeated writes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.client.messages import build_create_request
from connector.errors import LeaseLost, UnknownName
from connector.ledger import journal as journal_module
from connector.ledger.journal import Journal
from connector.ledger.journal_records import JournalChanges, PendingCount, RowKey, Transition
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.ledger.push_plan import Problem, PushPlan, PushPolicy, RowResult, fingerprint
from connector.ledger.push_states import Task
from tests.pushes.pushing import make_conversion, make_create, make_creates, make_plan, make_update
from tests.support.clock import START, Clock

CLOCK = Clock()


@contextmanager
def open_journal(ledger: Ledger, run_id: str) -> Iterator[JournalWriter]:
    """Take the push lease for the run, yield its journal, and release the lease."""
    ledger.take_lease(PUSH_LEASE, LeaseOwner.of_this_process(run_id, "push"), START)
    yield JournalWriter(ledger, run_id, now=CLOCK)
    ledger.release_lease(PUSH_LEASE, run_id)


def record_unsent_attempt(journal: JournalWriter, key: RowKey, task: Task) -> None:
    """Record that a create is about to be sent."""
    request = build_create_request(CATALOG["candidates"], task.fields)
    journal.record_attempt(key, request, before=None, sent_after=START)


def record_applied_row(journal: JournalWriter, batch: str, task: Task, id: str) -> None:
    """Record that a create was sent, and accepted with the record's id."""
    record_unsent_attempt(journal, (batch, task.number), task)
    journal.record_transition(
        (batch, task.number), Transition("accepted", record_id=id, fate="accepted")
    )


def map_outcomes_and_codes(journal: Journal, batch: str) -> dict[int, tuple[str, str]]:
    """Return outcome and code of each row of a batch by its number."""
    return {row.number: (row.outcome, row.code) for row in journal.rows(batch)}


def test_the_journal_is_synchronised_to_disk_at_each_commit(tmp_path: Path) -> None:
    rows = make_creates(6)
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        batch = journal.create_batch(make_plan(rows), PushPolicy())
        with ledger.reading() as connection:
            assert [(2,)] == connection.execute("PRAGMA synchronous").fetchall()
            assert [("wal",)] == connection.execute("PRAGMA journal_mode").fetchall()
        log = tmp_path / "ledger.sqlite-wal"
        sizes = []
        for task in rows:
            record_unsent_attempt(journal, (batch, task.number), task)
            sizes.append(log.stat().st_size)
        whole = log.stat().st_size
        for intended, size in enumerate(sizes, 1):
            for torn in {size, (size + whole) // 2, whole - 1, whole} | {size + 7}:
                survivor = tmp_path / f"cut-{intended}-{torn}"
                survivor.mkdir()
                shutil.copy(tmp_path / "ledger.sqlite", survivor)
                kept = log.read_bytes()[: max(size, min(torn, whole))]
                (survivor / "ledger.sqlite-wal").write_bytes(kept)
                with Ledger(survivor) as opened:
                    found = Journal(opened).attempts(batch)
                assert {task.number for task in rows[:intended]} <= {f.number for f in found}
                shutil.rmtree(survivor)


def test_a_push_that_lost_its_lease_cannot_write_to_the_journal(tmp_path: Path) -> None:
    (task,) = make_creates(1)
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as held_up:
            batch = held_up.create_batch(make_plan([task]), PushPolicy())
        with open_journal(ledger, "b") as journal:
            with pytest.raises(LeaseLost, match="run a"):
                record_unsent_attempt(held_up, (batch, task.number), task)
            with pytest.raises(LeaseLost):
                held_up.record_run_end(batch, "done", requests=0, seconds=0)

            assert () == journal.attempts(batch)
            assert {2: ("not_sent", "")} == map_outcomes_and_codes(journal, batch)


def test_an_attempt_is_recorded_with_the_exact_request_body(tmp_path: Path) -> None:
    task = make_create(2, last_name="Müller 🙂")
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        batch = journal.create_batch(make_plan([task]), PushPolicy())
        record_unsent_attempt(journal, (batch, 2), task)
        (attempt,) = journal.attempts(batch)

    assert (
        build_create_request(CATALOG["candidates"], task.fields).body
        == (attempt.body or "").encode()
    )
    assert ("POST", "/api/v1/candidates", START, None) == (
        attempt.method,
        attempt.path,
        attempt.sent_after,
        attempt.fate,
    )


def test_rows_in_flight_are_in_doubt_after_a_crash(tmp_path: Path) -> None:
    first, second = make_creates(2)
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            batch = journal.create_batch(make_plan([first, second]), PushPolicy())
            record_unsent_attempt(journal, (batch, 2), first)
        with open_journal(ledger, "b") as journal:
            assert 1 == journal.mark_interrupted_rows()
            assert 0 == journal.mark_interrupted_rows()
            states = {row.key[1]: row.status.state for row in journal.rows_to_push(batch)}

    assert {2: "unknown", 3: "planned"} == states


def test_pushing_the_same_file_again_continues_its_batch(tmp_path: Path) -> None:
    first, second, third = make_creates(3)
    plan = make_plan([first, second, third])
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            batch = journal.create_batch(plan, PushPolicy())
            record_applied_row(journal, batch, first, "id-2")
        found = RowResult(3, "duplicate", (Problem("same_record", "is there"),), "same_record")
        corrected = replace(third, fields={**third.fields, "phone": "1"})
        later = PushPlan(
            plan.resource, plan.mode, plan.file, plan.digest, (first, corrected), (found,)
        )
        with open_journal(ledger, "b") as journal:
            assert batch == journal.create_batch(later, PushPolicy())
            assert {
                2: ("created", ""),
                3: ("duplicate", "same_record"),
                4: ("not_sent", ""),
            } == map_outcomes_and_codes(journal, batch)
            assert ["1"] == [row.task.fields["phone"] for row in journal.rows_to_push(batch)]


def test_the_same_file_with_another_policy_starts_a_new_batch(tmp_path: Path) -> None:
    plan = make_plan(make_creates(2))
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            first = journal.create_batch(plan, PushPolicy())
        with open_journal(ledger, "b") as journal:
            second = journal.create_batch(plan, PushPolicy(overwrite=True))

            assert ("a", "b") == (first, second)
            assert ["b", "a"] == [each.batch for each in journal.batches()]


def test_equal_rows_of_a_file_are_planned_once(tmp_path: Path) -> None:
    first = make_create(2)
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        batch = journal.create_batch(
            make_plan([first, make_create(3), replace(first, number=4)]), PushPolicy()
        )
        row = [*journal.rows(batch)][2]

    assert ("duplicate", "same_row", (batch, 2)) == (row.outcome, row.code, row.same_row)
    assert "row 2 of the file has the same values" == row.problems[0].message


def test_a_write_applied_by_another_file_is_unchanged_with_its_record_id(tmp_path: Path) -> None:
    """The row is sent again only with `again`, or if the earlier write was undone."""
    task = make_create(2)
    other = replace(task, number=9)
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            first = journal.create_batch(make_plan([task]), PushPolicy())
            record_applied_row(journal, first, task, "id-2")
        with open_journal(ledger, "b") as journal:
            second = journal.create_batch(make_plan([other], name="b.csv"), PushPolicy())
            (row,) = journal.rows(second)
        with open_journal(ledger, "c") as journal:
            third = journal.create_batch(make_plan([other], name="c.csv"), PushPolicy(resend=True))
            wanted_again = map_outcomes_and_codes(journal, third)
        with open_journal(ledger, "d") as journal:
            journal.mark_undone({(first, 2): None})
            fourth = journal.create_batch(make_plan([other], name="d.csv"), PushPolicy())
            undone = map_outcomes_and_codes(journal, fourth)

    assert ("unchanged", "already_pushed", "id-2") == (row.outcome, row.code, row.record_id)
    assert {9: ("not_sent", "")} == wanted_again == undone


def test_a_converted_lead_is_never_converted_again(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            batch = journal.create_batch(make_plan([make_conversion(2, "lead-1")]), PushPolicy())
            record_applied_row(journal, batch, make_create(2), "lead-1")
        with open_journal(ledger, "b") as journal:
            second = journal.create_batch(
                make_plan([make_conversion(5, "lead-1")], name="b.csv"), PushPolicy(resend=True)
            )
            assert {5: ("unchanged", "already_pushed")} == map_outcomes_and_codes(journal, second)
            with (
                pytest.raises(sqlite3.IntegrityError, match="UNIQUE"),
                ledger.writing() as connection,
            ):
                connection.execute("UPDATE push_rows SET state = 'intent' WHERE batch = 'b'")


def test_an_update_counts_as_applied_only_while_it_is_the_latest(tmp_path: Path) -> None:
    base = {"phone": "1"}
    there = make_update(2, "id-1", base, phone="2")
    back = make_update(2, "id-1", base, phone="1")
    names = iter("abcdef")
    results = []
    with Ledger(tmp_path) as ledger:
        for number, task in enumerate([there, there, back, there]):
            with open_journal(ledger, next(names)) as journal:
                batch = journal.create_batch(make_plan([task], name=f"{number}.csv"), PushPolicy())
                results.append(map_outcomes_and_codes(journal, batch)[2][0])
                if results[-1] == "not_sent":
                    record_applied_row(journal, batch, make_create(2), "id-1")

    assert ["not_sent", "unchanged", "not_sent", "not_sent"] == results


def test_a_row_in_doubt_in_another_batch_is_taken_over(tmp_path: Path) -> None:
    task = make_create(2)
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            first = journal.create_batch(make_plan([task]), PushPolicy())
            record_unsent_attempt(journal, (first, 2), task)
            journal.mark_interrupted_rows()
        with open_journal(ledger, "b") as journal:
            second = journal.create_batch(
                make_plan([replace(task, number=7)], name="b.csv"), PushPolicy()
            )
            assert {7: ("held", "taken_over")} == map_outcomes_and_codes(journal, second)
            assert [(first, 2)] == [row.key for row in journal.rows_to_push(second)]
            before = next(journal.changes_since(0)).last
            journal.record_transition(
                (first, 2), Transition("found", "found_after_doubt", record_id="id-2")
            )
            (row,) = journal.rows(second)
            changed = [row for part in journal.changes_since(before) for row in part.rows]

    assert ("unchanged", "id-2") == (row.outcome, row.record_id)
    # A copy of the journal contains the changes of both rows.
    assert {("a", 2), ("b", 7)} == {(each.batch, each.number) for each in changed}


def read_changes(journal: Journal, since: int) -> JournalChanges:
    """Return all journal changes after the change number `since`, with their portions joined."""
    parts = [*journal.changes_since(since)]
    assert 1 == len({part.last for part in parts})
    whole = {
        name: tuple(each for part in parts for each in getattr(part, name))
        for name in ("batches", "rows", "attempts", "before_images")
    }
    return JournalChanges(parts[0].last, **whole)


def test_each_journal_change_is_read_once(tmp_path: Path) -> None:
    first, second = make_creates(2)
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        batch = journal.create_batch(make_plan([first, second]), PushPolicy())
        whole = read_changes(journal, 0)
        record_unsent_attempt(journal, (batch, 2), first)
        problems = (Problem("validation_failed", "is taken", field="email", received="a@b.c"),)
        journal.record_transition(
            (batch, 2), Transition("refused", "validation_failed", problems, fate="refused")
        )
        later = read_changes(journal, whole.last)
        nothing = read_changes(journal, later.last)

    assert [1, 2, 0] == [len(whole.batches), len(whole.rows), len(whole.attempts)]
    assert [2] == [row.number for row in later.rows]
    assert ["refused"] == [each.fate for each in later.attempts]
    assert problems == later.rows[0].problems
    assert ((), (), (), ()) == (
        nothing.batches,
        nothing.rows,
        nothing.attempts,
        nothing.before_images,
    )


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_changes_read_in_portions_equal_all_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(journal_module, "ROWS_AT_ONCE", at_once)
    doubtful, *tasks = make_creates(6)
    problems = (Problem("bad_email", "no email"), Problem("bad_phone", "no phone"))
    verdicts = [RowResult(number, "invalid", problems, "bad_email") for number in (20, 31)]
    with Ledger(tmp_path) as ledger:
        with open_journal(ledger, "a") as journal:
            first = journal.create_batch(make_plan([doubtful]), PushPolicy())
            record_unsent_attempt(journal, (first, 2), doubtful)
            journal.mark_interrupted_rows()
        with open_journal(ledger, "b") as journal:
            plan = make_plan([doubtful, *tasks], *verdicts, name="b.csv")
            second = journal.create_batch(plan, PushPolicy())
            before = next(journal.changes_since(0)).last
            record_unsent_attempt(journal, (second, 5), tasks[2])
            work, left = [*journal.rows_to_push(second)], journal.count_pending(second)
            rows, changed = [*journal.rows(second)], read_changes(journal, before)
            whole = read_changes(journal, 0)

    keys = [(first, 2), *((second, number) for number in range(3, 8))]
    assert keys == [each.key for each in work]
    assert PendingCount(6, frozenset(((first, 2), (second, 5)))) == left
    assert [1, 0, 0, 1, 0, 0] == [len(each.status.attempts) for each in work]
    assert [2, 3, 4, 5, 6, 7, 20, 31] == [row.number for row in rows]
    assert [problems, problems] == [row.problems for row in rows[-2:]]
    assert [(second, 5)] == [(row.batch, row.number) for row in changed.rows]
    assert [5] == [each.number for each in changed.attempts]
    assert 9 == len({(row.batch, row.number) for row in whole.rows}) == len(whole.rows)


def test_the_journal_returns_applied_writes_and_rows_in_doubt(tmp_path: Path) -> None:
    applied, refused, planned, in_doubt = make_creates(4)
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        batch = journal.create_batch(make_plan([applied, refused, planned, in_doubt]), PushPolicy())
        record_applied_row(journal, batch, applied, "id-2")
        record_unsent_attempt(journal, (batch, 3), refused)
        journal.record_transition(
            (batch, 3), Transition("refused", "validation_failed", fate="refused")
        )
        record_unsent_attempt(journal, (batch, 5), in_doubt)
        prints = {task.number: fingerprint(task) for task in (applied, refused, planned, in_doubt)}
        found = journal.find_earlier_rows(prints.values())

    assert {prints[2]: "created", prints[5]: "held"} == {
        print_: row.outcome for print_, row in found.items()
    }


def test_a_fingerprint_depends_only_on_the_written_values(tmp_path: Path) -> None:
    task = make_create(2)

    assert fingerprint(task) == fingerprint(replace(task, number=9, base={"phone": "x"}))
    assert fingerprint(task) != fingerprint(replace(task, afterwards={"status": "screening"}))
    assert fingerprint(task) != fingerprint(make_create(2, phone="+44 1"))
    assert fingerprint(make_conversion(2, "a")) == fingerprint(
        replace(make_conversion(3, "a"), identity={"email": "x"})
    )
    assert fingerprint(make_conversion(2, "a")) != fingerprint(make_conversion(2, "b"))


def test_resuming_an_unknown_batch_fails_with_the_known_batches(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger, open_journal(ledger, "a") as journal:
        journal.create_batch(make_plan(make_creates(1)), PushPolicy())
        with pytest.raises(UnknownName, match="'b' is not a batch") as raised:
            journal.resume_batch("b")

    assert ("a",) == raised.value.allowed
