"""The work file: its row groups, and who can open it at the same time."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import duckdb
import pytest

from connector.catalog import CATALOG
from connector.catalog.job import Job
from connector.errors import WarehouseError
from connector.warehouse import warehouse as warehouse_module
from connector.warehouse.file import (
    BLOCK_BYTES,
    has_waiting_process,
    open_file,
    transaction,
    wal_path,
)
from connector.state.runs import Run, begin_run, finish_resource_run, last_runs
from connector.warehouse.state import report_notices, write_notice
from connector.warehouse.stream import Commit, Event, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.problems.agency import DONE
from tests.repository import ROOT
from tests.support.agency import rows
from tests.support.errors import has_code

JOBS = Stream(CATALOG["jobs"])
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"
TABLES = ("landing.jobs", "history.jobs")


@pytest.fixture
def work_file(warehouse: Warehouse) -> Path:
    """Path of a prepared work file."""
    return warehouse.work


def test_duckdb_draws_no_progress_bar_into_the_output_of_a_program(work_file: Path) -> None:
    program = f"""
from pathlib import Path
import duckdb
from connector.warehouse.file import open_file
from connector.warehouse.user_query import open_read_only
setting = "SELECT current_setting('enable_progress_bar')"
path = Path({str(work_file)!r})
for session in (duckdb.connect(), open_file(path), open_read_only(path)):
    with session as connection:
        print(*connection.execute(setting).fetchone())
"""
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert ["True", "False", "False"] == told.split()


def list_row_groups(connection: duckdb.DuckDBPyConnection, table: str) -> list[int]:
    """Return the number of rows of each row group of a table."""
    found = connection.execute(
        "SELECT sum(count)::BIGINT FROM pragma_storage_info(?) "
        "WHERE column_name = 'id' AND segment_type = 'VARCHAR' "
        "GROUP BY row_group_id ORDER BY row_group_id",
        [table],
    ).fetchall()
    return [count for (count,) in found]


@pytest.mark.slow
@pytest.mark.usefixtures("without_warehouse_template")
def test_small_row_groups_are_compacted_regularly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse_module, "RUNS_UNTIL_COMPACTION", 5)
    counts = []
    for number in range(12):
        warehouse = Warehouse(tmp_path)
        run = Run(str(number), "pull", NOW + timedelta(days=365 * 30, seconds=number))
        warehouse.prepare()
        warehouse.write(begin_run, run)
        record = FoundDetail(Job({"id": f"{number}", "created_at": STAMP}), NOW)
        warehouse.commit(JOBS, Commit(records=(record,)), run.run_id, NOW)
        warehouse.write(finish_resource_run, run.run_id, replace(DONE, resource="jobs", new=1))
        with open_file(warehouse.work) as connection:
            write_notice(connection, Event("work_taken_back", "from the published file"), NOW)
            groups = {table: list_row_groups(connection, table) for table in TABLES}
            blocks = connection.execute("SELECT block_size FROM pragma_database_size()").fetchall()
        assert {number + 1} == {sum(each) for each in groups.values()}
        counts.append(max(map(len, groups.values())))

    assert [1, 2, 3, 4, 5] == counts[:5]
    assert [2] == counts[5:6]
    assert (BLOCK_BYTES,) in blocks
    assert ("from the published file",) == warehouse.write(report_notices, "last")


def test_a_file_with_other_block_sizes_is_used_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "older.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    with open_file(path) as connection:
        connection.execute("INSERT INTO kept VALUES (2)")

    assert [{"n": 1}, {"n": 2}] == rows(path, "FROM kept ORDER BY n")


def test_two_connections_of_one_process_share_the_file(work_file: Path) -> None:
    with open_file(work_file) as mine:
        with open_file(work_file) as theirs:
            theirs.execute("INSERT INTO landing.jobs (id) VALUES ('theirs')")
            seen = mine.execute("SELECT id FROM landing.jobs").fetchall()
        mine.execute("INSERT INTO landing.jobs (id) VALUES ('mine')")

    assert [("theirs",)] == seen
    assert [{"id": "mine"}, {"id": "theirs"}] == rows(
        work_file, "SELECT id FROM landing.jobs ORDER BY id"
    )


def test_a_closed_file_can_be_opened_by_others(tmp_path: Path) -> None:
    path = tmp_path / "work.duckdb"
    for number in range(3):
        with open_file(path) as connection:
            connection.execute("CREATE TABLE t AS SELECT $1 AS n", [number])
        assert not wal_path(path).exists()
        with duckdb.connect(str(path)) as other:
            assert other.execute("FROM t").fetchall() == [(number,)]
        path.unlink()


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
    held = duckdb.connect(str(work_file))
    with (
        pytest.raises(WarehouseError, check=has_code("warehouse_busy")),
        open_file(work_file, wait_seconds=0),
    ):
        pass
    held.close()
    with open_file(work_file) as connection:
        assert [(0,)] == connection.execute("SELECT count(*) FROM landing.jobs").fetchall()


def test_the_database_name_is_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some'thing.duckdb.draft"
    with open_file(path) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        here = connection.execute('SELECT n, current_database() FROM "some\'thing".kept').fetchall()
    with duckdb.connect(str(path)) as alone:
        there = alone.execute('SELECT n, current_database() FROM "some\'thing".kept').fetchall()

    assert [(1, "some'thing")] == here == there


def test_a_file_kept_open_is_released_to_a_waiting_process(warehouse: Warehouse) -> None:
    with warehouse.keep_open():
        warehouse.read(last_runs, 1)
        waiting = start_waiting_process(warehouse.work)
        try:
            until = time.monotonic() + 60
            while not has_waiting_process(warehouse.work):
                assert time.monotonic() < until
            warehouse.release_if_requested()
            found = warehouse.read(last_runs, 1)
        finally:
            said, _ = waiting.communicate(timeout=60)

    assert b"had it" in said
    # Its own next use came after the other's.
    assert ("theirs",) == tuple(run.run_id for run in found)


def test_a_file_kept_open_is_not_released_without_a_request(warehouse: Warehouse) -> None:
    with warehouse.keep_open():
        warehouse.read(last_runs, 1)
        assert not has_waiting_process(warehouse.work)
        warehouse.release_if_requested()
        with pytest.raises(WarehouseError, check=has_code("warehouse_busy")):
            open_in_other_process(warehouse.work)


WAITING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from connector.errors import WarehouseError
from connector.warehouse.file import open_file
try:
    with open_file(Path(sys.argv[1]), wait_seconds=float(sys.argv[2])) as connection:
        connection.execute("INSERT INTO sync.runs (run_id, started_at) VALUES ('theirs', now())")
    print("had it")
except WarehouseError:
    print("busy")
"""


def start_waiting_process(work_file: Path, wait_seconds: float = 30) -> subprocess.Popen[bytes]:
    """Start a process that opens the file as soon as it can."""
    command = [sys.executable, "-c", WAITING, str(work_file), str(wait_seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def open_in_other_process(work_file: Path) -> None:
    """Let another process open the file, and raise `WarehouseError` if it cannot immediately."""
    said, _ = start_waiting_process(work_file, 0).communicate(timeout=60)
    if b"busy" in said:
        raise WarehouseError("held", code="warehouse_busy")
