"""A pull that receives details of other records reads again and does not load them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from connector.sandbox.app import Fault, HttpExchange
from connector.sandbox.faults import Crossed, HtmlPage
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, rows

CANDIDATES = "/api/v1/candidates"


@dataclass(frozen=True)
class IdInCapitals:
    """The requested record, with its id in capitals."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve the request with a changed id."""
        response = await exchange.call_application()
        document = json.loads(bytes(response.body))
        document["data"]["id"] = document["data"]["id"].upper()
        await exchange.send(JSONResponse(document, response.status_code))


@pytest.mark.parametrize("fault", [Crossed(), IdInCapitals()], ids=repr)
def test_a_detail_response_with_another_record_is_read_again(fault: Fault, tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 20}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.store.touch("candidates", id, {"current_job_title": "Changed"})
        sandbox.faults.add(fault, path=f"{CANDIDATES}/{id}")
        report = pulled(sandbox, tmp_path, "candidates")
        found = differences(sandbox, published(tmp_path))

    assert ("done", 1, 0) == (
        report.outcome,
        report.resources["candidates"].changed,
        report.resources["candidates"].deleted,
    )
    assert [] == found


@pytest.mark.parametrize("fault", [Crossed(), IdInCapitals()], ids=repr)
def test_a_record_whose_detail_always_shows_another_stays_queued(
    fault: Fault, tmp_path: Path
) -> None:
    with Sandbox(counts={"candidates": 20}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        before = rows(published(tmp_path), "SELECT id, _record FROM landing.candidates ORDER BY id")
        id = next(iter(sandbox.store.records("candidates")))
        sandbox.store.touch("candidates", id, {"current_job_title": "Changed"})
        sandbox.faults.add(fault, path=f"{CANDIDATES}/{id}", times=None)
        report = pulled(sandbox, tmp_path, "candidates")
        after = rows(published(tmp_path), "SELECT id, _record FROM landing.candidates ORDER BY id")
        queued = rows(published(tmp_path), "SELECT id FROM sync.queue")
        sandbox.faults.clear()
        last = pulled(sandbox, tmp_path, "candidates")
        found = differences(sandbox, published(tmp_path))

    assert ("partial", False) == (report.outcome, report.resources["candidates"].proven)
    assert (before, [{"id": id}]) == (after, queued)
    assert ("done", []) == (last.outcome, found)


def test_a_list_page_that_is_unreadable_once_is_read_again(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 104}) as sandbox:
        sandbox.faults.add(HtmlPage(200), path=CANDIDATES, nth=2)
        report = pulled(sandbox, tmp_path, "candidates")
        found = differences(sandbox, published(tmp_path))

    assert ("done", []) == (report.outcome, found)
