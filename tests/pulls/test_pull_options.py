"""What may be asked of a pull beyond the least: all records, all pages, some records, a scrub."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from connector.errors import Misused
from connector.errors_api import LeaseHeld
from connector.operations.verify import VerifyReport, verify
from connector.pulls.outcome import PullReport
from connector.pulls.resource_pull import PullOptions
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, rows, settings_of

COUNTS = {"candidates": 230, "content_types": 2, "content_items": 12}


def asked(sandbox: Sandbox, folder: Path, options: PullOptions, *names: str) -> PullReport:
    """Pull the candidates, or the resources named, with these options."""
    settings = settings_of(sandbox, folder)
    return asyncio.run(pull(settings, names or ("candidates",), options=options))


def verified(sandbox: Sandbox, folder: Path, *names: str) -> VerifyReport:
    """Verify the resources named, or all."""
    return asyncio.run(verify(settings_of(sandbox, folder), names))


def change_silently(sandbox: Sandbox, count: int) -> list[str]:
    """Change candidates without moving their `updated_at`, as no API should."""
    records = sandbox.store.records("candidates")
    ids = sorted(records)[:count]
    for id in ids:
        stamp = datetime.fromisoformat(records[id]["updated_at"])
        sandbox.store.touch("candidates", id, {"notes": "silent"}, updated_at=stamp)
    return ids


def swap(sandbox: Sandbox) -> tuple[str, str]:
    """One goes and one comes with the dates of old, so that no list of changes and no count shows
    it: the id that is gone, and the id that is missing.
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
        report = asked(sandbox, tmp_path, PullOptions(is_full=True))

        found = report.resources["candidates"]
        assert ("done", True, len(ids)) == (report.outcome, found.proven, found.changed)
        assert 230 + 3 + 2 == found.requests
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]


def test_a_sweep_finds_what_cancels_out_in_every_count(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        gone, missing = swap(sandbox)
        quiet = pulled(sandbox, tmp_path, "candidates")
        assert (2, 0) == (quiet.requests, quiet.resources["candidates"].deleted)
        report = asked(sandbox, tmp_path, PullOptions(sweeps=True))

        found = report.resources["candidates"]
        assert ("done", 1, 1) == (report.outcome, found.deleted, found.new)
        # Three pages, two suspects, one list and one detail; what is gone is asked for once.
        assert 3 + 2 + 2 == found.requests
        assert 3 + 2 == found.sweeps
        landed = rows(published(tmp_path), "SELECT id, _deleted_at FROM landing.candidates")
        assert {gone} == {each["id"] for each in landed if each["_deleted_at"] is not None}
        assert missing in {each["id"] for each in landed}


@pytest.mark.slow
def test_scrubs_find_what_the_api_does_not_date(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        ids = change_silently(sandbox, 9)
        changed = 0
        for _ in range(6):
            found = asked(sandbox, tmp_path, PullOptions(verification_requests=42)).resources[
                "candidates"
            ]
            assert (42, 2) == (found.scrubs, found.requests - found.scrubs)
            changed += found.changed

        assert len(ids) == changed
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]
        query = "SELECT id FROM sync.events WHERE kind = 'silent'"
        assert set(ids) == {each["id"] for each in rows(published(tmp_path), query)}


def test_a_scrub_is_shared_out_by_size(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        report = asked(
            sandbox, tmp_path, PullOptions(verification_requests=60), "candidates", "content_items"
        )

        shares = {name: each.scrubs for name, each in report.resources.items()}
        assert 60 == sum(shares.values())
        assert shares["candidates"] > 10 * shares["content_items"] > 0


def test_some_records_can_be_read_alone(tmp_path: Path) -> None:
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


def test_ids_need_their_one_resource(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        with pytest.raises(Misused, match="one resource"):
            asyncio.run(pull(settings_of(sandbox, tmp_path), ("jobs", "leads"), ids=("x",)))
        assert [] == sandbox.log


def test_many_deletions_are_believed_once_a_person_says_so(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        for id in sorted(sandbox.store.records("candidates"))[::4]:
            sandbox.store.delete("candidates", id)
        assert "partial" == pulled(sandbox, tmp_path, "candidates").outcome
        report = asked(sandbox, tmp_path, PullOptions(accepts_deletes=True))

        assert ("done", 58) == (report.outcome, report.resources["candidates"].deleted)
        assert [] == [each for each in differences(sandbox, published(tmp_path)) if "cand" in each]
        assert 2 == pulled(sandbox, tmp_path, "candidates").requests


def test_verify_tells_every_difference_and_changes_nothing(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        equal = verified(sandbox, tmp_path)
        assert (True, 0) == (equal.is_equal, equal.exit_status)
        assert 230 + 3 == verified(sandbox, tmp_path, "candidates").requests
        silent = change_silently(sandbox, 2)
        gone, missing = swap(sandbox)
        before = published(tmp_path).read_bytes()
        report = verified(sandbox, tmp_path, "candidates")

        found = report.streams["candidates"]
        assert (False, 3) == (report.is_equal, report.exit_status)
        assert ([missing], [gone]) == (found.missing, found.extra)
        expected = dict.fromkeys((id for id in silent if id != gone), ("notes",))
        assert expected == found.stale
        assert before == published(tmp_path).read_bytes()
        assert 2 == pulled(sandbox, tmp_path, "candidates").requests


def test_verify_waits_for_no_pull(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        settings = settings_of(sandbox, tmp_path)

        async def both() -> None:
            begun = threading.Event()
            sandbox.between = lambda store: begun.set()
            pulling = asyncio.ensure_future(pull(settings, ("candidates",)))
            await asyncio.to_thread(begun.wait)
            with pytest.raises(LeaseHeld):
                await verify(settings)
            await pulling

        asyncio.run(both())
