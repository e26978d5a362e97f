"""The disk becomes full at any write of a pull."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.faults.killable_pull import PullForkServer, pull_order
from tests.seeds import SEED
from tests.support.agency import differences, published, rows
from tests.support.clock import pulled
from tests.support.kill_points import SHARES, sample_points

COUNTS = {"candidates": 40, "jobs": 6}
RESOURCES = ("jobs", "candidates")
STEP_BYTES = 16 * 1024
"""Distance of the file sizes at which the disk is full. Database files grow by more than this."""


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_a_full_disk_at_any_write_ends_with_an_error_and_an_intact_copy(
    tmp_path: Path, share: int
) -> None:
    with Sandbox(counts=COUNTS) as sandbox, PullForkServer() as fork_server:
        base = tmp_path / "base"
        assert "done" == pulled(sandbox, base, "jobs").outcome
        before = rows(published(base), "FROM landing.jobs ORDER BY id")
        shutil.copytree(base, tmp_path / "clean")
        assert "done" == pulled(sandbox, tmp_path / "clean", *RESOURCES).outcome
        largest = max(each.stat().st_size for each in (tmp_path / "clean" / "data").iterdir())
        starved = 0
        for size in sample_points(range(0, 2 * largest, STEP_BYTES), 3, share):
            point = f"no file beyond {size} bytes, seed {SEED}"
            folder = tmp_path / "starved"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(base, folder)
            ended = fork_server.run(pull_order(sandbox, folder, *RESOURCES, file_bytes_max=size))

            assert "Traceback" not in ended.output, (point, ended.output)
            assert "unexpected" not in ended.output, (point, ended.output)
            if ended.status != 0:
                starved += 1
                assert 1 == ended.status, (point, ended)
                # SQLite reports a limited file size as a disk error, unlike a full disk.
                named = ("disk is full", "state.sqlite cannot be used: disk I/O error")
                assert any(each in ended.output for each in named), (point, ended.output)
                found = rows(published(folder), "FROM landing.jobs ORDER BY id")
                assert before == found, point
            report = pulled(sandbox, folder, *RESOURCES)
            assert "done" == report.outcome, (point, report.as_json())
            assert [] == differences(sandbox, published(folder)), point
        assert starved > 0
