"""Two data folders push one file: the second one finds its rows among the newest records."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.catalog import declaration
from connector.catalog.page import Page
from connector.ledger.push_states import Task
from connector.pulls.run import pull
from connector.pushes.create_lookup import find_existing
from connector.pushes.push_row import ClaimedRecords, NewestBefore
from connector.sandbox.faults import Status
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    codes,
    create,
    creates,
    emails,
    file_of,
    listed,
    outcomes,
    writes,
)
from tests.support.command import call, variables

ROWS = 5
PEOPLE = "first_name,last_name,email,employment_type\n" + "".join(
    f"Ann,Lee {n},ann{n}@people.example,permanent\n" for n in range(ROWS)
)
_BOOKING = {
    "booking_type": "interview",
    "start_datetime": "2026-01-05T10:00:00Z",
    "candidate_id": "c",
}
LIST = "page=1&per_page=100&sort=created_at&order=desc"


def test_a_second_folder_creates_nothing_again(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        statuses = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
            words = ["push", "candidates", str(folder / "people.csv"), "--mode", "create"]
            environ = variables(sandbox.base_url, folder, sandbox.key)
            foreseen = call([*words, "--json"], environ)
            before = len(sandbox.log)
            done = call([*words, "--apply", "--no-pull", "--json"], environ)
            asked = [f"{each.method} {each.query}" for each in sandbox.log[before:]]
            statuses.append((done.status, foreseen.object["requests_expected"], len(asked)))
        made = sandbox.store.records("candidates")
        report = (tmp_path / "two" / "people.report.csv").read_text(encoding="utf-8-sig")

    assert [(0, ROWS + 1, ROWS + 1), (3, ROWS + 1, 1)] == statuses
    assert [f"GET {LIST}"] == asked
    assert ROWS == done.object["duplicate"] == len(made)
    for id in made:
        assert "duplicate,already_there" in report
        assert id in report


def test_only_rows_whose_record_is_there_are_left_out(tmp_path: Path) -> None:
    """Other rows of the file are created; letter case and blanks of an address make no difference;
    and a row that nothing identifies is sent, since nothing could tell it.
    """
    nameless = Task(9, "create", "candidates", create(9).fields)
    with Sandbox() as sandbox:
        theirs = sandbox.store.create(
            "candidates", {**create(2).fields, "email": "ANN2@example.com"}
        )
        rows = [create(2, email=" ann2@example.com"), create(3), nameless]
        report = Pusher(sandbox, tmp_path).push(rows)
        sent = writes(sandbox)

    assert {2: "duplicate", 3: "created", 9: "created"} == outcomes(report)
    assert {2: "already_there", 3: "", 9: ""} == codes(report)
    assert theirs.record["id"] == listed(report)[0].record_id
    assert (2, 3, "partial") == (len(sent), report.exit_status, report.outcome)


@pytest.mark.parametrize(
    ("resource", "identity", "shown", "found"),
    [
        ("bookings", _BOOKING, {**_BOOKING, "start_datetime": "2026-01-05T10:00:00+00:00"}, ("a",)),
        ("bookings", _BOOKING, {**_BOOKING, "start_datetime": "2026-01-05T11:00:00Z"}, ()),
        ("companies", {"name": "Wren & Co"}, {"name": "wren & co "}, ("a",)),
        ("companies", {"name": "Wren & Co"}, {"name": None}, ()),
        ("jobs", {"title": "Welder", "company_id": "c"}, {"title": "Welder"}, ()),
    ],
)
def test_an_identity_is_compared_whole(
    resource: str, identity: dict[str, str], shown: dict[str, str | None], found: tuple[str, ...]
) -> None:
    declared, at = declaration(resource), datetime(2026, 1, 5, tzinfo=UTC)
    item = declared.record({"id": "a", **shown}, is_item=True)
    page = Page((item,), 1, 100, 1, 1, at, 0.1, received_at=at)
    steps = find_existing(declared, identity)

    assert NewestBefore() == next(steps)
    if found:
        # Which of them are known here is asked; none is.
        assert ClaimedRecords(found) == steps.send(page)
    with pytest.raises(StopIteration) as ended:
        steps.send(frozenset() if found else page)
    assert found == ended.value.value


def test_what_is_known_here_is_not_told(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.store.create("candidates", dict(create(2).fields))
        asyncio.run(pull(pusher.settings, ["candidates"]))
        first = pusher.push([create(2, phone="1")], now=pusher.wall)
        second = pusher.push(file_of([create(2, phone="2")]), now=pusher.wall)

    assert [{2: "created"}] * 2 == [outcomes(first), outcomes(second)]


def test_no_create_is_sent_without_the_look(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.faults.add(Status(500), method="GET", path=CANDIDATES, times=None)
        first = pusher.push(creates(ROWS))
        sent = writes(sandbox)
        sandbox.faults.clear()
        second = pusher.push(creates(ROWS))

    assert ([], {"not_sent": ROWS}) == (sent, dict(first.counts))
    assert ({"created": ROWS}, first.batch) == (dict(second.counts), second.batch)


@pytest.mark.parametrize("newer", [99, 100])
def test_the_look_sees_the_newest_hundred(tmp_path: Path, newer: int) -> None:
    with Sandbox() as sandbox:
        for each in (create(2), *(create(number) for number in range(1_000, 1_000 + newer))):
            sandbox.store.create("candidates", dict(each.fields))
        report = Pusher(sandbox, tmp_path).push([create(2)])
        made = emails(sandbox).count("ann2@example.com")

    assert (("duplicate", 1) if newer == 99 else ("created", 2)) == (outcomes(report)[2], made)
