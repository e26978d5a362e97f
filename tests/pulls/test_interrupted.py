"""A pull that is cut short loses nothing: killed, starved of disk, or left without a server."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from connector.errors import DiskFull
from connector.publishing.publication import publish
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from connector.warehouse.bookmark import Stream
from connector.warehouse.landing import LandedCounts
from connector.warehouse.pull_commands import Commit
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import differences, published, pulled, rows, settings_of
from tests.support.clock import Time
from tests.support.clock import pulled as pulled_in

COUNTS = {"candidates": 230, "jobs": 20, "content_types": 2, "content_items": 8}
COMMAND = "from connector.cli import main; main(prog_name='connector')"
SMALL_BATCHES = (
    "from connector.pulls import detail_queue, listing;"
    "listing.BATCH_RECORDS_MAX = detail_queue.BATCH_RECORDS_MAX = 100;"
)
"""So that a load which is soon read has several batches."""


def start_pull(
    sandbox: Sandbox, folder: Path, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """The command itself, as a process of its own."""
    environ = {
        **os.environ,
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
    }
    return subprocess.Popen(
        [sys.executable, "-c", SMALL_BATCHES + COMMAND, "pull"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=before,  # noqa: PLW1509  # no thread of this process holds a lock it needs
    )


def kill_at(sandbox: Sandbox, folder: Path, request: int) -> None:
    """Start a pull and kill it when its n-th request has reached the server."""
    served = 0
    process: subprocess.Popen[bytes] | None = None

    def count(_: Store) -> None:
        nonlocal served
        served += 1
        if served == request and process is not None:
            process.send_signal(signal.SIGKILL)

    sandbox.between = count
    process = start_pull(sandbox, folder)
    process.communicate(timeout=60)
    sandbox.between = None
    assert -signal.SIGKILL == process.returncode


def test_a_pull_that_fails_at_any_commit_leaves_no_change_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, commit = Time(), Warehouse.commit
    with Sandbox(counts={"candidates": 8}, clock=time.servers) as sandbox:
        pulled_in(sandbox, tmp_path / "before", "candidates", time=time)
        time.pass_minutes(10)
        # Changed in the order that they had, so that the list alone does not show the change.
        candidates = sandbox.store.records("candidates")
        for id in sorted(candidates, key=lambda each: str(candidates[each]["updated_at"]))[-3:]:
            sandbox.store.update("candidates", id, {"notes": "Changed"})
            time.pass_minutes(1)
        time.pass_minutes(10)
        for fails_at in count(1):
            commits = count(1)

            def failing(
                warehouse: Warehouse, stream: Stream, what: Commit, *given: Any
            ) -> LandedCounts:
                if what != Commit() and next(commits) == fails_at:  # noqa: B023
                    raise DiskFull("The disk is full.")
                return commit(warehouse, stream, what, *given)

            folder = tmp_path / str(fails_at)
            shutil.copytree(tmp_path / "before", folder)
            with monkeypatch.context() as patch:
                patch.setattr(Warehouse, "commit", failing)
                report = pulled_in(sandbox, folder, "candidates", time=time)
            time.pass_minutes(10)
            if report.outcome == "done":
                break
            assert "done" == pulled_in(sandbox, folder, "candidates", time=time).outcome
            assert [] == differences(sandbox, published(folder)), f"{fails_at = }"
        assert fails_at > 1


@pytest.mark.slow
def test_killed_again_and_again_a_first_load_loses_nothing(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        kills = (23, 24, 60, 130, 110, 33)
        for request in kills:
            kill_at(sandbox, tmp_path, request)
        before = len(sandbox.log)
        report = pulled(sandbox, tmp_path)

        assert "done" == report.outcome, report.as_json()
        assert [] == differences(sandbox, published(tmp_path))
        # Every detail was landed before the last kill: only the walk's own one is left to read.
        assert 1 == report.resources["candidates"].details
        # 230 details and the walk's, and what each kill took: a batch begun and not committed.
        details = [s for s in sandbox.log if s.path.startswith("/api/v1/candidates/")]
        assert len(details) <= 231 + 20 + 60 + 30 + 10 + 4 * len(kills)
        assert len(sandbox.log) - before == report.requests
        outcomes = rows(published(tmp_path), "SELECT outcome FROM sync.runs ORDER BY started_at")
        assert ["interrupted"] * len(kills) == [row["outcome"] for row in outcomes[:-1]]


def test_a_server_that_vanishes_ends_the_run_and_keeps_what_landed(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        served = 0
        # The server cannot wait for its own end, so another thread does.
        stopping = threading.Thread(target=sandbox.stop)

        def vanish(_: Store) -> None:
            nonlocal served
            served += 1
            if served == 150:
                stopping.start()

        sandbox.between = vanish
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


@pytest.mark.slow
def test_a_disk_that_fills_up_is_named_and_the_old_copy_stays(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path, "jobs")
        before = published(tmp_path).read_bytes()
        size = Warehouse(tmp_path / "data").work.stat().st_size

        def starve() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

        process = start_pull(sandbox, tmp_path, starve)
        _, said = process.communicate(timeout=60)

        assert 1 == process.returncode, said.decode()
        assert b"Traceback" not in said
        assert b"disk is full" in said, said.decode()
        assert before == published(tmp_path).read_bytes()

        assert "done" == pulled(sandbox, tmp_path).outcome
        assert [] == differences(sandbox, published(tmp_path))


def test_publishing_onto_a_full_disk_is_named(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}) as sandbox:
        pulled(sandbox, tmp_path, "jobs")
    settings = settings_of(sandbox, tmp_path)
    before = published(tmp_path).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    obeyed = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
        with pytest.raises(DiskFull, match="disk is full"):
            publish(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, obeyed)

    assert before == published(tmp_path).read_bytes()
    assert [] == list(settings.folder.glob("*.publishing*"))
