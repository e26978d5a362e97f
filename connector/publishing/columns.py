"""Columns of a project's tables: types, descriptions, and which are personal.

DuckDB gives the types: the project is built over an empty warehouse in memory, so that catalogs and
checks of the declarations need no data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from connector.catalog import CATALOG
from connector.errors import ModelError
from connector.publishing.project import Model, Project, convert_sql_errors
from connector.warehouse.duckdb_file import quoted
from connector.warehouse.schema import Column, TableSchema, complete_tables

# -- Types -----------------------------------------------------------------------------------------

TableColumns = Mapping[str, tuple[Column, ...]]
"""Columns of each table, by `schema.table`, in order."""

_SHAPES: dict[str, TableColumns] = {}
"""Columns of the projects that were described in this process, by digest of the project."""


def describe_project(project: Project) -> TableColumns:
    """Return the columns of all seeds and models of a project, and of its source tables.

    The project is built once per process, over empty tables. Raises a `ModelError` if a model
    cannot be built.
    """
    if project.digest not in _SHAPES:
        with empty_warehouse() as connection:
            for node in project.nodes:
                _create_empty_table(connection, project, node.name)
            _SHAPES[project.digest] = read_table_columns(connection)
    return _SHAPES[project.digest]


@contextmanager
def empty_warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a warehouse in memory with all tables of this version and no rows."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        complete_tables(connection, "memory")
        yield connection


def _create_empty_table(connection: duckdb.DuckDBPyConnection, project: Project, name: str) -> None:
    """Create the seed or model as a table without rows.

    DuckDB would expand a view again in each model that reads it.
    """
    node = project.node(name)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
    if isinstance(node, Model):
        with convert_sql_errors(node.path, f"{name} cannot be built"):
            sql = node.query.sql
            connection.execute(f"CREATE TABLE {node.table} AS {sql}\nWITH NO DATA")
    else:
        defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in node.columns)
        connection.execute(f"CREATE TABLE {node.table} ({defined})")


def read_table_columns(
    connection: duckdb.DuckDBPyConnection, database: str | None = None
) -> TableColumns:
    """Return the columns of all tables and views of a database (None: the current one)."""
    found: dict[str, list[Column]] = {}
    for table, column, type, comment in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment "
        "FROM duckdb_columns() WHERE NOT internal "
        "AND database_name = coalesce(?, current_database()) "
        "ORDER BY schema_name, table_name, column_index",
        [database],
    ).fetchall():
        found.setdefault(table, []).append(Column(column, type, comment or ""))
    return {table: tuple(columns) for table, columns in found.items()}


def read_tables(connection: duckdb.DuckDBPyConnection) -> Iterator[TableSchema]:
    """Yield every table and view of the current database, by name, with its comment."""
    table_columns = read_table_columns(connection)
    of_file = "WHERE database_name = current_database() AND NOT internal"
    for schema, table, comment in connection.execute(
        f"SELECT schema_name, table_name, comment FROM duckdb_tables() {of_file} UNION ALL "
        f"SELECT schema_name, view_name, comment FROM duckdb_views() {of_file} ORDER BY ALL"
    ).fetchall():
        yield TableSchema(schema, table, table_columns.get(f"{schema}.{table}", ()), comment or "")


# -- Inheritance -----------------------------------------------------------------------------------
# A model that reads a column and selects it under the same name needs no second declaration: the
# text and the `personal` of the column are those of the table that it was read from. `_seen_at` of
# a source is `seen_at` in a model.


def tables_read_by(model: Model, table_columns: TableColumns) -> list[str]:
    """Return the tables that a model names, as `schema.table`, with braces or without."""
    sql = model.query.sql.lower().replace('"', "")
    named = set(re.findall(r"\w+\.\w+", sql))
    return [table for table in table_columns if table.lower() in named and table != model.table]


def _source_names(column: str) -> tuple[str, str]:
    """Return the names, in lower case, that a model's column may have in a source: `x` or `_x`."""
    return column.lower(), f"_{column.lower()}"


def column_descriptions(project: Project, table_columns: TableColumns) -> dict[str, dict[str, str]]:
    """Return the description of each column that has one, by table and column name.

    A column without a description in the schema file has that of the columns of the same name in
    the tables that the model reads, if these have only one.
    """
    texts: dict[str, dict[str, str]] = {
        table: {each.name: each.comment for each in columns}
        for table, columns in table_columns.items()
    }
    for source in project.sources.values():
        written = {name: text for name, text in source.column_descriptions.items() if text}
        texts[source.table] = texts.get(source.table, {}) | written
    for node in project.nodes:
        texts[node.table] = {name: text for name, text in node.column_descriptions.items() if text}
        if isinstance(node, Model):
            read = [texts.get(table, {}) for table in tables_read_by(node, table_columns)]
            for each in table_columns.get(node.table, ()):
                names = _source_names(each.name)
                inherited = {table[name] for table in read for name in names if table.get(name)}
                if each.name not in texts[node.table] and len(inherited) == 1:
                    texts[node.table][each.name] = inherited.pop()
    return texts


