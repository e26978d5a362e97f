"""A POST whose answer does not come whole is looked for,
and never sent again by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from connector.ledger.push_plan import PushPolicy
from connector.pulls.outcome import Progress
from connector.pulls.run import pull
from connector.sandbox.exchange import Fault, HttpExchange
from connector.sandbox.faults import Drop, HtmlPage, NotJson, Redirect, Status, Truncated
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.faults.network_faults import CutResponse, Where
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    codes,
    create,
    creates,
    emails,
    listed,
    outcomes,
    writes,
)

CUTS: tuple[Where, ...] = (
    "before",
    "in the status",
    "in the headers",
    "after the headers",
    "in the body",
)

APPLIED: list[Fault] = [
    *(CutResponse(where, is_reset=is_reset) for where in CUTS for is_reset in (True, False)),
    Truncated(),
    NotJson(),
    Status(500, "after"),
    Status(503, "after"),
    Status(409, "after"),
    HtmlPage(502, "after"),
]
UNAPPLIED: list[Fault] = [
    Drop("none"),
    Status(500),
    Status(408),
    Status(425),
    HtmlPage(504),
    Redirect("https://elsewhere.example/"),
]


class NoFault:
    """Serves the request normally."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve."""
        await exchange.send(await exchange.serve())


def twin_when(count: int, **fields: str) -> Callable[[Store], None]:
    """Somebody else makes a record like that of row 2, once there are so many."""

    def between(store: Store) -> None:
        if len(store.records("candidates")) == count:
            store.create("candidates", dict(create(2, **fields).fields))

    return between


def pusher_of(sandbox: Sandbox, folder: Path) -> Pusher:
    """A push over one connection, so that rows follow each other."""
    return Pusher(sandbox, folder, connections=1)


def plan_faults(sandbox: Sandbox, faults: list[Fault]) -> None:
    """Have every other create meet a fault, in order; those between are answered well, so that the
    server is not taken for dead.
    """
    meets = (each for fault in faults for each in (fault, NoFault()))
    for fault in meets:
        sandbox.faults.add(fault, method="POST", path=CANDIDATES)


def test_records_whose_answers_were_lost_are_found(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 3}) as sandbox:
        plan_faults(sandbox, APPLIED)
        report = pusher_of(sandbox, tmp_path).push(creates(2 * len(APPLIED)))
        made = sandbox.store.records("candidates")
        log = [each.method for each in sandbox.log]

    assert ("done", 0) == (report.outcome, report.exit_status)
    expected = ["found_after_doubt", ""] * len(APPLIED)
    assert dict(enumerate(expected, 2)) == codes(report)
    assert [f"ann{row.number}@example.com" for row in report.rows] == [
        made[row.record_id or ""]["email"] for row in report.rows
    ]
    # One look before the first create. Each row is written once; each that was lost costs a list
    # and a detail more.
    assert ["GET", *["POST", "GET", "GET", "POST"] * len(APPLIED)] == log


def test_records_that_are_not_there_are_held(tmp_path: Path) -> None:
    """However a request is lost, the server has no record: absence proves nothing before the settle
    time, so that the row is looked for again after all others have ended, and is then a person's.
    """
    with Sandbox(counts={"candidates": 3}) as sandbox:
        plan_faults(sandbox, UNAPPLIED)
        pusher = pusher_of(sandbox, tmp_path)
        began = pusher.time.seconds
        report = pusher.push(creates(2 * len(UNAPPLIED)))
        passed = pusher.time.seconds - began
        made = [each for each in emails(sandbox) if each.startswith("ann")]
        log = [each.method for each in sandbox.log]

    assert ("partial", 3) == (report.outcome, report.exit_status)
    expected = ["held", "created"] * len(UNAPPLIED)
    assert dict(enumerate(expected, 2)) == outcomes(report)
    lost = [row for row in report.rows if row.outcome == "held"]
    assert {("not_found", "not_found")} == {(row.code, row.problems[0].code) for row in lost}
    assert 300 <= passed < 330
    assert sorted(f"ann{row.number}@example.com" for row in report.rows if row.record_id) == made
    looks = ["GET"] * len(UNAPPLIED)
    assert ["GET", *["POST", "GET", "POST"] * len(UNAPPLIED), *looks] == log


