"""A POST without a complete response is searched for, and not sent again automatically."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from connector.sandbox.app import Fault, HttpExchange
from connector.sandbox.faults import Drop, HtmlPage, NotJson, Redirect, Status
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.state.row import Policy
from tests.faults.network_faults import CutResponse, Where
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    list_emails,
    list_writes,
    make_create,
    make_creates,
    map_codes,
    map_outcomes,
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
    """Fault that serves the request normally."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve the request."""
        await exchange.send(await exchange.call_application())


def create_equal_record_at(count: int, **fields: str) -> Callable[[Store], None]:
    """Return a hook of the sandbox that creates a record equal to that of row 2, except `fields`,
    once the server has `count` candidates.
    """

    def between(store: Store) -> None:
        if len(store.records("candidates")) == count:
            store.create("candidates", dict(make_create(2, **fields).fields))

    return between


def make_sequential_pusher(sandbox: Sandbox, folder: Path) -> Pusher:
    """Return a pusher with one connection, which sends one row after another."""
    return Pusher(sandbox, folder, connections=1)


def plan_faults(sandbox: Sandbox, faults: list[Fault]) -> None:
    """Plan a fault for every other create, in order.

    The creates in between succeed, so the pusher does not consider the server down.
    """
    meets = (each for fault in faults for each in (fault, NoFault()))
    for fault in meets:
        sandbox.faults.add(fault, method="POST", path=CANDIDATES)


def test_created_records_whose_responses_were_lost_are_found(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 3}) as sandbox:
        plan_faults(sandbox, APPLIED)
        report = make_sequential_pusher(sandbox, tmp_path).push(make_creates(2 * len(APPLIED)))
        made = sandbox.store.records("candidates")
        log = [each.method for each in sandbox.log]

    assert ("done", 0) == (report.outcome, report.exit_status)
    expected = ["found_after_doubt", ""] * len(APPLIED)
    assert dict(enumerate(expected, 2)) == map_codes(report)
    assert [f"ann{row.number}@example.com" for row in report.rows] == [
        made[row.record_id or ""]["email"] for row in report.rows
    ]
    # One search before the first create, one write per row, and a list and a detail per lost
    # response.
    assert ["GET", *["POST", "GET", "GET", "POST"] * len(APPLIED)] == log


def test_creates_that_never_reached_the_server_are_held(tmp_path: Path) -> None:
    """Absence proves nothing before the settle time, so each row is searched again after it."""
    with Sandbox(counts={"candidates": 3}) as sandbox:
        plan_faults(sandbox, UNAPPLIED)
        pusher = make_sequential_pusher(sandbox, tmp_path)
        began = pusher.time.seconds
        report = pusher.push(make_creates(2 * len(UNAPPLIED)))
        passed = pusher.time.seconds - began
        made = [each for each in list_emails(sandbox) if each.startswith("ann")]
        log = [each.method for each in sandbox.log]

    assert ("partial", 3) == (report.outcome, report.exit_status)
    expected = ["held", "created"] * len(UNAPPLIED)
    assert dict(enumerate(expected, 2)) == map_outcomes(report)
    lost = [row for row in report.rows if row.outcome == "held"]
    assert {("not_found", "not_found")} == {(row.code, row.problems[0].code) for row in lost}
    assert 300 <= passed < 330
    assert sorted(f"ann{row.number}@example.com" for row in report.rows if row.record_id) == made
    looks = ["GET"] * len(UNAPPLIED)
    assert ["GET", *["POST", "GET", "POST"] * len(UNAPPLIED), *looks] == log


def test_equal_records_of_others_make_a_lost_create_ambiguous(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = make_sequential_pusher(sandbox, tmp_path)
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
        sandbox.between = create_equal_record_at(1)
        report = pusher.push(make_creates(1))
        made = sandbox.store.records("candidates")

    assert ({2: "held"}, {2: "several_matches"}) == (map_outcomes(report), map_codes(report))
    assert 2 == len(made)


def test_a_similar_record_is_reported_but_not_matched(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = make_sequential_pusher(sandbox, tmp_path)
        sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
        sandbox.between = create_equal_record_at(0, phone="other")
        report = pusher.push(make_creates(1), Policy())

    assert {2: "held"} == map_outcomes(report)
    assert {2: "look_alike"} == map_codes(report)
    assert 1 == len(list_writes(sandbox))


def test_a_status_that_create_rejects_is_set_on_the_found_record(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = make_sequential_pusher(sandbox, tmp_path)
        sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
        sandbox.faults.add(Drop("applied"), method="PUT", path=f"{CANDIDATES}/*")
        report = pusher.push([make_create(2, status="screening")])
        (made,) = sandbox.store.records("candidates").values()

    assert {2: "created"} == map_outcomes(report)
    assert "screening" == made["status"]
    assert 2 == len(list_writes(sandbox))
