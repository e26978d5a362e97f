"""The work file itself: how its rows lie in it, and who may have it at the same time."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from connector.catalog import CATALOG
from connector.catalog.job import Job
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Found
from connector.errors import WarehouseBusy
from connector.warehouse import compaction
from connector.warehouse.compaction import ROWS_ENOUGH, Compaction
from connector.warehouse.duckdb_file import BLOCK_BYTES, opened
from connector.warehouse.runs import Run
from connector.warehouse.warehouse import Warehouse
from tests.alerts.agency import DONE
from tests.pull.landed import rows

JOBS = Stream(CATALOG["jobs"])
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"
TABLES = ("landing.jobs", "history.jobs")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse that was prepared."""
    prepared = Warehouse(tmp_path)
    prepared.prepare()
    return prepared


@pytest.fixture
def work(warehouse: Warehouse) -> Path:
    """Its work file."""
    return warehouse.work


def row_groups(connection: duckdb.DuckDBPyConnection, table: str) -> list[int]:
    """How many rows each row group of a table has on the disk."""
    found = connection.execute(
        "SELECT sum(count)::BIGINT FROM pragma_storage_info(?) "
        "WHERE column_name = 'id' AND segment_type = 'VARCHAR' "
        "GROUP BY row_group_id ORDER BY row_group_id",
        [table],
    ).fetchall()
    return [count for (count,) in found]


@pytest.mark.usefixtures("made_the_real_way")
def test_small_commits_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many small commits there were, and in however many processes, the rows lie together
    in a few row groups of a bounded size, and each row is there once.
    """
    monkeypatch.setattr(compaction, "PIECES_MAX", 8)
    made = []
    for process in range(2):
        warehouse = Warehouse(tmp_path)
        with warehouse.keeping():
            warehouse.prepare()
            warehouse.begin(Run(str(process), "pull", NOW))
        for batch in range(8 + 6):
            made += (ids := [f"{process} {batch} {number}" for number in range(2)])
            found = tuple(Found(Job({"id": id, "created_at": STAMP}), NOW) for id in ids)
            warehouse.commit(JOBS, Commit(records=found), str(process), NOW)
    with opened(warehouse.work) as connection:
        groups = {table: row_groups(connection, table) for table in TABLES}
        held = connection.execute("SELECT id FROM landing.jobs").fetchall()
        blocks = connection.execute("SELECT block_size FROM pragma_database_size()").fetchall()

    assert sorted(made) == sorted(id for (id,) in held)
    assert (BLOCK_BYTES,) in blocks
    for counts in groups.values():
        assert len(made) == sum(counts)
        # The pieces of the last process are not long enough yet.
        assert 6 + 2 >= len(counts)


@pytest.mark.usefixtures("made_the_real_way")
def test_processes_of_one_small_commit_do_not_pile_up(tmp_path: Path) -> None:
    """What earlier processes left is joined by the next one that changes a row, however little it
    does; one that changes none leaves it as it is.
    """
    found = {}
    for process in range(12):
        changes = process not in (4, 11)
        warehouse = Warehouse(tmp_path)
        with warehouse.keeping():
            warehouse.prepare()
            warehouse.begin(Run(str(process), "pull", NOW))
            if changes:
                record = Found(Job({"id": f"{process}", "created_at": STAMP}), NOW)
                warehouse.commit(JOBS, Commit(records=(record,)), str(process), NOW)
            warehouse.end_resource(str(process), DONE)
        with opened(warehouse.work) as connection:
            found[process] = row_groups(connection, "landing.jobs")

    assert [10, 4] == [sum(found[11]), sum(found[4])]
    assert found[3] == found[4]
    assert found[10] == found[11]
    # Up to three are joined at once, and the last one's piece is joined by the next one.
    assert 3 >= max(map(len, found.values()))


@pytest.mark.usefixtures("made_the_real_way")
def test_what_is_put_together_is_left_alone(tmp_path: Path) -> None:
    """Enough loose rows make a row group, which is not written again; nothing is left where they
    were, and each row is there once.
    """
    warehouse = Warehouse(tmp_path)
    warehouse.prepare()
    count, made = ROWS_ENOUGH // 2, 0
    found = []
    for _ in range(7):
        records = tuple(
            Found(Job({"id": f"{number:06}", "created_at": STAMP}), NOW)
            for number in range(made, made + count)
        )
        warehouse.commit(JOBS, Commit(records=records), "run", NOW)
        made += count
        with opened(warehouse.work) as connection:
            found.append(row_groups(connection, "landing.jobs"))
            held = connection.execute("SELECT count(*), count(DISTINCT id) FROM landing.jobs")
            assert [(made, made)] == held.fetchall()

    whole = 2 * count
    assert [[count], [count, count], [whole, count], [whole, count, count]] == found[:4]
    assert [[whole, whole, count], [whole, whole, count, count]] == found[4:6]
    assert [whole, whole, whole, count] == found[6]


def test_a_checkpoint_while_rows_are_put_together_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where DuckDB writes a checkpoint after each slice, all pieces are put together all the same,
    as many as there are slices, and each row is there once, as it was.
    """
    monkeypatch.setattr(compaction, "SLICE_ROWS", 100)
    path, rows_each, pieces = tmp_path / "work.duckdb", 25, compaction.PIECES_MAX
    ends = Compaction()
    with opened(path) as connection:
        connection.execute("CREATE TABLE t (id VARCHAR, text VARCHAR)")
        connection.execute("INSERT INTO t SELECT 'first', '' FROM range(1_000)")
    for piece in range(pieces):
        with opened(path) as connection:
            connection.execute(
                f"INSERT INTO t SELECT '{piece} ' || i, md5(i::VARCHAR) FROM range({rows_each}) "
                "AS r(i)"
            )
            ends.added({"t": rows_each})
        ends.closed()
    assert ends.is_long
    with opened(path) as connection:
        before = connection.execute("FROM t ORDER BY ALL").fetchall()
        assert 1 + pieces == len(row_groups(connection, "t"))
        connection.execute("SET GLOBAL wal_autocheckpoint = '1B'")
        ends.put_together(connection)
        # The instance may be kept for the next file.
        connection.execute("RESET GLOBAL wal_autocheckpoint")

    with opened(path) as connection:
        assert before == connection.execute("FROM t ORDER BY ALL").fetchall()
        assert [1_000] + 8 * [100] == row_groups(connection, "t")


