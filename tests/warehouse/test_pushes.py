"""The published copy of the push journal."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from connector.ledger.push_plan import Problem, RowResult
from connector.pushes.batch import BatchReport
from connector.pushes.landed_writes import copy_and_publish
from connector.sandbox.faults import Drop, Status
from connector.sandbox.server import Sandbox
from connector.warehouse.state import last_copied_change, write_pushes
from connector.warehouse.warehouse import Warehouse
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    make_create,
    make_creates,
    make_plan,
    make_update,
    map_outcomes,
)
from tests.support.agency import published, rows
from tests.support.clock import Time

TABLES = ("batches", "rows", "attempts", "problems", "before_images")


def read_push_tables(path: Path) -> dict[str, list[str]]:
    """Return all rows of all push tables as sorted texts."""
    return {
        table: sorted(str(each) for each in rows(path, f"FROM push.{table}")) for table in TABLES
    }


def push_mixed_file(pusher: Pusher) -> BatchReport:
    """Push a file with a rejected, a held, a created, an updated and an invalid row."""
    sandbox = pusher.sandbox
    body = {**make_create(9).fields, "email": "old@example.com"}
    old = sandbox.store.create("candidates", body).record
    tasks = [*make_creates(3), make_update(9, old["id"], old, notes="née")]
    problems = (
        Problem("bad_email", "no email", column="Email", received="x", fix="Write one."),
        Problem("bad_phone", "no phone", column="Phone", received="4.4E+11"),
    )
    sandbox.faults.add(Status(422), method="POST", path=CANDIDATES, nth=1)
    sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES, nth=1)
    report = pusher.push(make_plan(tasks, RowResult(10, "invalid", problems, "bad_email")))
    assert {"held", "rejected", "created", "updated", "invalid"} == {*report.counts}
    assert None is copy_and_publish(pusher.settings)
    return report


def test_the_published_push_tables_equal_the_journal(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        pusher = Pusher(sandbox, tmp_path, time)
        report = push_mixed_file(pusher)
        file = published(tmp_path)
        assert_tables_equal_journal(file, report, pusher)

        before = read_push_tables(file)
        assert None is copy_and_publish(pusher.settings)
        assert before == read_push_tables(file)

        sandbox.faults.clear()
        held = next(row for row in report.rows if row.outcome == "held")
        settled = pusher.resolve(report.batch, held.number, "drop")
        assert None is copy_and_publish(pusher.settings)
        assert_tables_equal_journal(file, settled, pusher)
        (dropped,) = rows(file, f"FROM push.rows WHERE number = {held.number}")
        assert ("not_sent", True) == (dropped["outcome"], dropped["change"] > held.change)


def assert_tables_equal_journal(file: Path, report: BatchReport, pusher: Pusher) -> None:
    """Assert that the published push tables equal the report and the journal of its batch."""
    counted = Counter(each["outcome"] for each in rows(file, "FROM push.rows"))
    assert dict(report.counts) == dict(counted)
    listed = rows(file, "FROM push.rows ORDER BY number")
    assert map_outcomes(report) == {each["number"]: each["outcome"] for each in listed}
    assert len(report.rows) == len(listed)
    (batch,) = rows(file, "FROM push.batches")
    assert (report.batch, report.outcome) == (batch["batch"], batch["outcome"])
    told = rows(file, "FROM push.problems ORDER BY number, place")
    assert [
        (row.number, each.code, each.received) for row in report.rows for each in row.problems
    ] == [(each["number"], each["code"], each["received"]) for each in told]
    with pusher.journal() as journal:
        made, images = journal.attempts(report.batch), journal.before_images(report.batch)
    attempts = rows(file, "FROM push.attempts ORDER BY number, attempt")
    assert [(a.number, a.attempt, a.fate, json.loads(a.body or b"")) for a in made] == [
        (a["number"], a["attempt"], a["fate"], json.loads(a["body"])) for a in attempts
    ]
    kept = rows(file, "FROM push.before_images")
    assert [(9, images[0].record)] == [(a["number"], json.loads(a["record"])) for a in kept]


def test_an_older_copy_of_the_journal_does_not_overwrite_a_newer_one(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.prepare()
    image = {"batch": "b", "number": 2, "step": "first", "noted_at": None}
    newer = {"before_images": [{**image, "record": {"v": 2}, "change": 8}]}
    older = {"before_images": [{**image, "record": {"v": 1}, "change": 7}]}

    assert warehouse.write(write_pushes, 0, [newer])
    assert not warehouse.write(write_pushes, 0, [older])

    assert 8 == warehouse.read(last_copied_change)
    (kept,) = rows(warehouse.work, "FROM push.before_images")
    assert {"v": 2} == json.loads(kept["record"])
