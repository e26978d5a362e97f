"""Memory that is saved while a large file is used: nothing is lost or left behind by it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from connector.engine.commands import Commit, Gone
from connector.warehouse import memory, sparing
from connector.warehouse.duckdb_file import JOINED_ROWS, opened
from connector.warehouse.memory import DECAY_MILLISECONDS, SMALL_BYTES
from connector.warehouse.sparing import MEGABYTE, READ_SHARE, SPARING, let_go, narrowly, sparingly
from connector.warehouse.warehouse import Warehouse
from tests.pull.landed import rows
from tests.warehouse.versions import CANDIDATES, detail, item, moment, offences

LIMITS = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"


def test_what_is_let_go_is_written_nowhere(tmp_path: Path) -> None:
    """What an open transaction needs is neither lost nor spilled to the disk, the limits are the
    same each time, and the same process may open the file a second time.
    """
    path = tmp_path / "work.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, text VARCHAR)")
        # Fewer than a row group, and more bytes than are kept: they stay in memory until then.
        texts = "repeat(md5(i::VARCHAR), 90) FROM range(8000) AS r(i)"
        connection.execute(f"INSERT INTO t SELECT i, 'x' || {texts}")
        let_go(connection)
        before = connection.execute(LIMITS).fetchall()
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO t SELECT i, 'y' || {texts}")
        let_go(connection)
        assert {path, path.with_name("work.duckdb.wal")} >= set(tmp_path.iterdir())
        connection.execute("COMMIT")

        assert before == connection.execute(LIMITS).fetchall()
        with opened(path) as other:
            counts = other.execute("SELECT text[1], count(*) FROM t GROUP BY ALL ORDER BY 1")
            assert [("x", 8_000), ("y", 8_000)] == counts.fetchall()
    assert [path] == list(tmp_path.iterdir())


def test_what_takes_more_is_done_once_with_more(tmp_path: Path) -> None:
    """Work that the least memory is not enough for is carried out in the end, and only once; the
    limits are the same afterwards, after work that fails for another reason as well.
    """
    path = tmp_path / "work.duckdb"
    # A list of all the numbers is one value, and has to be in memory at once.
    large = "SELECT len(list(i)) FROM range(16_000_000) AS r(i)"
    tried: list[str] = []

    def work() -> tuple[int]:
        connection.execute("INSERT INTO t VALUES (1)")
        tried.append(connection.execute(LIMITS).fetchall()[0][0])
        (found,) = connection.execute(large).fetchall()
        return found

    def wrong() -> None:
        connection.execute("INSERT INTO t VALUES (2)")
        raise KeyError("of its own")

    with opened(path) as connection:
        connection.execute("CREATE TABLE t (id BIGINT)")
        let_go(connection)
        before = connection.execute(LIMITS).fetchall()
        assert (16_000_000,) == sparingly(connection, work)
        assert 1 < len(tried) == len(set(tried)) <= 1 + len(SPARING)
        with pytest.raises(KeyError):
            sparingly(connection, wrong)
        assert before == connection.execute(LIMITS).fetchall()
    assert [{"id": 1}] == rows(path, "FROM t")
    assert [path] == list(tmp_path.iterdir())


def test_reading_narrowly_keeps_little_and_what_it_cannot_do_is_done_otherwise(
    tmp_path: Path,
) -> None:
    """A statement that reads a large table narrowly leaves no more of it in memory than it may; one
    that needs more than that succeeds all the same, with what came before it done once.
    """
    path = tmp_path / "work.duckdb"
    with opened(path) as connection:
        # Digests compress to half of their size: 43 MB.
        text = " || ".join(f"md5(i || '{number}')" for number in range(90))
        connection.execute(f"CREATE TABLE t AS SELECT i AS id, {text} AS x FROM range(30000) r(i)")
    used = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
    tried: list[int] = []

    def read() -> int:
        with narrowly(connection):
            connection.execute("SELECT max(x) FROM t").fetchall()
            ((kept,),) = connection.execute(used).fetchall()
        return int(kept)

    def need() -> int:
        tried.append(1)
        connection.execute("INSERT INTO t VALUES (-1, '')")
        with narrowly(connection):
            ((found,),) = connection.execute(
                "SELECT len(list(i)) FROM range(8_000_000) AS r(i)"
            ).fetchall()
        return int(found)

    with opened(path) as connection:
        let_go(connection)
        before = connection.execute(LIMITS).fetchall()
        assert sparingly(connection, read) <= SPARING[0] * READ_SHARE
        let_go(connection)
        assert 8_000_000 == sparingly(connection, need)
        assert len(tried) > 1
        assert before == connection.execute(LIMITS).fetchall()
    assert [{"count": 1}] == rows(path, "SELECT count(*) AS count FROM t WHERE id = -1")


def test_what_was_deleted_is_not_of_what_is_read(tmp_path: Path) -> None:
    """Which rows of a table were deleted takes a quarter of a megabyte for each row group: where
    that is more than may be read, the first attempt finds a row all the same.
    """
    path, count = tmp_path / "work.duckdb", 110
    with opened(path, tidies=True) as connection:
        last = count * JOINED_ROWS
        connection.execute(f"CREATE TABLE t AS SELECT i AS id FROM range({last}) AS r(i)")
    with opened(path) as connection:
        connection.execute(f"DELETE FROM t WHERE id % {JOINED_ROWS} = 5")
    tried: list[int] = []

    def find() -> list[tuple[int]]:
        tried.append(1)
        with narrowly(connection, "t"):
            return connection.execute(f"SELECT id FROM t WHERE id % {last} = 7").fetchall()

    with opened(path) as connection:
        assert [(7,)] == sparingly(connection, find)
        ((held,),) = connection.execute(
            "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
        ).fetchall()
    assert held > SPARING[0] * READ_SHARE
    assert [1] == tried


def kept_milliseconds() -> int:
    """For how long DuckDB's allocator keeps what was freed, as it says itself."""
    assert memory._control is not None
    told, size = ctypes.c_ssize_t(), ctypes.c_size_t(8)
    name = b"arena.0.dirty_decay_ms"
    assert 0 == memory._control(name, ctypes.byref(told), ctypes.byref(size), None, 0)
    return told.value


