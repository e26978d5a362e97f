"""Options of a pull: all records, all list pages, some records, re-verification."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from connector.errors import Misused
from connector.operations.verify import VerifyReport, verify
from connector.pulls.ports import PullOptions
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, rows, settings_of

COUNTS = {"candidates": 230, "content_types": 2, "content_items": 12}


def pull_with_options(
    sandbox: Sandbox, folder: Path, options: PullOptions, *names: str
) -> PullReport:
    """Pull the candidates, or the given resources, with these options."""
    settings = settings_of(sandbox, folder)
    return asyncio.run(pull(settings, names or ("candidates",), options=options))


def verify_resources(sandbox: Sandbox, folder: Path, *names: str) -> VerifyReport:
    """Verify the given resources, or all."""
    return asyncio.run(verify(settings_of(sandbox, folder), names))


def change_silently(sandbox: Sandbox, count: int) -> list[str]:
    """Change candidates without changing their `updated_at`."""
    records = sandbox.store.records("candidates")
    ids = sorted(records)[:count]
    for id in ids:
        stamp = datetime.fromisoformat(records[id]["updated_at"])
        sandbox.store.touch("candidates", id, {"notes": "silent"}, updated_at=stamp)
    return ids


def swap_one_record(sandbox: Sandbox) -> tuple[str, str]:
    """Replace one record by another with the same dates, and return both ids.

    Neither the list of changes nor any count shows the replacement.
    """
    records = sandbox.store.records("candidates")
    gone, second = sorted(records, key=lambda each: str(records[each]["created_at"]))[:2]
    at = datetime.fromisoformat(records[second]["created_at"]) + timedelta(milliseconds=5)
    sandbox.store.delete("candidates", gone)
    person = {"first_name": "Ida", "last_name": "Old", "employment_type": "permanent"}
    body = {**person, "email": "ida@people.example"}
    new = sandbox.store.create("candidates", body, at=at).record["id"]
    return gone, new


def test_full_reads_every_record_again(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        ids = change_silently(sandbox, 7)
        assert 0 == pulled(sandbox, tmp_path, "candidates").resources["candidates"].changed
        report = pull_with_options(sandbox, tmp_path, PullOptions(is_full=True))

        found = report.resources["candidates"]
        assert ("done", True, len(ids)) == (report.outcome, found.proven, found.changed)
        assert 230 + 3 + 2 == found.requests
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]


def test_a_sweep_finds_a_deletion_and_a_creation_that_cancel_out(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        gone, missing = swap_one_record(sandbox)
        quiet = pulled(sandbox, tmp_path, "candidates")
        assert (2, 0) == (quiet.requests, quiet.resources["candidates"].deleted)
        report = pull_with_options(sandbox, tmp_path, PullOptions(sweeps=True))

        found = report.resources["candidates"]
        assert ("done", 1, 1) == (report.outcome, found.deleted, found.new)
        # Three pages, two suspects, one list and one detail; the deleted record is requested once.
        assert 3 + 2 + 2 == found.requests
        assert 3 + 2 == found.sweeps
        landed = rows(published(tmp_path), "SELECT id, _deleted_at FROM landing.candidates")
        assert {gone} == {each["id"] for each in landed if each["_deleted_at"] is not None}
        assert missing in {each["id"] for each in landed}


@pytest.mark.slow
def test_re_verification_finds_changes_without_a_new_updated_at(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        ids = change_silently(sandbox, 9)
        changed = 0
        for _ in range(6):
            found = pull_with_options(
                sandbox, tmp_path, PullOptions(verification_requests=42)
            ).resources["candidates"]
            assert (42, 2) == (found.scrubs, found.requests - found.scrubs)
            changed += found.changed

        assert len(ids) == changed
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]
        query = "SELECT id FROM sync.events WHERE kind = 'silent'"
        assert set(ids) == {each["id"] for each in rows(published(tmp_path), query)}


def test_re_verification_requests_are_divided_by_resource_size(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        report = pull_with_options(
            sandbox, tmp_path, PullOptions(verification_requests=60), "candidates", "content_items"
        )

        shares = {name: each.scrubs for name, each in report.resources.items()}
        assert 60 == sum(shares.values())
        assert shares["candidates"] > 10 * shares["content_items"] > 0


def test_a_pull_of_ids_reads_only_these_records(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        before = pulled(sandbox, tmp_path, "candidates").resources["candidates"]
        changed, gone, same = sorted(sandbox.store.records("candidates"))[:3]
        sandbox.store.update("candidates", changed, {"notes": "new"})
        sandbox.store.delete("candidates", gone)
        settings = settings_of(sandbox, tmp_path)
        only = asyncio.run(pull(settings, ("candidates",), ids=(changed, same, same)))
        found = only.resources["candidates"]
        assert ("done", 2, 1, 1) == (only.outcome, found.requests, found.changed, found.unchanged)
        unknown = "00000000-0000-4000-8000-000000000000"
        report = asyncio.run(pull(settings, ("candidates",), ids=(gone, unknown)))

        found = report.resources["candidates"]
        assert ("partial", 2, 1) == (report.outcome, found.requests, found.deleted)
        assert unknown in str(found.message)
        assert before.bookmark_after == found.bookmark_after


def test_a_pull_of_ids_with_two_resources_is_rejected(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        with pytest.raises(Misused, match="one resource"):
            asyncio.run(pull(settings_of(sandbox, tmp_path), ("jobs", "leads"), ids=("x",)))
        assert [] == sandbox.log


def test_many_deletions_are_applied_once_the_user_accepts_them(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        for id in sorted(sandbox.store.records("candidates"))[::4]:
            sandbox.store.delete("candidates", id)
        assert "partial" == pulled(sandbox, tmp_path, "candidates").outcome
        report = pull_with_options(sandbox, tmp_path, PullOptions(accepts_deletes=True))

        assert ("done", 58) == (report.outcome, report.resources["candidates"].deleted)
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]
        assert 2 == pulled(sandbox, tmp_path, "candidates").requests


def test_verify_reports_every_difference_and_changes_nothing(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        equal = verify_resources(sandbox, tmp_path)
        assert (True, 0) == (equal.is_equal, equal.exit_status)
        assert 230 + 3 == verify_resources(sandbox, tmp_path, "candidates").requests
        silent = change_silently(sandbox, 2)
        gone, missing = swap_one_record(sandbox)
        before = published(tmp_path).read_bytes()
        report = verify_resources(sandbox, tmp_path, "candidates")

        found = report.streams["candidates"]
        assert (False, 3) == (report.is_equal, report.exit_status)
        assert ([missing], [gone]) == (found.missing, found.extra)
        expected = dict.fromkeys((id for id in silent if id != gone), ("notes",))
        assert expected == found.stale
        assert before == published(tmp_path).read_bytes()
        assert 2 == pulled(sandbox, tmp_path, "candidates").requests


def test_verify_waits_for_a_running_pull(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        settings = settings_of(sandbox, tmp_path)

        async def pull_and_verify() -> None:
            begun = threading.Event()
            sandbox.between = lambda store: begun.set()
            pulling = asyncio.ensure_future(pull(settings, ("candidates",)))
            await asyncio.to_thread(begun.wait)
            await verify(settings, ("jobs",))
            await pulling

        asyncio.run(pull_and_verify())
        resources = [each.path.split("/")[3] for each in sandbox.log]

    assert {"candidates", "jobs"} == {*resources}
    assert sorted(resources) == resources, (
        "a request of the verification came before the pull's end"
    )
