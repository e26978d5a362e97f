"""Rows in doubt are resolved by the user or by a pull, and pushed records are loaded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from connector.errors import Misused, NotFound
from connector.pulls.run import pull
from connector.pushes.run import DeclaredRecord
from connector.sandbox.faults import Drop, HtmlPage
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create_lead,
    list_writes,
    make_conversion,
    make_create,
    make_update,
    map_outcomes,
)
from tests.support.agency import differences, published
from tests.support.clock import work_rows


def push_held_rows(pusher: Pusher, *numbers: int) -> str:
    """Push creates with these row numbers while responses are lost, so that all are held. Returns
    the batch.
    """
    for _ in numbers:
        pusher.sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES)
    tasks = [make_create(number, status="screening") for number in numbers]
    report = pusher.push(tasks)
    assert dict.fromkeys(numbers, "held") == map_outcomes(report)
    return report.batch


def test_a_refusal_of_a_row_sent_again_does_not_hide_the_record_of_its_first_request(
    tmp_path: Path,
) -> None:
    with Sandbox(behaviours={"duplicate_emails": "refused"}) as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        batch = push_held_rows(pusher, 2)
        sandbox.apply_delayed_effects()
        report = pusher.resolve(batch, 2, "resend")
        made = [*sandbox.store.records("candidates")]

    assert {2: "created"} == map_outcomes(report)
    assert made == [report.rows[0].record_id]


def test_a_row_that_may_still_be_applied_is_not_sent_again(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path, connections=1)
        for fault in ("later", "none", "later"):
            sandbox.faults.add(Drop(fault), method="POST", path=CANDIDATES)
        tasks = [make_create(2), make_create(3), make_create(4, status="screening")]
        left = pusher.push(tasks, sleep=None, now=pusher.wall_time)
        with pusher.journal() as journal:
            assert [2, 3, 4] == [row.number for row in journal.unconfirmed()]
        with pytest.raises(Misused, match="may still apply"):
            pusher.resolve(left.batch, 3, "resend")
        sandbox.apply_delayed_effects()
        pusher.time.seconds += 600
        before = list_writes(sandbox)
        ended = pusher.push(tasks, now=pusher.wall_time)

    assert 3 == len(before)
    assert {2: "created", 3: "held", 4: "created"} == map_outcomes(ended)


def test_a_404_page_of_a_proxy_does_not_count_as_a_missing_record(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        (id,) = sandbox.store.records("candidates")
        pusher = Pusher(sandbox, tmp_path, connections=1)
        batch = push_held_rows(pusher, 2)
        sandbox.faults.add(HtmlPage(404), method="GET", path=f"{CANDIDATES}/{id}")

        with pytest.raises(NotFound):
            pusher.resolve(batch, 2, DeclaredRecord(id))


def test_written_records_are_loaded_immediately(tmp_path: Path) -> None:
    counts = {"candidates": 3, "content_types": 1, "content_items": 2}
    with Sandbox(counts=counts) as sandbox:
        ((id, base), *_) = sandbox.store.records("candidates").items()
        pusher = Pusher(sandbox, tmp_path, connections=2)
        asyncio.run(pull(pusher.settings))
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
        rows = [
            make_create(2),
            make_create(3, status="screening"),
            make_update(4, id, base, phone="+44 1"),
        ]
        report = pusher.push(rows, now=pusher.wall_time)
        converted = pusher.push(
            [make_conversion(2, create_lead(sandbox, "ada"))], now=pusher.wall_time
        )
        found = work_rows(
            tmp_path,
            "SELECT id, email, phone, status, _hydrated_at IS NOT NULL AS is_whole"
            " FROM landing.candidates",
        )
        history = work_rows(
            tmp_path, f"SELECT _changed FROM history.candidates WHERE id = '{id}' ORDER BY ALL"
        )
        queued = work_rows(tmp_path, "SELECT resource, reason FROM sync.queue")
        asyncio.run(pull(pusher.settings))
        differ = differences(sandbox, published(tmp_path))
        records = sandbox.store.records("candidates")

    assert {"created": 2, "updated": 1} == dict(report.counts)
    assert {"converted": 1} == dict(converted.counts)
    assert {
        id: (each["email"], each["phone"], each["status"], True) for id, each in records.items()
    } == {row["id"]: (row["email"], row["phone"], row["status"], row["is_whole"]) for row in found}
    assert 2 == len(history)
    assert [{"resource": "leads", "reason": "pushed"}] == queued
    assert [] == differ
