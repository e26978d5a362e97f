"""Build a project in a DuckDB file, and run its checks.

Results of checks contain ids only, because logs, reports and Dagster show them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import duckdb

from connector.errors import ModelError
from connector.models.project import Check, Kind, Node, Project, Severity, sql_errors
from connector.models.seeds import create_seed_table
from connector.warehouse.file import literal, quoted, transaction
from connector.warehouse.publish import create_published_tables
from connector.warehouse.schema import Column

MEMORY_MAX = "1GB"
"""Memory limit of DuckDB while models are built; larger data spills to the disk."""

# -- Results ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """Model or seed that was built. `rows` is None for a view."""

    name: str
    schema: str
    kind: Kind
    rows: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Number of wrong rows that a check found, and ids of a few of them."""

    check: Check
    failing: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Models and checks of a build. A failed check of severity error blocks the publication."""

    models: tuple[BuiltModel, ...]
    checks: tuple[CheckResult, ...]

    def failed(self, *severities: Severity) -> tuple[CheckResult, ...]:
        """Return the failed checks of these severities."""
        return tuple(c for c in self.checks if c.failing and c.check.severity in severities)


Watch = Callable[[BuiltModel | CheckResult, int], None]
"""Called after each model and check, with the number of all models and checks."""

# -- Columns ---------------------------------------------------------------------------------------

TableColumns = Mapping[str, tuple[Column, ...]]
"""Columns of each table, by `schema.table`, in order."""


@lru_cache(maxsize=4)
def describe(project: Project) -> TableColumns:
    """Return the columns of all tables by a build without data, which raises `ModelError`."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        create_published_tables(connection)
        for node in project.nodes.values():
            # Not as views, because DuckDB would expand a view again in each model that reads it.
            _build_node(connection, replace(node, kind="table") if node.kind == "view" else node)
        return read_columns(connection, project)


def read_columns(connection: duckdb.DuckDBPyConnection, project: Project) -> TableColumns:
    """Return the columns of all tables and views of the current database with descriptions.

    A column that no schema file describes has the description of the columns of the same name in
    the tables that the model reads, if they have only one. Raises `ModelError` if a schema file
    names a column that does not exist.
    """
    found: dict[str, list[Column]] = {}
    for table, column, type, comment in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment "
        "FROM duckdb_columns() WHERE NOT internal AND database_name = current_database() "
        "ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        found.setdefault(table, []).append(Column(column, type, comment or ""))
    texts = {table: {c.name: c.comment for c in columns} for table, columns in found.items()}
    for node in project.nodes.values():
        names = [each.name for each in found.get(node.table, ())]
        for column in node.entry.columns if names else ():
            if column.name not in names:
                problem = f"{node.table} has no column {column.name}, only {', '.join(names)}"
                raise ModelError(problem, path=node.entry.path, line=column.line)
        texts[node.table] = written = node.entry.texts
        read = [texts[table] for table in tables_read_by(node, found)]
        for name in {*names} - written.keys():
            inherited = {t[each] for t in read for each in source_names(name) if t.get(each)}
            if len(inherited) == 1:
                written[name] = inherited.pop()
    return {
        table: tuple(Column(c.name, c.type, texts[table].get(c.name, "")) for c in columns)
        for table, columns in found.items()
    }


def tables_read_by(node: Node, tables: Iterable[str]) -> list[str]:
    """Return the tables that a model names, with ref(), with source() or in plain SQL."""
    named = set(re.findall(r"\w+\.\w+", node.sql.lower().replace('"', "")))
    return [table for table in tables if table.lower() in named and table != node.table]


def source_names(column: str) -> tuple[str, str]:
    """Return the names that a model's column may have in a table that the model reads."""
    return column.lower(), f"_{column.lower()}"


# -- Build -----------------------------------------------------------------------------------------


def build(
    connection: duckdb.DuckDBPyConnection, project: Project, *, watch: Watch | None = None
) -> BuildResult:
    """Build all models and seeds over the loaded tables, comment and check them.

    Raises `ModelError` with file and line if a seed is invalid, or a query cannot be run.
    """
    steps, report = len(project.nodes) + len(project.checks), watch or (lambda _, __: None)
    built, checked = [], []
    # FSST compression takes half of the time of writing, and saves 3 % of the file.
    connection.execute("SET GLOBAL disabled_compression_methods = 'fsst'")
    try:
        for node in project.nodes.values():
            built.append(_build_node(connection, node))
            report(built[-1], steps)
        if views := project.nodes.get("content_views"):
            # dbt runs the same statements with a macro (`macros/content_views.sql`).
            statements = f"SELECT statement FROM {views.table} ORDER BY view_name"
            for (statement,) in connection.execute(statements).fetchall():
                with sql_errors(views.path, "the view of a content type cannot be created"):
                    connection.execute(statement)
        _write_comments(connection, project)
    finally:
        connection.execute("RESET GLOBAL disabled_compression_methods")
    for check in project.checks:
        checked.append(run_check(connection, check))
        report(checked[-1], steps)
    return BuildResult(tuple(built), tuple(checked))


def _build_node(connection: duckdb.DuckDBPyConnection, node: Node) -> BuiltModel:
    started, rows = time.monotonic(), None
    with sql_errors(node.path, f"{node.name} cannot be built"):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
        if node.kind == "seed":
            create_seed_table(connection, node.table, node.path, node.entry)
        else:
            connection.execute(f"CREATE OR REPLACE {node.kind} {node.table} AS {node.sql}")
        if node.kind != "view":
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {node.table}").fetchall()
    return BuiltModel(node.name, node.schema, node.kind, rows, time.monotonic() - started)


def _write_comments(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    """Write the descriptions as comments, in one statement: there are a thousand."""
    columns, statements = read_columns(connection, project), []
    for node in project.nodes.values():
        kind = "VIEW" if node.kind == "view" else "TABLE"
        statements.append(f"COMMENT ON {kind} {node.table} IS {literal(node.entry.description)}")
        statements += [
            f"COMMENT ON COLUMN {node.table}.{quoted(each.name)} IS {literal(each.comment)}"
            for each in columns[node.table]
            if each.comment
        ]
    with transaction(connection):
        connection.execute(";\n".join(statements))


# -- Checks ----------------------------------------------------------------------------------------


def run_check(connection: duckdb.DuckDBPyConnection, check: Check) -> CheckResult:
    """Run one check in a built file. Raises `ModelError` if its query cannot be run."""
    # The text of an audit begins on the first line, so errors name the line of the file.
    found = f"FROM ({check.sql}\n)"
    with sql_errors(check.path, f"{check.name} cannot be run", check.line):
        ((failing,),) = connection.execute(f"SELECT count(*) {found}").fetchall()
        if not failing:
            return CheckResult(check, 0)
        rows = connection.execute(f"SELECT * {found} ORDER BY ALL LIMIT 5")
        names = [str(each[0]) for each in rows.description or ()]
        places = [n for n, name in enumerate(names) if name == "id" or name.endswith("_id")]
        ids = [row[places[0]] for row in rows.fetchall()] if places else []
    examples = dict.fromkeys(str(each) for each in ids if each is not None)
    return CheckResult(check, failing, tuple(examples))
