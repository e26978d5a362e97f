"""Queries of a published file: read-only, and closed before the result is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.errors import Misused, UnknownName, WarehouseError
from connector.warehouse.duckdb_file import (
    SESSION,
    convert_errors,
    from_microseconds,
    literal,
    quoted,
    quoted_table,
)

_SCHEMAS_FIRST = ("marts", "staging", "seeds", "landing", "history", "sync", "push")

ABSENT = (duckdb.CatalogException, duckdb.BinderException)
"""Errors of a query that reads a table or column that the file does not have."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Result of a query: the names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def require_published(path: Path) -> Path:
    """Return the path of a published file. Raises `WarehouseError` if it does not exist."""
    if not path.exists():
        raise WarehouseError(
            f"{path} does not exist: nothing has been published yet", code="nothing_published"
        )
    return path


_REPLACE = (
    "Run 'connector publish', which replaces this file. If the work file is missing or damaged too,"
    " restore a backup with 'connector restore FROM'."
)
"""Action for a damaged published file: nothing in it is lost while the work file exists."""


@contextmanager
def open_read_only(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only connection to the file at this path, in UTC.

    `duckdb.connect(path)` would return a file that this process already has open, although it may
    have been replaced since.
    """
    try:
        with convert_errors(path), duckdb.connect(":memory:") as connection:
            name = quoted(path.name.partition(".")[0])
            connection.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
            connection.execute(f"USE {name}; {SESSION}")
            yield connection
    except WarehouseError as error:
        if error.code != "not_a_warehouse":
            raise
        raise WarehouseError(str(error), code=error.code, action=_REPLACE) from error


_RESTRICTED = """
SET threads = 1;
SET errors_as_json = true;
SET python_enable_replacements = false;
SET enable_external_access = false;
SET lock_configuration = true;
"""
"""Settings of `restricted`. With one thread a query returns its rows in the same order."""


@contextmanager
def open_restricted(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the file for a user's query, which can read no other file and write nothing.

    DuckDB's messages are JSON. Raises a `WarehouseError` if the file cannot be read.
    """
    with open_read_only(path) as connection:
        connection.execute(_RESTRICTED)
        yield connection


def query(path: Path, sql: str) -> QueryResult:
    """Run one query. Raises a `WarehouseError` if the file cannot be read."""
    with open_snapshot(path) as ask:
        return ask(sql)


@contextmanager
def open_snapshot(path: Path) -> Iterator[Callable[..., QueryResult]]:
    """Yield a function that runs queries on the file; later publications are not visible to it.

    The function takes a query and the values of its parameters by name.

    Raises a `WarehouseError` if the file is missing or cannot be read.
    """
    with open_read_only(path) as connection:

        def ask(sql: str, values: Mapping[str, Any] | None = None) -> QueryResult:
            cursor = connection.execute(sql, values)
            columns = tuple(str(each[0]) for each in cursor.description or ())
            return QueryResult(columns, tuple(cursor.fetchall()))

        yield ask


def read_verified_times(path: Path) -> dict[str, datetime | None]:
    """Return the time up to which each resource of the published file is verified, None if never.

    Empty if the file was published without the schema `sync`. Raises a `WarehouseError`.
    """
    with open_read_only(path) as connection:
        if "sync.bookmarks" not in tables_in(connection):
            return {}
        rows = connection.execute(
            "SELECT resource, CASE WHEN bool_and(proven_at IS NOT NULL)"
            " THEN epoch_us(min(proven_at)) END FROM sync.bookmarks"
            " GROUP BY resource ORDER BY resource"
        ).fetchall()
    return {resource: from_microseconds(timestamp) for resource, timestamp in rows}


def list_tables(path: Path) -> tuple[str, ...]:
    """Return the file's `schema.table` names, those for analysts first."""
    with open_read_only(path) as connection:
        return tables_in(connection)


def to_arrow(path: Path, sql: str) -> pa.Table:
    """Return a query's result as an Arrow table. Raises `Misused` and a `WarehouseError`."""
    with open_read_only(path) as connection:
        try:
            return connection.execute(sql).to_arrow_table()
        except (duckdb.ProgrammingError, duckdb.DataError) as error:
            raise Misused(f"the query cannot be run: {error}") from None


def read_table(path: Path, table: str) -> pa.Table:
    """Return a whole table or view. Raises `UnknownName` and a `WarehouseError`."""
    with open_read_only(path) as connection:
        known = tables_in(connection)
        if table not in known:
            raise UnknownName("table of the published file", table, known)
        return connection.execute(f"SELECT * FROM {quoted_table(table)}").to_arrow_table()


def write_parquet(path: Path, targets: Mapping[str, Path]) -> None:
    """Write tables of one snapshot to Parquet files. Raises a `WarehouseError`."""
    with open_read_only(path) as connection:
        for table, target in targets.items():
            connection.execute(
                f"COPY (SELECT * FROM {quoted_table(table)}) TO {literal(str(target))} "
                "(FORMAT parquet, COMPRESSION zstd)"
            )


def tables_in(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Return tables and views of an open file as `schema.table`, those for analysts first."""
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    order = {schema: place for place, schema in enumerate(_SCHEMAS_FIRST)}
    found.sort(key=lambda each: (order.get(each[0], len(order)), each[1]))
    return tuple(f"{schema}.{table}" for schema, table in found)
