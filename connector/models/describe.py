"""What columns a project's tables have, found by building it over an empty warehouse in memory.

Types come from DuckDB itself and no data is needed, so that catalogs, lineage and checks of the
declarations can ask before anything was pulled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import duckdb

from connector.models.project import Project
from connector.models.seeds import make_empty_table
from connector.models.statement import naming_line
from connector.warehouse.quoting import quoted
from connector.warehouse.schema import migrate


@dataclass(frozen=True, slots=True)
class Described:
    """A column of a table or view: its type, and its comment where a source has one."""

    name: str
    type: str
    comment: str


Shapes = Mapping[str, tuple[Described, ...]]
"""The columns of each table, by `schema.table`, in their order."""


def describe(project: Project) -> Shapes:
    """The columns of everything in the project, and of the sources below it.

    Raises a `ModelError` where a model cannot be built, even from nothing.
    """
    return _kept(_Keyed(project.digest, project))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A project that is equal to another one of the same content."""

    digest: str
    project: Project

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=4)
def _kept(keyed: _Keyed) -> Shapes:
    with empty_warehouse() as connection:
        make_empty(connection, keyed.project)
        return read_shapes(connection)


@contextmanager
def empty_warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse in memory with all tables of this version and nothing in them."""
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET TimeZone = 'UTC'")
        migrate(connection, "memory")
        yield connection
    finally:
        connection.close()


def make_empty(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    """Make every seed and every model as a table without rows: views would be opened up again by
    each one that reads them.
    """
    for name in project.order:
        node = project.node(name)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
        if name in project.seeds:
            make_empty_table(connection, project.seeds[name])
            continue
        model = project.models[name]
        with naming_line(model.path, f"{name} cannot be built"):
            sql = project.sql(model.template)
            connection.execute(f"CREATE TABLE {model.table} AS {sql}\nWITH NO DATA")


def read_shapes(connection: duckdb.DuckDBPyConnection, database: str | None = None) -> Shapes:
    """The columns of all tables and views of a database (None: the one that is in use)."""
    found: dict[str, list[Described]] = {}
    for schema, table, column, type, comment in connection.execute(
        "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = coalesce(?, current_database()) "
        "ORDER BY schema_name, table_name, column_index",
        [database],
    ).fetchall():
        found.setdefault(f"{schema}.{table}", []).append(Described(column, type, comment or ""))
    return {table: tuple(columns) for table, columns in found.items()}
