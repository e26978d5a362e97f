"""Deletions are detected with proof, and many together are held back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from connector.pulls.reading import PullOptions
from connector.pulls.run import pull
from connector.sandbox.app import Fault
from connector.sandbox.faults import HtmlPage, NotJson
from connector.sandbox.server import Sandbox
from connector.warehouse.runs import ResourceRun
from tests.support.agency import differences, published, pulled, rows, settings_of

COUNTS = {"candidates": 130, "jobs": 8}


def delete_first(sandbox: Sandbox, count: int) -> list[str]:
    """Delete the first candidates by id, as another user."""
    ids = sorted(sandbox.store.records("candidates"))[:count]
    for id in ids:
        sandbox.store.delete("candidates", id)
    return ids


def test_deleted_records_become_tombstones(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        gone = delete_first(sandbox, 5)
        report = pulled(sandbox, tmp_path)

        assert ("done", 5) == (report.outcome, report.resources["candidates"].deleted)
        assert [] == differences(sandbox, published(tmp_path))
        # One list and one detail, all pages again, and one 404 for each.
        assert report.resources["candidates"].requests <= 2 + 2 + 5
        query = "SELECT id FROM landing.candidates WHERE _deleted_at IS NOT NULL ORDER BY id"
        assert gone == [row["id"] for row in rows(published(tmp_path), query)]
        evidence = rows(published(tmp_path), "FROM sync.events WHERE kind = 'deleted'")
        assert 5 == len(evidence)
        assert all("404" in each["detail"] for each in evidence)


FOREIGN_404: dict[str, Fault] = {
    "a page of HTML": HtmlPage(404),
    "no body": NotJson(b""),
    "a proxy's text": NotJson(b"404 page not found"),
    "an empty object": NotJson(b"{}"),
    "a status alone": NotJson(b'{"status": 404}'),
    "a list": NotJson(b'["not_found"]'),
}
"""404 responses whose body is not the API's."""


@pytest.mark.parametrize("answer", FOREIGN_404)
def test_only_a_404_with_the_body_of_the_api_deletes_a_record(tmp_path: Path, answer: str) -> None:
    with Sandbox(counts={"candidates": 12}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        (gone,) = delete_first(sandbox, 1)
        path = f"/api/v1/candidates/{gone}"
        sandbox.faults.add(FOREIGN_404[answer], path=path, times=None)
        before = len(sandbox.log)
        misled = pulled(sandbox, tmp_path, "candidates").resources["candidates"]

        assert (path, 404) in {(each.path, each.status) for each in sandbox.log[before:]}
        assert (False, 0, 12) == (misled.proven, misled.deleted, misled.live)
        sandbox.faults.clear()
        after = pulled(sandbox, tmp_path, "candidates").resources["candidates"]
        assert (True, 1, 11) == (after.proven, after.deleted, after.live)


def test_a_list_without_most_of_its_records_deletes_none(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        before = pulled(sandbox, tmp_path).resources["candidates"]
        delete_first(sandbox, 60)
        report = pulled(sandbox, tmp_path)
        after = report.resources["candidates"]

        assert ("partial", False, 0) == (report.outcome, after.proven, after.deleted)
        assert 130 == after.live
        assert before.bookmark_after == after.bookmark_after
        assert after.requests <= 2
        assert "60 of " in str(after.message)


def parse_missing_ids(done: ResourceRun) -> set[str]:
    """Return the three ids in the message about missing records."""
    names = (done.message or "").partition(", for example ")[2].split(", ")
    assert 3 == len(names) == len(set(names))
    return set(names)


def test_an_empty_list_deletes_nothing(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        before = set(sandbox.store.records("candidates"))
        delete_first(sandbox, 130)
        after = pulled(sandbox, tmp_path).resources["candidates"]

        assert (False, 0, 130, 1) == (after.proven, after.deleted, after.live, after.requests)
        assert "130 of 130 loaded records are missing" in (after.message or "")
        assert parse_missing_ids(after) <= before


def test_a_small_list_becomes_empty_with_consent(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 2}) as sandbox:
        pulled(sandbox, tmp_path, "jobs")
        for id in sorted(sandbox.store.records("jobs")):
            sandbox.store.delete("jobs", id)
        held = pulled(sandbox, tmp_path, "jobs").resources["jobs"]
        accepted = PullOptions(accepts_deletes=True)
        report = asyncio.run(pull(settings_of(sandbox, tmp_path), ("jobs",), options=accepted))
        after = report.resources["jobs"]

        assert ("partial", False, 0, 2) == (held.outcome, held.proven, held.deleted, held.live)

        assert ("done", True, 2, 0) == (after.outcome, after.proven, after.deleted, after.live)
        assert after.requests <= 1 + 2 + 1
        assert 1 == pulled(sandbox, tmp_path, "jobs").requests
