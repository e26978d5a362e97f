"""A pull that fails at a commit or loses its server continues exactly. Kills: `tests/faults`."""

from __future__ import annotations

import resource
import shutil
import signal
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from connector.errors import WarehouseError
from connector.models.publish import publish
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.warehouse.stream import Commit, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import differences, published, pulled, settings_of
from tests.support.clock import Time
from tests.support.clock import pulled as pulled_in
from tests.support.errors import has_code

COUNTS = {"candidates": 230, "jobs": 20, "content_types": 2, "content_items": 8}


def test_a_pull_that_fails_at_any_commit_leaves_no_change_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, commit = Time(), Warehouse.commit
    with Sandbox(counts={"candidates": 8}, clock=time.server_now) as sandbox:
        pulled_in(sandbox, tmp_path / "before", "candidates", time=time)
        time.pass_minutes(10)
        # Changed in their present order, so that the list does not show the change.
        candidates = sandbox.store.records("candidates")
        for id in sorted(candidates, key=lambda each: str(candidates[each]["updated_at"]))[-3:]:
            sandbox.store.update("candidates", id, {"notes": "Changed"})
            time.pass_minutes(1)
        time.pass_minutes(10)
        for fails_at in count(1):
            commits = count(1)

            def commit_or_fail(
                warehouse: Warehouse, stream: Stream, what: Commit, *given: Any
            ) -> Any:
                if what != Commit() and next(commits) == fails_at:  # noqa: B023
                    raise WarehouseError("The disk is full.", code="disk_full")
                return commit(warehouse, stream, what, *given)

            folder = tmp_path / str(fails_at)
            shutil.copytree(tmp_path / "before", folder)
            with monkeypatch.context() as patch:
                patch.setattr(Warehouse, "commit", commit_or_fail)
                report = pulled_in(sandbox, folder, "candidates", time=time)
            time.pass_minutes(10)
            if report.outcome == "done":
                break
            assert "done" == pulled_in(sandbox, folder, "candidates", time=time).outcome
            assert [] == differences(sandbox, published(folder)), f"{fails_at = }"
        assert fails_at > 1


def test_a_server_that_stops_ends_the_run_and_loaded_records_are_kept(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        served = 0
        # The server cannot stop itself during a request, so another thread does.
        stopping = threading.Thread(target=sandbox.stop)

        def stop_server(_: Store) -> None:
            nonlocal served
            served += 1
            if served == 150:
                stopping.start()

        sandbox.between = stop_server
        report = pulled(sandbox, tmp_path, "candidates")
        sandbox.between = None
        stopping.join()

        assert "failed" == report.outcome
        assert report.error is not None
        assert not published(tmp_path).exists()

        sandbox.start()
        again = pulled(sandbox, tmp_path)

        assert "done" == again.outcome, again.as_json()
        assert again.resources["candidates"].details < 230
        assert [] == differences(sandbox, published(tmp_path))


def test_publishing_to_a_full_disk_fails_and_keeps_the_old_file(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        pulled(sandbox, tmp_path, "jobs")
    settings = settings_of(sandbox, tmp_path)
    before = published(tmp_path).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    obeyed = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        with pytest.raises(WarehouseError, match="disk is full", check=has_code("disk_full")):
            publish(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, obeyed)

    assert before == published(tmp_path).read_bytes()
    assert [] == list(settings.folder.glob("*.publishing*"))
