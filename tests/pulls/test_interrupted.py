"""A pull that fails at a commit or loses its server continues exactly. Kills: `tests/faults`."""

from __future__ import annotations

import resource
import signal
import threading
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.models.publish import publish
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.support.agency import differences, published, pulled, settings_of
from tests.support.errors import has_code

COUNTS = {"candidates": 230, "jobs": 20, "content_types": 2, "content_items": 8}


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