def test_a_file_of_other_sizes_is_used_as_it_is(tmp_path: Path) -> None:
    """A file that was made with DuckDB's own sizes keeps its rows, and takes more."""
    path = tmp_path / "older.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    with opened(path) as connection:
        connection.execute("INSERT INTO kept VALUES (2)")

    assert [{"n": 1}, {"n": 2}] == rows(path, "FROM kept ORDER BY n")


def test_parts_of_one_process_have_the_file_together(work: Path) -> None:
    """Two connections see each other's commits, and each stays open when the other is closed."""
    with opened(work) as mine:
        with opened(work) as theirs:
            theirs.execute("INSERT INTO landing.jobs (id) VALUES ('theirs')")
            seen = mine.execute("SELECT id FROM landing.jobs").fetchall()
        mine.execute("INSERT INTO landing.jobs (id) VALUES ('mine')")

    assert [("theirs",)] == seen
    assert [{"id": "mine"}, {"id": "theirs"}] == rows(
        work, "SELECT id FROM landing.jobs ORDER BY id"
    )


def test_a_file_that_is_open_otherwise_is_busy(work: Path) -> None:
    """A connection that another part of this process made by itself is waited for, and named."""
    held = duckdb.connect(str(work))
    with pytest.raises(WarehouseBusy), opened(work, wait_seconds=0):
        pass
    held.close()
    with opened(work) as connection:
        assert [(0,)] == connection.execute("SELECT count(*) FROM landing.jobs").fetchall()


def test_the_catalog_has_the_file_s_own_name(tmp_path: Path) -> None:
    """A statement that names the catalog means the same here and wherever the file is opened."""
    path = tmp_path / "some'thing.duckdb.draft"
    with opened(path) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        here = connection.execute('SELECT n, current_database() FROM "some\'thing".kept').fetchall()
    with duckdb.connect(str(path)) as alone:
        there = alone.execute('SELECT n, current_database() FROM "some\'thing".kept').fetchall()

    assert [(1, "some'thing")] == here == there


def test_what_is_done_apart_is_done_in_one_thread(warehouse: Warehouse) -> None:
    """However much is asked at once, by whichever loop: one thread has the file, and not the one
    that asks.
    """

    async def ask() -> list[int]:
        asked = (warehouse.apart(threading.get_ident) for _ in range(20))
        return await asyncio.gather(*asked)

    threads = {*asyncio.run(ask()), *asyncio.run(ask())}
    assert 1 == len(threads - {threading.get_ident()}) == len(threads)
