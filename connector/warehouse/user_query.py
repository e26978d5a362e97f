"""Queries of the published file: read-only, and confined to the file if a user wrote them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.errors import Misused, WarehouseError
from connector.warehouse.file import literal, open_read_only
from connector.warehouse.queries import verified_at

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
        return verified_at(connection) if "sync.bookmarks" in tables_in(connection) else {}


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


def tables_in(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Return tables and views of an open file as `schema.table`, those for analysts first."""
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    order = {schema: place for place, schema in enumerate(_SCHEMAS_FIRST)}
    found.sort(key=lambda each: (order.get(each[0], len(order)), each[1]))
    return tuple(f"{schema}.{table}" for schema, table in found)


# -- Queries of users ------------------------------------------------------------------------------

_RESTRICTED = """
SET threads = 1;
SET python_enable_replacements = false;
SET enable_external_access = false;
SET lock_configuration = true;
"""
"""Settings for a user's query. With one thread it returns its rows in the same order."""

_BATCH_ROWS = 10_000
_TEXT_OR_WHOLE = r"VARCHAR|UUID|JSON|ENUM\([^\[]*\)|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
_CELLS = {
    rf'{_TEXT_OR_WHOLE}|"NULL"|BOOLEAN|DATE|FLOAT|TIMESTAMP': "{}::VARCHAR",
    r"DOUBLE|DECIMAL\(.*\)": r"regexp_replace({}::VARCHAR, '\.0+$', '')",
    "TIMESTAMP WITH TIME ZONE": "replace({}::VARCHAR, '+00', 'Z')",
    rf"({_TEXT_OR_WHOLE})\[[0-9]*\]": "array_to_string({}, '; ')",
}
"""SQL for the text of a cell, by the type of its column."""


@contextmanager
def open_query(
    published: Path, query: str, null: str
) -> Iterator[tuple[list[str], Iterator[tuple[str, ...]]]]:
    """Run a query that can read only the published file.

    Args:
        published: The published file.
        query: SQL, or the path of a .sql file.
        null: Text of a cell that is null.

    Yields:
        The names of the columns, and the rows as texts of cells.

    Raises:
        Misused: The query fails, is not one SELECT, or has columns that cells cannot contain.
        WarehouseError: The published file is missing or cannot be read.
    """
    path, where = Path(query), "the query"
    if "\n" not in query and path.suffix.lower() == ".sql":
        where = str(path)
        try:
            query = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(
                f"{path} cannot be read: {error}", action="Give a .sql file in UTF-8."
            ) from None
    with open_read_only(require_published(published)) as connection:
        connection.execute(_RESTRICTED)
        with _convert_errors(where):
            statements = connection.extract_statements(query)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                raise Misused(
                    "the query is not one SELECT statement",
                    action="Give one statement that reads tables of the published file, for example"
                    " 'select id, notes from own.candidates_to_update'.",
                )
            found = connection.sql(query)
            names = [str(name) for name in found.columns]
            counts = Counter(map(str.casefold, names))
            for name in names:
                if (count := counts[name.casefold()]) > 1:
                    raise Misused(
                        f"the query returns {count} columns named {name!r}",
                        action="Leave one out, or rename it with AS.",
                    )
            cells = [
                f"coalesce({_cell(name, str(type))}, {literal(null)})"
                for name, type in zip(names, found.types, strict=True)
            ]
            found = found.project(", ".join(cells))

        def rows() -> Iterator[tuple[str, ...]]:
            with _convert_errors(where):
                while batch := found.fetchmany(_BATCH_ROWS):
                    yield from batch

        yield names, rows()


def _cell(name: str, type: str) -> str:
    """Return SQL for the text of a column's cells. Raises `Misused`."""
    for pattern, cell in _CELLS.items():
        if re.fullmatch(pattern, type):
            quotes = name.replace('"', '""')
            return cell.format(f'"{quotes}"')
    raise Misused(
        f"column {name!r} of the query has the type {type}, which a cell cannot contain",
        action="Leave the column out, or cast it to VARCHAR.",
    )


@contextmanager
def _convert_errors(where: str) -> Iterator[None]:
    """Raise errors of DuckDB as `Misused`, with the line of the query."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        message = re.sub(r"^[A-Z]\w+ Error: ", "", text.partition("\n")[0]).rstrip("!")
        line = re.search(r"^LINE (\d+):", text, re.MULTILINE)
        if isinstance(error, duckdb.PermissionException):
            message = "a query can read only the published file"
        elif isinstance(error, duckdb.DataError):
            # The value can be personal, and messages are logged.
            message = re.sub(r"'[^']*'|\"[^\"]*\"", "a value", message)
        at = f" in line {line[1]}" if line else ""
        raise Misused(f"{where} failed{at}: {message}", action="Correct the query.") from None
