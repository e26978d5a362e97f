"""A deleted content type deletes its items."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from connector.operations.verify import verify
from connector.pulls.ports import PullOptions
from connector.pulls.report import PullReport, describe_row_difference
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, rows, settings_of

CONTENT = ("content_types", "content_items")


def delete_type(sandbox: Sandbox, items: int) -> str:
    """Delete the first content type that has this number of items, and return its id."""
    for id in sandbox.store.records("content_types"):
        held = sandbox.store.records("content_items", type=id)
        if len(held) == items:
            for item in held:
                sandbox.store.remove("content_items", item)
            sandbox.store.remove("content_types", id)
            return id
    raise AssertionError(f"no content type has {items} items")


def content_item_counts(report: PullReport) -> tuple[str, bool, int, int]:
    """Return outcome, verified state, deletions and live records of the content items."""
    done = report.resources["content_items"]
    return done.outcome, done.proven, done.deleted, done.live


@pytest.mark.parametrize("resources", [CONTENT, ("content_items",)])
def test_items_of_a_deleted_type_are_deleted(resources: tuple[str, ...], tmp_path: Path) -> None:
    with Sandbox(counts={"content_types": 3, "content_items": 30}) as sandbox:
        pulled(sandbox, tmp_path, *CONTENT)
        id = delete_type(sandbox, 10)
        verified = asyncio.run(verify(settings_of(sandbox, tmp_path), ["content_items"]))
        report = pulled(sandbox, tmp_path, *resources)
        again = pulled(sandbox, tmp_path, *CONTENT)
        found = differences(sandbox, published(tmp_path))

    assert (3, 10) == (
        verified.exit_status,
        len(verified.streams[f"content_items/{id}"].differences["extra"]),
    )
    assert ("done", True, 10, 20) == content_item_counts(report)
    assert ("done", True, 0, 20) == content_item_counts(again)
    assert [] == found
    bookmarks = rows(published(tmp_path), "SELECT parent FROM sync.bookmarks WHERE parent <> ''")
    assert 2 == len(bookmarks)


def test_many_items_of_a_deleted_type_wait_until_deletions_are_accepted(tmp_path: Path) -> None:
    with Sandbox(counts={"content_types": 3, "content_items": 90}) as sandbox:
        pulled(sandbox, tmp_path, *CONTENT)
        delete_type(sandbox, 30)
        kept = pulled(sandbox, tmp_path, *CONTENT)
        options = PullOptions(accepts_deletes=True)
        settings = settings_of(sandbox, tmp_path)
        accepted = asyncio.run(pull(settings, CONTENT, options=options))
        found = differences(sandbox, published(tmp_path))

    assert ("partial", False, 0, 90) == content_item_counts(kept)
    assert "deletions_held" == kept.resources["content_items"].error_code
    assert ("done", True, 30, 60) == content_item_counts(accepted)
    assert [] == found


def test_without_content_types_content_items_are_verified_as_empty(tmp_path: Path) -> None:
    with Sandbox(counts={"content_types": 0, "content_items": 0}) as sandbox:
        done = pulled(sandbox, tmp_path, *CONTENT).resources["content_items"]

    assert (True, 0, 0) == (done.proven, done.live, done.total)
    assert describe_row_difference(done) is None
