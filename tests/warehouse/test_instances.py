"""DuckDB's instances in memory, which files are attached to: kept, and as good as new."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import duckdb
import pytest

from connector.warehouse import memory
from connector.warehouse.duckdb_file import IDLE_MAX, log_of, opened, transaction
from connector.warehouse.sparing import let_go


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[duckdb.DuckDBPyConnection]:
    """The instances in memory that were made."""
    connect: Callable[..., duckdb.DuckDBPyConnection] = duckdb.connect
    made: list[duckdb.DuckDBPyConnection] = []

    def noting(*args: object, **options: object) -> duckdb.DuckDBPyConnection:
        connection = connect(*args, **options)
        if args == (":memory:",):
            made.append(connection)
        return connection

    monkeypatch.setattr(duckdb, "connect", noting)
    return made


def _settings(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """All that can be set, but for what names the file."""
    let_go(connection)  # It rounds the limit of the memory, once.
    return connection.execute(
        "SELECT name, value FROM duckdb_settings() WHERE name <> 'temp_directory' ORDER BY name"
    ).fetchall()


def test_openings_one_after_another_have_one_instance(
    tmp_path: Path, made: list[duckdb.DuckDBPyConnection]
) -> None:
    """Whatever the files are: twenty openings of two files make one, or none where one waits."""
    for number in range(20):
        with opened(tmp_path / f"{number % 2}.duckdb") as connection:
            connection.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS n")

    assert len(made) <= 1


def test_an_instance_that_had_a_large_file_is_not_kept(
    tmp_path: Path, made: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds more than it did, so each opening makes one, once none is waiting."""
    monkeypatch.setattr(memory, "SMALL_BYTES", 0)
    path = tmp_path / "work.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE TABLE t (n INTEGER)")
    for _ in range(5):
        with opened(path):
            pass

    assert len(made) >= 5 - IDLE_MAX


def test_a_file_is_free_once_it_is_closed(tmp_path: Path) -> None:
    """Nobody has it any more, its log is in it, and what is behind its name may be another file
    the next time.
    """
    path = tmp_path / "work.duckdb"
    for number in range(3):
        with opened(path) as connection:
            connection.execute("CREATE TABLE t AS SELECT $1 AS n", [number])
        assert not log_of(path).exists()
        with duckdb.connect(str(path)) as other:
            assert other.execute("FROM t").fetchall() == [(number,)]
        path.unlink()


def test_an_opening_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """Neither settings nor variables, temporary tables and other files: the next one finds what the
    first one found, whether it is told to tidy or not, and whatever went wrong.
    """
    path, other = tmp_path / "work.duckdb", tmp_path / "other.duckdb"
    with opened(path) as connection:
        before = _settings(connection)

    with suppress(ZeroDivisionError), opened(path, tidies=True) as connection:
        connection.execute("SET VARIABLE secret = 'word'")
        connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS n")
        connection.execute(f"ATTACH '{other}' AS other")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE other.t AS SELECT 1 AS n")
        raise ZeroDivisionError

    with opened(path) as connection:
        assert _settings(connection) == before
        asked = "SELECT getvariable('secret'), count(*) FILTER (table_name = 'mine')"
        assert connection.execute(f"{asked} FROM duckdb_tables()").fetchall() == [(None, 0)]
        names = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
        assert ("work",) in names
        assert ("other",) not in names
    with duckdb.connect(str(other)) as connection:
        assert connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []


def test_openings_of_a_file_at_one_time_share_it(tmp_path: Path) -> None:
    """Threads that have the same file open see each other's commits, and others have others."""
    paths = [tmp_path / f"{number}.duckdb" for number in range(3)]
    for path in paths:
        with opened(path) as connection:
            connection.execute("CREATE TABLE t (n INTEGER)")
    all_open = Barrier(6)

    def insert(number: int) -> list[tuple[int]]:
        with opened(paths[number % 3]) as connection:
            all_open.wait(timeout=30)
            with transaction(connection):
                connection.execute("INSERT INTO t VALUES ($1)", [number])
            all_open.wait(timeout=30)
            return connection.execute("FROM t ORDER BY n").fetchall()

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(insert, range(6)))

    assert found == [[(n % 3,), (n % 3 + 3,)] for n in range(6)]
