"""Commits and queries with little memory, of rows all over a large file.

DuckDB keeps what it reads as far as its limit allows, so the limit is what is set: for a whole
batch, and less while one statement looks for rows. Only for a file that nobody else in this process
uses at the time. Nothing is written anywhere instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

import duckdb

from connector.warehouse.duckdb_file import literal, transaction

T = TypeVar("T")

MEGABYTE = 1_000_000

SPARING = tuple(megabytes * MEGABYTE for megabytes in (64, 80, 96, 128, 192, 384))
"""How many bytes one batch's look or commit is done with, and with how many if those are too few,
as DuckDB counts them. A change takes a quarter of a megabyte in each row group that it touches; all
that is left is filled with what is read, so that the steps are small.
"""

READ_SHARE = 3 / 8
"""The part of them that one statement which looks for rows may fill with what it reads: to find one
row of each group, all are read.
"""

_KEPT_BYTES = 8 * MEGABYTE

_sparing: ContextVar[int | None] = ContextVar("sparing", default=None)
"""The bytes of the attempt that is under way."""


def let_go(connection: duckdb.DuckDBPyConnection) -> None:
    """Give back the memory of what was read; what a transaction needs stays."""
    with _limited(connection, _KEPT_BYTES):
        pass


def sparingly(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """What `work` gives, done in a transaction with little memory.

    Where that is not enough it is rolled back and done with more, and at last with all there is.
    """
    for count in SPARING:
        # The commit itself has all there is: one that fails must not have been carried out.
        with (
            suppress(duckdb.OutOfMemoryException),
            transaction(connection),
            _limited(connection, count, spares=True),
        ):
            return work()
    with transaction(connection):
        return work()


@contextmanager
def narrowly(connection: duckdb.DuckDBPyConnection, *tables: str) -> Iterator[bool]:
    """Keep little of what the statements inside read, in an attempt of `sparingly`.

    Elsewhere this does nothing. Yields whether it does.
    """
    count = _sparing.get()
    if count is None:
        yield False
        return
    for table in tables:
        # Which rows were deleted is kept until the file is closed, and so not of what is read.
        connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    with connection.cursor() as session:
        with suppress(duckdb.OutOfMemoryException):
            session.execute(_limit(_KEPT_BYTES))
        ((held,),) = session.execute(
            "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
        ).fetchall()
        session.execute(_limit(held + count * READ_SHARE))
        try:
            yield True
        finally:
            session.execute(_limit(count))


def _limit(count: float) -> str:
    """A statement: no more than so many bytes."""
    return f"SET GLOBAL memory_limit = '{count // 1000:.0f}KB'"


@contextmanager
def _limited(
    connection: duckdb.DuckDBPyConnection, count: int, *, spares: bool = False
) -> Iterator[None]:
    """Keep no more bytes than this in memory, if that can be."""
    # In a session of its own: a limit that cannot be kept would end the transaction.
    with connection.cursor() as session:
        ((folder,),) = session.execute("SELECT current_setting('temp_directory')").fetchall()
        try:
            session.execute("SET GLOBAL temp_directory = ''")
        except duckdb.NotImplementedException:
            yield  # Something large is there already, and memory is short anyway.
            return
        token = _sparing.set(count if spares else None)
        try:
            with suppress(duckdb.OutOfMemoryException):
                session.execute(_limit(count))
            yield
        finally:
            _sparing.reset(token)
            session.execute(f"SET GLOBAL memory_limit = '{_memory_limit()}'")
            session.execute(f"SET GLOBAL temp_directory = {literal(folder)}")


@cache
def _memory_limit() -> str:
    """DuckDB's own limit of this machine's memory, asked for once.

    DuckDB rounds: a limit that is read and set again is less each time.
    """
    with duckdb.connect() as fresh:
        ((limit,),) = fresh.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(limit)
