"""The work file itself: how its rows lie in it, and who may have it at the same time."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from connector.errors import WarehouseBusy
from connector.warehouse import Warehouse
from connector.warehouse.file import BLOCK_BYTES, ROW_GROUP_ROWS, opened, transaction
from tests.pull.landed import rows

ROWS = 12 * ROW_GROUP_ROWS + 100


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The work file of a warehouse that was prepared."""
    warehouse = Warehouse(tmp_path)
    warehouse.prepare()
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
def test_row_groups_and_blocks_stay_small(work: Path) -> None:
    """However large a table is and however it came about, a commit writes and joins a few thousand
    rows at once: this is what bounds the memory that it takes.
    """
    with opened(work) as connection:
        sizes = connection.execute("SELECT block_size FROM pragma_database_size()").fetchall()
        connection.execute(f"INSERT INTO landing.jobs (id) SELECT n FROM range({ROWS}) each(n)")
    for first in range(0, ROWS, 2000):
        with opened(work) as connection, transaction(connection):
            connection.execute(
                "DELETE FROM landing.jobs WHERE id::BIGINT BETWEEN $1 AND $1 + 99", [first]
            )
            connection.execute(
                "INSERT INTO landing.jobs (id) SELECT $1 + n FROM range(100) each(n)", [first]
            )
    with opened(work) as connection:
        counts = row_groups(connection, "landing.jobs")
        held = connection.execute("SELECT count(*), count(DISTINCT id) FROM landing.jobs")
        live = held.fetchall()

    assert (BLOCK_BYTES,) in sizes
    assert [(ROWS, ROWS)] == live
    assert ROW_GROUP_ROWS >= max(counts)
    # Rows that were deleted stay until their row group is joined with another; neither they nor
    # row groups that are not full pile up, one for each commit.
    assert ROWS <= sum(counts) <= ROWS + ROW_GROUP_ROWS
    assert 2 + ROWS // ROW_GROUP_ROWS >= len(counts)


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
