"""Databases in memory that have DuckLake, used again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from connector.lakehouse import attaching

_extended = attaching.extended


class Pool:
    """Databases in memory with their extensions, which take half a second to load, used again as
    soon as they are free.
    """

    def __init__(self) -> None:
        self._free: list[duckdb.DuckDBPyConnection] = []

    @contextmanager
    def extended(self, extensions: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to one that nobody else uses now."""
        found = self._free.pop() if self._free else _extended(extensions)
        try:
            with found.cursor() as connection:
                yield connection
        finally:
            self._free.append(found)

    def close(self) -> None:
        """Let go of all of them."""
        for each in self._free:
            each.close()
