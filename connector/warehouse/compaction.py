"""Compaction of loose rows: those that small commits leave at the end of a table.

The rows that are added while the file is open lie in a row group of their own from when it is
closed, a *piece*, and with every row group each look and each checkpoint costs more. DuckDB would
join row groups by itself, again and again, and up to three full ones at once, whenever rows were
deleted: that took more memory and time than everything else about a commit. So it is told not to,
and loose rows are written once more, together, as soon as they are enough for a row group or lie in
too many pieces. Row groups that have lost all their rows go by themselves. What a process leaves,
and what has lost rows here and there, is joined by the next one that changes any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from connector.warehouse.duckdb_file import ROW_GROUP_ROWS, transaction
from connector.warehouse.sparing import let_go

ROWS_ENOUGH = ROW_GROUP_ROWS * 5 // 8
"""So many rows are a row group that is left alone: with smaller ones there were more of them, and
for each one that has lost rows DuckDB holds a quarter of a megabyte until the file is closed.
"""

PIECES_MAX = 32
"""So many pieces are put together, however few rows they have."""

FRESH_ROWS_MAX = 512
"""So many rows are enough for one opening: until the file is closed they are kept in memory."""

SLICE_ROWS = 512
"""So many rows are put together in one transaction."""


@dataclass(slots=True)
class _Tail:
    """The loose rows at the end of a table, deleted ones among them, and their pieces."""

    rows: int = 0
    pieces: int = 0

    @property
    def is_long(self) -> bool:
        return self.pieces > 1 and (self.rows >= ROWS_ENOUGH or self.pieces >= PIECES_MAX)


class Compaction:
    """Compaction of the loose rows that one process has added to the tables of a file."""

    def __init__(self) -> None:
        self._tails: defaultdict[str, _Tail] = defaultdict(_Tail)
        self._fresh: Counter[str] = Counter()
        """What was added since the file was opened."""

    @property
    def is_long(self) -> bool:
        """Whether a table has so many that they are to be put together."""
        return any(tail.is_long for tail in self._tails.values())

    @property
    def has_many_fresh(self) -> bool:
        """Whether one opening of the file has added as many rows as it may."""
        return max(self._fresh.values(), default=0) >= FRESH_ROWS_MAX

    def put_together(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write the loose rows of one table that has many once more, together.

        It is done in transactions of its own, and before anything is added to a file that was just
        opened: what is added stands behind them. No row is lost, added or changed by it.
        """
        for name, tail in self._tails.items():
            if tail.is_long:
                _put_together(connection, name, tail.rows)
                self._fresh[name] = tail.rows
                tail.rows = tail.pieces = 0
                return

    def added(self, counts: Mapping[str, int]) -> None:
        """So many rows were committed to these tables."""
        self._fresh.update(counts)

    def closed(self) -> None:
        """The file was closed: what was added since it was opened is written."""
        for name, count in self._fresh.items():
            tail = self._tails[name]
            rest = count % ROW_GROUP_ROWS
            if count >= ROW_GROUP_ROWS or rest >= ROWS_ENOUGH:
                # What is before a row group that is left alone is left alone as well.
                tail.rows = tail.pieces = 0
            if 0 < rest < ROWS_ENOUGH:
                tail.rows += rest
                tail.pieces += 1
        self._fresh.clear()

    def joined(self) -> None:
        """The file was tidied, and closed: what was loose is part of something larger."""
        self._tails.clear()


def _put_together(connection: duckdb.DuckDBPyConnection, name: str, rows: int) -> None:
    # Where a piece among them has gone by itself, a few more are written than are loose. Each slice
    # is written behind the last, into one row group: a transaction takes several times its rows.
    written, left = 0, rows
    while left > 0:
        # A checkpoint in between may take away what is empty by then, and what is behind it moves
        # up: places are counted from the end.
        ((last,),) = connection.execute(f"SELECT max(rowid) FROM {name}").fetchall()
        if last is None:
            return
        first = last + 1 - written - left
        count = min(SLICE_ROWS, left)
        where = f"WHERE rowid BETWEEN {first} AND {first + count - 1}"
        with transaction(connection):
            ((moved,),) = connection.execute(
                f"INSERT INTO {name} SELECT * FROM {name} {where}"
            ).fetchall()
            connection.execute(f"DELETE FROM {name} {where}")
        let_go(connection)
        written, left = written + int(moved), left - count
