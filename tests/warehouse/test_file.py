"""The work file: who can open it at the same time, and how it is replaced."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import duckdb
import pytest

from connector.catalog import CATALOG
from connector.errors import WarehouseError
from connector.pulls.ports import PullOptions
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.warehouse.file import open_file, replace_file, transaction
from connector.warehouse.stream import Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import differences, published, pulled, settings_of
from tests.support.errors import has_code

JOBS = Stream(CATALOG["jobs"])
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def work_file(warehouse: Warehouse) -> Path:
    """Path of a prepared work file."""
    return warehouse.work


def test_threads_that_open_a_file_together_share_it(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.duckdb" for number in range(3)]
    for path in paths:
        with open_file(path) as connection:
            connection.execute("CREATE TABLE t (n INTEGER)")
    all_open = Barrier(6)

    def insert(number: int) -> list[tuple[int]]:
        with open_file(paths[number % 3]) as connection:
            all_open.wait(timeout=30)
            with transaction(connection):
                connection.execute("INSERT INTO t VALUES ($1)", [number])
            all_open.wait(timeout=30)
            return connection.execute("FROM t ORDER BY n").fetchall()

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(insert, range(6)))

    assert found == [[(n % 3,), (n % 3 + 3,)] for n in range(6)]


def test_a_file_opened_by_another_program_is_busy(work_file: Path) -> None:
    program = f"import duckdb; held = duckdb.connect({str(work_file)!r}); print(1, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert b"1\n" == other.stdout.readline()
        with (
            pytest.raises(WarehouseError, match=f"used by process {other.pid}") as busy,
            open_file(work_file),
        ):
            pass
        other.communicate(b"\n")
    assert "warehouse_busy" == busy.value.code
    with open_file(work_file) as connection:
        assert [(0,)] == connection.execute("SELECT count(*) FROM landing.jobs").fetchall()


def test_a_lost_work_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 4}) as sandbox:
        pulled(sandbox, tmp_path)
        warehouse = Warehouse(tmp_path / "data")
        log = warehouse.work.with_name("work.duckdb.wal")
        with duckdb.connect(str(warehouse.work)) as connection:
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            connection.execute("INSERT INTO landing.jobs (id) VALUES ('ghost')")
        warehouse.work.unlink()
        old_log = log.read_bytes()
        for act in (lambda: pulled(sandbox, tmp_path), warehouse.prepare):
            with pytest.raises(
                WarehouseError, match="missing", check=has_code("work_lost")
            ) as lost:
                act()
            assert "connector pull --full" in lost.value.action
        assert not warehouse.exists
        # A log beside the missing file would be applied to the new one.
        log.write_bytes(old_log)
        settings = settings_of(sandbox, tmp_path)
        report = asyncio.run(pull(settings, options=PullOptions(is_full=True)))

        assert "done" == report.outcome
        assert [] == differences(sandbox, published(tmp_path))
        assert not log.exists()


def test_a_file_is_on_the_disk_before_it_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft, target = tmp_path / "draft.duckdb", tmp_path / "target.duckdb"
    draft.write_bytes(b"new")
    target.write_bytes(b"old")
    inodes = {draft.stat().st_ino: "draft", tmp_path.stat().st_ino: "folder"}
    steps: list[tuple[str, bytes]] = []

    def record_sync(descriptor: int) -> None:
        steps.append((inodes[os.fstat(descriptor).st_ino], target.read_bytes()))

    monkeypatch.setattr(os, "fsync", record_sync)
    replace_file(draft, target)

    assert [("draft", b"old"), ("folder", b"new")] == steps
