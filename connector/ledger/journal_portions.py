"""What the journal of pushes remembers, read back a portion at a time: a file may have a million
rows, and no more of them are in memory than a portion has.

Functions over an open connection. Portions go by a batch's row numbers, so that what is written
between two of them moves no row from one to the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from connector.ledger import journal_reads as reads
from connector.ledger.journal_reads import Changes, Key, Left, RowRecord, Work
from connector.ledger.journal_writes import UNFINISHED
from connector.ledger.migrations import OPEN

ROWS_AT_ONCE = 1_000
"""So many rows have a portion."""

_STATES = ", ".join(f"'{state}'" for state in UNFINISHED)
_UNFINISHED = f"task IS NOT NULL AND state IN ({_STATES})"
_FOLLOWED = """
    batch <> ? AND (batch, number) IN
        (SELECT same_batch, same_number FROM push_rows WHERE batch = ? AND state = 'follows')
"""
_SINCE = "change > ?"
_ROWS_SINCE = """
    (mine.change > ? OR (mine.state = 'follows' AND EXISTS (
        SELECT 1 FROM push_rows AS followed WHERE followed.batch = mine.same_batch
        AND followed.number = mine.same_number AND followed.change > ?)))
"""
_WITHIN = "mine.batch = ? AND mine.number > ? AND mine.number <= ?"


def rows_after(connection: sqlite3.Connection, batch: str, number: int) -> tuple[RowRecord, ...]:
    """The batch's next rows behind that number, with their outcomes and problems."""
    last = _last(connection, "push_rows", (batch, number))
    if last is None:
        return ()
    return reads.row_records(connection, _WITHIN, (batch, number, last))


def work_after(connection: sqlite3.Connection, batch: str, number: int) -> tuple[Work, ...]:
    """The batch's next rows behind that number that can be brought further."""
    last = _last(connection, "push_rows", (batch, number), _UNFINISHED)
    if last is None:
        return ()
    return reads.work(connection, f"{_UNFINISHED} AND {_WITHIN}", (batch, number, last))


def work_followed(connection: sqlite3.Connection, batch: str) -> tuple[Work, ...]:
    """The rows of other batches that rows of this one follow, and that can be brought further.
    They are in doubt, so that there are few.
    """
    return reads.work(connection, f"{_UNFINISHED} AND {_FOLLOWED}", (batch, batch))


def left(connection: sqlite3.Connection, batch: str) -> Left:
    """What a push of the batch has to work at, those rows of others that it follows included."""
    mine = f"{_UNFINISHED} AND (batch = ? OR {_FOLLOWED})"
    given = (batch, batch, batch)
    ((rows,),) = connection.execute(f"SELECT count(*) FROM push_rows WHERE {mine}", given)
    keys = connection.execute(
        f"SELECT batch, number FROM push_rows WHERE {mine} AND {OPEN}", given
    ).fetchall()
    return Left(rows, frozenset(keys))


def changes(connection: sqlite3.Connection, since: int) -> Iterator[Changes]:
    """Everything that changed since a number, in parts, the first of which has the batches.

    Everything there is, where the journal has not come as far as that number: it is another one
    then, that has taken the place of the one that was asked before.
    """
    ((last,),) = connection.execute("SELECT last FROM push_changes").fetchall()
    since = since if since <= last else 0
    yield Changes(last, batches=reads.batch_records(connection, _SINCE, (since,)))
    for span in _spans(connection, "push_rows", _ROWS_SINCE, (since, since)):
        where = f"{_ROWS_SINCE} AND {_WITHIN}"
        yield Changes(last, rows=reads.row_records(connection, where, (since, since, *span)))
    where = f"{_SINCE} AND {_WITHIN}"
    for span in _spans(connection, "push_attempts", _SINCE, (since,)):
        yield Changes(last, attempts=reads.attempt_records(connection, where, (since, *span)))
    for span in _spans(connection, "push_before", _SINCE, (since,)):
        yield Changes(last, before_images=reads.before_images(connection, where, (since, *span)))


def _spans(
    connection: sqlite3.Connection, table: str, where: str, parameters: tuple[Any, ...]
) -> Iterator[tuple[str, int, int]]:
    """Portions of the rows of a table that a condition selects: a batch, the number behind which
    the portion begins, and the last of its numbers.
    """
    batches = connection.execute(
        f"SELECT DISTINCT batch FROM {table} AS mine WHERE {where} ORDER BY batch", parameters
    ).fetchall()
    for (batch,) in batches:
        number, last = -1, _last(connection, table, (batch, -1), where, parameters)
        while last is not None:
            yield batch, number, last
            number, last = last, _last(connection, table, (batch, last), where, parameters)


def _last(
    connection: sqlite3.Connection,
    table: str,
    behind: Key,
    where: str = "1",
    parameters: tuple[Any, ...] = (),
) -> int | None:
    """The last number of a batch's next portion behind a number; None where there is no more."""
    ((last,),) = connection.execute(
        f"SELECT max(number) FROM (SELECT DISTINCT number FROM {table} AS mine WHERE batch = ?"
        f" AND number > ? AND {where} ORDER BY number LIMIT ?)",
        (*behind, *parameters, ROWS_AT_ONCE),
    ).fetchall()
    assert last is None or isinstance(last, int)
    return last
