"""Looking and committing with little memory: rows that lie all over a large file would else bring
most of it along.

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

from connector.warehouse.file import transaction

T = TypeVar("T")

SPARING = ("64MB", "96MB", "192MB", "384MB")
"""How much memory one batch's look or commit is done with, and with how much if that is too little,
as DuckDB counts it. A change takes a quarter of a megabyte in each row group that it touches.
"""

READ_BYTES = 24 * 1024 * 1024
"""How much of what one statement reads is kept while it runs: to find one row of each group, all
are read.
"""

_KEPT = "8MB"

_reads_narrowly: ContextVar[bool] = ContextVar("reads_narrowly", default=False)


def let_go(connection: duckdb.DuckDBPyConnection) -> None:
    """Give back the memory of what was read from the file and is kept for whoever reads it next:
    DuckDB keeps all of it until the file is closed. What an open transaction needs stays.
    """
    with _limited(connection, _KEPT):
        pass


def sparingly(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """What `work` gives, done in a transaction and with little memory for what it reads. Where that
    is not enough it is rolled back and done with more, and at last with all there is.
    """
    for limit in SPARING:
        # The commit itself has all there is: one that fails must not have been carried out.
        with (
            suppress(duckdb.OutOfMemoryException),
            transaction(connection),
            _limited(connection, limit, narrows=limit == SPARING[0]),
        ):
            return work()
    with transaction(connection):
        return work()


@contextmanager
def narrowly(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keep no more than `READ_BYTES` of what the statements inside read, beside what the open
    transaction needs, in the first attempt of `sparingly`; elsewhere this does nothing.
    """
    if not _reads_narrowly.get():
        yield
        return
    with connection.cursor() as session:
        with suppress(duckdb.OutOfMemoryException):
            session.execute(f"SET GLOBAL memory_limit = '{_KEPT}'")
        ((held,),) = session.execute(
            "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
        ).fetchall()
        session.execute(f"SET GLOBAL memory_limit = '{(held + READ_BYTES) // 1000}KB'")
        try:
            yield
        finally:
            session.execute(f"SET GLOBAL memory_limit = '{SPARING[0]}'")


@contextmanager
def _limited(
    connection: duckdb.DuckDBPyConnection, limit: str, *, narrows: bool = False
) -> Iterator[None]:
    """Keep no more than this in memory, if that can be; with `narrows`, less where it is asked."""
    # In a session of its own: a limit that cannot be kept would end the transaction.
    with connection.cursor() as session:
        ((folder,),) = session.execute("SELECT current_setting('temp_directory')").fetchall()
        try:
            session.execute("SET GLOBAL temp_directory = ''")
        except duckdb.NotImplementedException:
            yield  # Something large is there already, and memory is short anyway.
            return
        token = _reads_narrowly.set(narrows)
        try:
            with suppress(duckdb.OutOfMemoryException):
                session.execute(f"SET GLOBAL memory_limit = '{limit}'")
            yield
        finally:
            _reads_narrowly.reset(token)
            session.execute(f"SET GLOBAL memory_limit = '{_memory_limit()}'")
            session.execute("SET GLOBAL temp_directory = $1", [folder])


@cache
def _memory_limit() -> str:
    """How much DuckDB may take of this machine's memory, as it says itself. It rounds, so that it
    is asked once: a limit that is read and set again is less each time.
    """
    with duckdb.connect() as fresh:
        ((limit,),) = fresh.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(limit)