def test_pages_are_given_back_while_a_large_file_is_open(tmp_path: Path) -> None:
    """While a large file is open DuckDB's allocator keeps nothing that was freed, and afterwards,
    and with a small file, as much as DuckDB wants it to.
    """
    if memory._control is None:
        pytest.skip("this build of DuckDB has no allocator of its own")
    path = tmp_path / "work.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE TABLE t (id BIGINT)")
        assert DECAY_MILLISECONDS == kept_milliseconds()
    # Bytes behind the last block are nobody's, so that the file is as it was.
    os.truncate(path, SMALL_BYTES + 1)
    with opened(path):
        assert 0 == kept_milliseconds()
    assert DECAY_MILLISECONDS == kept_milliseconds()


def test_where_the_limit_cannot_be_set_nothing_is_narrowed(tmp_path: Path) -> None:
    """Once something was written to the disk for lack of memory, DuckDB lets the folder for it not
    be changed: the work is done all the same, and the limit is what it was.
    """
    with opened(tmp_path / "work.duckdb") as connection:
        let_go(connection)
        before = connection.execute(LIMITS).fetchall()
        connection.execute("SET GLOBAL memory_limit = '40MB'")
        connection.execute(
            "CREATE TEMP TABLE t AS SELECT i, md5(i::VARCHAR) AS x FROM range(2_000_000) AS r(i)"
        )
        connection.execute(f"SET GLOBAL memory_limit = '{before[0][0]}'")
        before = connection.execute(LIMITS).fetchall()
        with pytest.raises(duckdb.NotImplementedException):
            connection.execute("SET GLOBAL temp_directory = ''")

        def work() -> int:
            with narrowly(connection):
                ((found,),) = connection.execute("SELECT count(*) FROM t").fetchall()
            return int(found)

        assert 2_000_000 == sparingly(connection, work)
        assert before == connection.execute(LIMITS).fetchall()


def commits() -> Iterator[Commit]:
    """Lists, details, changes in rows that are side by side and far apart, and deletions."""
    ids = [f"{number:04}" for number in range(900)]
    yield Commit(items=tuple(item(id, 0, status="active") for id in ids))
    yield Commit(records=tuple(detail(id, 10, -5, status="active", city=id) for id in ids))
    far = (*ids[5:12], *ids[300:700:97], ids[899])
    yield Commit(items=tuple(item(id, 20, status="placed") for id in far))
    yield Commit(records=tuple(detail(id, 30, 25, status="placed", city="York") for id in far))
    yield Commit(records=tuple(detail(id, 40, 35, status="placed", city="Bath") for id in far[::2]))
    yield Commit(gone={id: Gone(moment(50)) for id in (*far[3:6], ids[450])})
    yield Commit(records=tuple(detail(id, 60, 55, status="active") for id in far[4:9]))


def test_what_is_landed_sparingly_is_what_is_landed_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same commits leave the same rows in landing, history and queue, whether memory is saved
    or not, and however little of it the first attempts have.
    """
    left = []
    for name, (small, least) in {
        "plenty": (SMALL_BYTES, SPARING[0]),
        "little": (0, SPARING[0]),
        "too little": (0, MEGABYTE),
    }.items():
        monkeypatch.setattr(memory, "SMALL_BYTES", small)
        monkeypatch.setattr(sparing, "SPARING", (least, *SPARING))
        warehouse = Warehouse(tmp_path / name)
        with warehouse.keeping():
            warehouse.prepare()
            fates = [warehouse.commit(CANDIDATES, each, "run", moment(70)) for each in commits()]
        assert [] == offences(warehouse)
        tables = ("landing.candidates", "history.candidates", "sync.queue")
        left.append((fates, [rows(warehouse.work, f"FROM {each} ORDER BY ALL") for each in tables]))

    assert left[0] == left[1] == left[2]
    assert sum(len(table) for table in left[0][1]) > 1_800
