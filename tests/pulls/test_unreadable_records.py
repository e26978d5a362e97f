"""Unreadable responses are reported with the record, the reason and an action."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connector.client.client import Client, Limits
from connector.client.messages import parse_json
from connector.errors import ConnectorError, NotTheApi
from connector.pulls.run import pull
from connector.sandbox.app import HttpExchange
from connector.sandbox.faults import HtmlPage, Redirect, Status
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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"data": {"id": "5d1c", "rate": 1e400}}', "1e400 in 'rate' of the record 5d1c"),
        ('{"data": [{"id": "a"}, {"id": "5d1c", "x": {"rate": NaN}}]}', "NaN in 'rate', which no"),
        ('{"data": [{"id": "5d1c", "rates": [1, -Infinity]}]}', "the number -Infinity, which"),
        ('{"rate": 1e400, "rate": 1}', "the number 1e400, which no column can hold"),
        ("NaN", "the number NaN, which no column can hold"),
    ],
)
def test_a_number_too_large_for_a_column_is_reported_with_field_and_record(
    body: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(body.encode())


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
        assert "Run 'connector pull'" not in output
    assert ["candidates-record_unreadable"] == [each["cause"] for each in listed]
    assert [] == after


@pytest.mark.slow
def test_an_unreadable_record_counts_once_per_run(tmp_path: Path) -> None:
    """A queued and changed record is read twice in a run, from the queue and by the scan."""
    time = Time()
    with Sandbox(counts={"candidates": 20}, clock=time.server_now) as sandbox:
        pulled(sandbox, tmp_path, time=time)
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.faults.add(Status(500), path=f"{CANDIDATES}/{id}", times=None)
        for runs in (1, 2, 3):
            time.pass_minutes(10)
            sandbox.store.update("candidates", id, {"city": f"Bern {runs}"})
            report = pulled(sandbox, tmp_path, time=time)
            found = work_rows(tmp_path, UNREAD)

            assert [{"id": id, "error_code": "server_failed", "error": "answered 500"}] == [
                {name: value for name, value in each.items() if name != "failed_runs"}
                for each in found
            ]
            assert [runs] == [each["failed_runs"] for each in found]
            expected = None if runs == 1 else "record_unreadable"
            assert expected == report.resources["candidates"].error_code


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


def test_a_pull_of_one_record_that_cannot_be_read_fails(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 20}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        assert 0 == call(["pull", "candidates"], environ).status
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.faults.add(EditedResponse(overflow_salary), path=f"{CANDIDATES}/{id}", times=None)
        called = call(["pull", "candidates", "--ids", id], environ)

    assert 3 == called.status
    assert f"could not be read for {id} (answered with the number Infinity" in called.err


# -- Lists -----------------------------------------------------------------------------------------


def overflow_first_item(document: dict[str, Any]) -> None:
    """Set a number of a list's first item to one that no column can hold."""
    document["data"][0]["salary_min"] = math.nan


def overflow_second_page(document: dict[str, Any]) -> None:
    """Set a number of a list's second page to one that no column can hold."""
    if document["pagination"]["page"] == 2:
        overflow_first_item(document)


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_waits")
def test_an_unreadable_list_does_not_blame_an_address_that_answered_before(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 3, "jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        assert 0 == call(["pull"], environ).status
        sandbox.faults.add(EditedResponse(overflow_first_item), path="/api/v1/jobs", times=None)
        called = call(["pull"], environ)
        status = call(["status"], environ)
        first = [*sandbox.store.records("jobs")]
        sandbox.faults.clear()
        sandbox.faults.add(HtmlPage(200), times=None)
        page = call(["pull"], environ)

    assert 3 == called.status
    assert "NaN in 'salary_min' of the record" in called.err
    assert any(f"of the record {id}" in called.err for id in first)
    for each in (called, status, page):
        assert NotTheApi.codes["answer_broken"] in each.out + each.err
        assert "CONNECTOR_BASE_URL" not in each.out + each.err
    # The other resources are pulled.
    assert ["done", "yes"] == called.row("candidates")[1:3]


@pytest.mark.slow
def test_an_unreadable_list_is_judged_by_other_responses_of_the_run(tmp_path: Path) -> None:
    time = Time()
    with Sandbox(counts={"candidates": 101, "jobs": 3}, clock=time.server_now) as sandbox:
        sandbox.faults.add(EditedResponse(overflow_second_page), path=CANDIDATES, times=None)
        report = pulled(sandbox, tmp_path, "candidates", time=time)
        assert "answer_broken" == report.resources["candidates"].error_code

    with Sandbox(counts={"candidates": 101, "jobs": 3}, clock=time.server_now) as sandbox:
        sandbox.faults.add(HtmlPage(200), times=None)
        report = pulled(sandbox, tmp_path / "other", "candidates", time=time)
        assert "unreadable_answer" == report.resources["candidates"].error_code
        assert report.error is not None
        assert NotTheApi.action == report.error.action


# -- Redirects -------------------------------------------------------------------------------------


def test_a_redirect_to_another_server_suggests_its_address(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        sandbox.faults.add(Redirect("https://other.example/api/v1/jobs/", 301), times=None)
        called = call(["pull", "jobs"], environ)

    assert "[redirected]" in called.err
    assert "set CONNECTOR_BASE_URL to its part before '/api/v1'" in called.err


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


@pytest.mark.parametrize("odd", ODD_IDS, ids=["slash", "long"])
def test_an_id_that_is_invalid_in_a_path_is_rejected_and_named(tmp_path: Path, odd: str) -> None:
    with Sandbox(counts={"candidates": 3}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        called = call(["pull", "candidates", "--ids", odd], environ)
        sent = len(sandbox.log)

    assert (2, 0) == (called.status, sent)
    assert "the id of a candidate " in called.err
    assert "[unusable_id]" in called.err
    assert "--help" not in called.err


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
