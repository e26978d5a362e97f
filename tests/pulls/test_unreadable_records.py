"""Unreadable responses are reported with the record, the reason and an action."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connector.client.client import Client
from connector.client.session import Limits
from connector.errors import ConnectorError
from connector.pulls.run import pull
from connector.sandbox.app import HttpExchange
from connector.sandbox.faults import Redirect
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import EditedResponse
from tests.support.clock import Time, pulled, work_rows
from tests.support.command import KEY, call, variables
from tests.tiers import first_fast

CANDIDATES = "/api/v1/candidates"
REPEAT = "Run the same command again"
UNREAD = "SELECT id, error_code, error, failed_runs FROM sync.queue"


class Endless:
    """Fault of a response whose body does not end before the client disconnects."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Send white space until the client disconnects."""
        response = await exchange.call_application()
        del response.headers["content-length"]
        await exchange.send_head(response)
        while not exchange.is_gone:
            await exchange.send_part(b" " * 65_536)
            # A turn of the loop, in which the server notices that the client has gone.
            await exchange.wait(0)


@pytest.fixture
def simulated_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the waits of a command's pull take no time."""
    time = Time()
    connect = partial(Client, clock=time.monotonic, sleep=time.wait)
    monkeypatch.setattr("connector.cli.pull.run_pull", partial(pull, connect=connect))


def overflow_salary(document: dict[str, Any]) -> None:
    """Set a detail's salary to a number that no column can hold."""
    document["data"]["current_salary"] = math.inf


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_waits")
def test_a_record_unreadable_in_a_second_pull_is_reported_with_other_advice(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 20, "jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.faults.add(EditedResponse(overflow_salary), path=f"{CANDIDATES}/{id}", times=None)
        first = call(["pull", "candidates", "jobs"], environ)
        once = work_rows(tmp_path, UNREAD)
        second = call(["pull", "candidates", "jobs"], environ)
        twice = work_rows(tmp_path, UNREAD)
        status = call(["status"], environ)
        listed = call(["status", "--json"], environ).object["problems"]
        sandbox.faults.clear()
        third = call(["pull", "candidates", "jobs"], environ)
        after = call(["status", "--json"], environ).object["problems"]

    reason = "answered with the number Infinity, which no column can hold"
    assert (3, 3, 0) == (first.status, second.status, third.status)
    failed = {"id": id, "error_code": "unreadable_answer", "error": reason}
    assert [{**failed, "failed_runs": 1}] == once
    assert [{**failed, "failed_runs": 2}] == twice
    assert [] == work_rows(tmp_path, UNREAD)
    assert f"1 record could not be read: {id} ({reason})" in first.err
    assert REPEAT in first.err
    for called in (second, status):
        output = called.out + called.err
        assert f"{id} ({reason}, in 2 runs so far)" in output
        assert ConnectorError.codes["record_unreadable"] in output
        assert REPEAT not in output
    assert "Run 'connector pull'" not in second.out + second.err
    assert ["candidates-record_unreadable"] == [each["cause"] for each in listed]
    assert [] == after


def test_a_record_that_is_too_large_does_not_stop_the_pull(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(counts={"candidates": 20, "leads": 3}, clock=time.server_now) as sandbox:
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.faults.add(Endless(), path=f"{CANDIDATES}/{id}", times=None)
        report = pulled(sandbox, tmp_path, time=time, limits=Limits(body_bytes_max=100_000))
        found = work_rows(tmp_path, UNREAD)

    assert "partial" == report.outcome
    assert ("partial", "done") == (
        report.resources["candidates"].outcome,
        report.resources["leads"].outcome,
    )
    assert [(id, "answer_too_large")] == [(each["id"], each["error_code"]) for each in found]


# -- Lists -----------------------------------------------------------------------------------------


# -- Redirects -------------------------------------------------------------------------------------


def test_a_redirect_to_another_server_suggests_its_address(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        sandbox.faults.add(Redirect("https://other.example/api/v1/jobs/", 301), times=None)
        called = call(["pull", "jobs"], environ)

    assert "[redirected]" in called.err
    assert "set CONNECTOR_BASE_URL to it, without '/api/v1'" in called.err


# -- Values of another type ------------------------------------------------------------------------


def test_a_pull_reports_values_that_it_loaded_as_null(tmp_path: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["data"]["expected_salary"] = "a lot"

    with Sandbox(counts={"candidates": 5}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.faults.add(EditedResponse(edit), path=f"{CANDIDATES}/{id}", times=None)
        first, again = call(["pull", "candidates"], environ), call(["pull", "candidates"], environ)
        as_json = call(["pull", "candidates", "--json"], environ).object

    for each in (first, again):
        assert 0 == each.status
        assert "unreadable_value: expected_salary" in each.err
        assert f"(record {id})" in each.err
    assert ["unreadable_value"] == [each["kind"] for each in as_json["anomalies"]["candidates"]]


# -- Ids -------------------------------------------------------------------------------------------

ODD_IDS = ("a/b", "a" * 100_000)


@pytest.mark.parametrize("odd", first_fast(ODD_IDS), ids=["slash", "long"])
def test_a_record_with_an_invalid_id_is_reported_and_the_others_are_loaded(
    tmp_path: Path, odd: str
) -> None:
    time = Time()
    with Sandbox(counts={"candidates": 20, "leads": 3}, clock=time.server_now) as sandbox:
        id = next(iter(sandbox.store.records("candidates")))

        def edit(document: dict[str, Any]) -> None:
            for each in document["data"]:
                each["id"] = odd if each["id"] == id else each["id"]

        sandbox.faults.add(EditedResponse(edit), path=CANDIDATES, times=None)
        reports = [pulled(sandbox, tmp_path, time=time) for _ in range(2)]
        landed = work_rows(tmp_path, "SELECT id FROM landing.candidates WHERE _hydrated_at IS NULL")
        found = work_rows(tmp_path, UNREAD)

    for each, code in zip(reports, (None, "record_unreadable"), strict=True):
        done = each.resources["candidates"]
        assert ("partial", 3, "partial", code) == (
            *(each.outcome, each.exit_status),
            *(done.outcome, done.error_code),
        )
        assert (20, "done") == (done.live, each.resources["leads"].outcome)
        assert f"{odd[:3]}" in str(done.message)
        assert len(str(done.message)) < 300
    assert [{"id": odd}] == landed
    assert [(odd, "unusable_id", 2)] == [
        (each["id"], each["error_code"], each["failed_runs"]) for each in found
    ]


def test_items_of_a_content_type_with_an_invalid_id_are_skipped(tmp_path: Path) -> None:
    time = Time()
    counts = {"content_types": 2, "content_items": 4}
    with Sandbox(counts=counts, clock=time.server_now) as sandbox:
        id = next(iter(sandbox.store.records("content_types")))

        def edit(document: dict[str, Any]) -> None:
            for each in document["data"]:
                each["id"] = "a/b" if each["id"] == id else each["id"]

        sandbox.faults.add(EditedResponse(edit), path="/api/v1/content-types", times=None)
        report = pulled(sandbox, tmp_path, time=time)

    items = report.resources["content_items"]
    assert ("partial", "record_unreadable") == (items.outcome, items.error_code)
    assert "the items of a/b cannot be listed" in str(items.message)
    assert items.live > 0