def test_a_late_commit_is_found_before_the_settle_time(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES)

        def release(progress: Progress) -> None:
            if progress.until is not None:
                sandbox.apply_delayed_effects()

        report = pusher.push(creates(2), watch=release)

    assert {2: "found_after_doubt", 3: ""} == codes(report)
    assert 2 == len(writes(sandbox))


def test_a_commit_after_the_settle_time_makes_no_second_one(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES)
        first = pusher.push(creates(1))
        sandbox.apply_delayed_effects()
        second = pusher.push(creates(1))
        third = pusher.resolve(first.batch, 2, "look")
        fourth = pusher.push(creates(1))
        made = emails(sandbox)

    assert [{2: "held"}, {2: "held"}, {2: "created"}, {2: "unchanged"}] == [
        outcomes(each) for each in (first, second, third, fourth)
    ]
    assert (["ann2@example.com"], 1) == (made, len(writes(sandbox)))
    assert listed(third)[0].record_id == listed(fourth)[0].record_id


def test_repeating_by_choice(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
        report = pusher.push(creates(1), PushPolicy("retry"))
        made = emails(sandbox)

    assert {2: "created"} == outcomes(report)
    assert ["GET", "POST", "GET", "GET", "POST", "GET"] == [
        each.method for each in sandbox.log if each.path == CANDIDATES
    ]
    assert ["ann2@example.com"] == made


def test_a_twin_of_a_repeat_is_told(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES, nth=1)
        began = len(sandbox.log)

        def release(_: Any) -> None:
            posts = [each for each in sandbox.log[began:] if each.method == "POST"]
            lists = [each for each in sandbox.log[began:] if each.method == "GET"]
            if (len(posts), len(lists)) == (1, 3):
                # Between the last look and the second attempt; the first look was before both.
                sandbox.store.create("candidates", dict(create(2).fields))

        sandbox.between = release
        report = pusher.push(creates(1), PushPolicy("retry"))
        made = sandbox.store.records("candidates")

    assert {2: "created_twice"} == codes(report)
    assert {*made} == {*(listed(report)[0].problems[0].found or "").split(", ")}


def test_a_mark_tells_our_record_from_its_twin(tmp_path: Path) -> None:
    told = []
    for marker in ("notes", None):
        with Sandbox() as sandbox:
            pusher = pusher_of(sandbox, tmp_path / str(marker))
            sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
            sandbox.between = twin_when(1)
            report = pusher.push(creates(1), PushPolicy(marker_field=marker))
            made = sandbox.store.records("candidates")
            told.append((outcomes(report)[2], listed(report)[0].code, len(made)))
            if marker:
                adopted = made[listed(report)[0].record_id or ""]
                digest = listed(report)[0].batch and adopted["notes"].split(":")[1]
                assert adopted["notes"] == f"import:{digest}:2"
                assert 12 == len(digest)

    assert [("created", "found_after_doubt", 2), ("held", "several_matches", 2)] == told


def test_a_record_that_is_only_like_it_is_not_adopted(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
        sandbox.between = twin_when(0, phone="other")
        report = pusher.push(creates(1), PushPolicy("retry"))

    assert {2: "held"} == outcomes(report)
    assert {2: "look_alike"} == codes(report)
    assert 1 == len(writes(sandbox))


def test_what_was_landed_before_is_no_match(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.store.create("candidates", dict(create(2).fields))
        asyncio.run(pull(pusher.settings, ["candidates"]))
        sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
        report = pusher.push(creates(1), now=pusher.wall)

    assert {2: "held"} == outcomes(report)
    assert {2: "not_found"} == codes(report)


def test_a_status_that_create_refuses_follows_what_was_found(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = pusher_of(sandbox, tmp_path)
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
        sandbox.faults.add(Drop("applied"), method="PUT", path=f"{CANDIDATES}/*")
        report = pusher.push([create(2, status="screening")])
        (made,) = sandbox.store.records("candidates").values()

    assert {2: "created"} == outcomes(report)
    assert "screening" == made["status"]
    assert 2 == len(writes(sandbox))
