"""Totals that contradict the records do not change what is read or stored."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest

from connector.sandbox.app import HttpExchange
from connector.sandbox.server import Sandbox
from tests.faults.network_faults import EditedResponse, wrong_total
from tests.support.agency import differences, published, pulled
from tests.tiers import first_fast

LIST = "/api/v1/candidates"


class FirstPage:
    """Fault of a list that has the records of page 1 on every page."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Send page 1 with the number of the requested page."""
        query = dict(parse_qsl(exchange.scope["query_string"].decode()))
        exchange.scope["query_string"] = urlencode({**query, "page": 1}).encode()
        shown = {"page": int(query.get("page", 1)), "total": 100_000, "total_pages": 1000}
        edit = EditedResponse(lambda document: document["pagination"].update(shown))
        await edit.perform(exchange)


@pytest.mark.parametrize(("total", "nth"), first_fast([(10**12, 1), (5_000, 2)]))
def test_one_wrong_huge_total_costs_few_extra_requests(
    total: float, nth: int, tmp_path: Path
) -> None:
    with Sandbox(counts={"candidates": 230}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        first, second, *_ = sandbox.store.records("candidates")
        sandbox.store.remove("candidates", first)
        usual = pull_and_count_lists(sandbox, tmp_path)
        sandbox.store.remove("candidates", second)
        sandbox.faults.add(wrong_total(total), path=LIST, nth=nth)
        lists = pull_and_count_lists(sandbox, tmp_path)
        found = differences(sandbox, published(tmp_path))
        last = pulled(sandbox, tmp_path, "candidates")

    assert [] == found
    assert lists <= usual + 3
    assert ("done", True) == (last.outcome, last.resources["candidates"].proven)


def pull_and_count_lists(sandbox: Sandbox, folder: Path) -> int:
    """Pull, check that the result is verified, and return the number of list requests."""
    report = pulled(sandbox, folder, "candidates").resources["candidates"]
    assert report.proven, report
    return report.lists


@pytest.mark.slow
def test_a_list_that_repeats_the_same_page_is_reported_unreadable(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 230}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        for id in [*sandbox.store.records("candidates")][:3]:
            sandbox.store.remove("candidates", id)
        sandbox.faults.add(FirstPage(), path=LIST, times=None)
        report = pulled(sandbox, tmp_path, "candidates")
        lists = report.resources["candidates"].lists
        sandbox.faults.clear()
        last = pulled(sandbox, tmp_path, "candidates")
        found = differences(sandbox, published(tmp_path))

    assert "answer_broken" == report.resources["candidates"].error_code
    assert lists <= 6
    assert ("done", []) == (last.outcome, found)