RECORD = "_record"
"""Column with the API's response as received."""

PERSONAL_OWN_COLUMNS: Mapping[str, frozenset[str]] = {
    "push.batches": frozenset(("file",)),
    "push.attempts": frozenset(("body", "reason")),
    "push.problems": frozenset(("message", "received", "found", "allowed", "fix")),
    "push.before_images": frozenset(("record",)),
}
"""Personal columns of the connector's own tables: typed texts, and received records."""

CONTENT_VIEW_PREFIX = "marts.content_"
_SAFE_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT")
"""Types of flags and counts. Columns of other types may contain names, birthdays or salaries."""


def personal_columns(
    project: Project | None, table_columns: TableColumns
) -> frozenset[tuple[str, str]]:
    """Return table and column of each personal column.

    A column of `landing` and `history` is personal if the catalog declares its field so. A column
    of a model is personal if

    - its entry in the schema file says `meta: {personal: true}`, or
    - the entry does not say it, and the model reads a personal column of the same name, or
    - it has no entry and is no count or flag. In `staging` a column that the model reads under the
      same name needs no entry.

    `project` are the models in the file, if it has any; `table_columns` are the file's columns.
    """
    models = [each for each in project.nodes if isinstance(each, Model)] if project else []
    made = {each.table for each in models}
    personal = {
        (table, each.name)
        for table, columns in table_columns.items()
        for each in columns
        if table not in made and _is_personal_in_source(table, each)
    }
    lowered = {(table, name.lower()) for table, name in personal}
    for model in models:
        read = tables_read_by(model, table_columns)
        for each in table_columns.get(model.table, ()):
            inherits = any(
                (table, name) in lowered for table in read for name in _source_names(each.name)
            )
            is_default = inherits or _may_be_personal(model, each, read, table_columns)
            if model.personal.get(each.name, is_default):
                personal.add((model.table, each.name))
                lowered.add((model.table, each.name.lower()))
    return frozenset(personal)


def _may_be_personal(
    model: Model, column: Column, read: Sequence[str], table_columns: TableColumns
) -> bool:
    """Return True for an undescribed column that may hold personal data.

    Columns that a shipped staging model passes on are False: they inherit it from their source.
    """
    if column.name in model.column_descriptions or column.type in _SAFE_TYPES:
        return False
    names = _source_names(column.name)
    is_passed_on = any(
        each.name.lower() in names for table in read for each in table_columns[table]
    )
    return model.is_own or model.schema != "staging" or not is_passed_on


def _is_personal_in_source(table: str, each: Column) -> bool:
    """Return True for a personal column of a loaded table, a seed or a view that no model makes."""
    schema, _, name = table.partition(".")
    column = each.name
    if schema in ("landing", "history"):
        return column == RECORD or _is_declared_personal(name, column)
    if table in PERSONAL_OWN_COLUMNS:
        return column in PERSONAL_OWN_COLUMNS[table]
    if table.startswith(CONTENT_VIEW_PREFIX):
        # A view of a content type, whose own fields may contain any data.
        return column not in CATALOG["content_items"].fields or _is_declared_personal(
            "content_items", column
        )
    # The connector's own tables, and seeds. Seeds only contain what colleagues may see.
    return schema not in ("sync", "push", "seeds")


def _is_declared_personal(table: str, column: str) -> bool:
    """Return True if the catalog declares the field of the resource `table` as personal."""
    fields = CATALOG[table].fields if table in CATALOG else {}
    return column in fields and fields[column].personal is not None


# -- Checks ----------------------------------------------------------------------------------------


def check_columns(project: Project, table_columns: TableColumns) -> None:
    """Raise `ModelError` if a schema file tests or describes a column that does not exist."""
    for path, line, what, table, column in _columns_in_schema_files(project):
        existing = {each.name for each in table_columns.get(table, ())}
        if existing and column not in existing:
            raise ModelError(
                f"{what} names the column {column}, but {table} has no such column",
                path=path,
                line=line,
                action=f"Name one of its columns: {', '.join(sorted(existing))}.",
            )


def _columns_in_schema_files(project: Project) -> Iterator[tuple[Path, int, str, str, str]]:
    """Yield path, line, purpose, table and column of each test and description."""
    for test in project.tests:
        yield test.path, test.line, f"the test {test.name}", test.table, test.column
        if test.referenced_table is not None and test.referenced_column is not None:
            yield (
                test.path,
                test.line,
                f"the test {test.name}",
                test.referenced_table,
                test.referenced_column,
            )
    for model in project.models.values():
        if model.declared is not None:
            for column in model.column_descriptions:
                yield *model.declared, "a text", model.table, column
