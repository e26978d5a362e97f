"""Reusable connections to in-memory databases with the DuckLake extension."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import duckdb

from connector.publishing import lakehouse_connection


class ConnectionPool:
    """Reusable in-memory databases with loaded extensions, because loading takes half a second.

    DuckDB keeps the first storage settings, so each storage endpoint gets its own databases.
    """

    connect_unpooled = staticmethod(lakehouse_connection.connect_with_extensions)

    def __init__(self) -> None:
        self._free: defaultdict[tuple[object, ...], list[duckdb.DuckDBPyConnection]]
        self._free = defaultdict(list)

    @contextmanager
    def connect(self, extensions: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection to a database with these extensions that no other connection uses."""
        free = self._free[frozenset(extensions), os.environ.get(lakehouse_connection.ENDPOINT)]
        found = free.pop() if free else self.connect_unpooled(extensions)
        try:
            with found.cursor() as connection:
                try:
                    yield connection
                finally:
                    for name in (lakehouse_connection.LAKE, "published"):
                        with suppress(duckdb.Error):
                            connection.execute(f"DETACH DATABASE IF EXISTS {name}")
        finally:
            free.append(found)

    def close(self) -> None:
        """Close all databases."""
        for free in self._free.values():
            for each in free:
                each.close()
