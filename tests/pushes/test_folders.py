"""A push from a second data folder finds its rows among the newest records."""

from __future__ import annotations

import asyncio
from pathlib import Path

from connector.pulls.run import pull
from connector.sandbox.faults import Status
from connector.sandbox.server import Sandbox
from connector.state.row import Row
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    list_writes,
    make_create,
    make_creates,
    make_plan,
    map_codes,
    map_outcomes,
)

ROWS = 5
PEOPLE = "first_name,last_name,email,employment_type\n" + "".join(
    f"Ann,Lee {n},ann{n}@people.example,permanent\n" for n in range(ROWS)
)
LIST = "page=1&per_page=100&sort=created_at&order=desc"


def test_only_rows_with_an_existing_record_are_skipped(tmp_path: Path) -> None:
    """Emails match regardless of case and spaces. A row without an identity is sent."""
    nameless = Row(9, "candidates", "create", None, make_create(9).fields)
    with Sandbox() as sandbox:
        theirs = sandbox.store.create(
            "candidates", {**make_create(2).fields, "email": "ANN2@example.com"}
        )
        rows = [make_create(2, email=" ann2@example.com"), make_create(3), nameless]
        report = Pusher(sandbox, tmp_path).push(rows)
        sent = list_writes(sandbox)

    assert {2: "duplicate", 3: "created", 9: "created"} == map_outcomes(report)
    assert {2: "already_there", 3: "", 9: ""} == map_codes(report)
    assert theirs.record["id"] == report.rows[0].record_id
    assert (2, 3, "partial") == (len(sent), report.exit_status, report.outcome)


def test_records_known_to_the_local_copy_are_not_reported_as_duplicates(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.store.create("candidates", dict(make_create(2).fields))
        asyncio.run(pull(pusher.settings, ["candidates"]))
        first = pusher.push([make_create(2, phone="1")], now=pusher.wall_time)
        second = pusher.push(make_plan([make_create(2, phone="2")]), now=pusher.wall_time)

    assert [{2: "created"}] * 2 == [map_outcomes(first), map_outcomes(second)]


def test_no_create_is_sent_if_the_newest_records_cannot_be_read(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.faults.add(Status(500), method="GET", path=CANDIDATES, times=None)
        first = pusher.push(make_creates(ROWS))
        sent = list_writes(sandbox)
        sandbox.faults.clear()
        second = pusher.push(make_creates(ROWS))

    assert ([], {"not_sent": ROWS}) == (sent, dict(first.counts))
    assert ({"created": ROWS}, first.batch) == (dict(second.counts), second.batch)
