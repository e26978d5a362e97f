"""Builds a project in one DuckDB file, and runs its tests and audits.

Each model is built in a separate transaction, so an error leaves the earlier table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from connector.catalog import CATALOG
from connector.publishing.columns import (
    TableColumns,
    check_columns,
    column_descriptions,
    read_table_columns,
)
from connector.publishing.project import (
    Audit,
    BuildObserver,
    BuildResult,
    BuiltModel,
    Check,
    CheckResult,
    GenericTest,
    Model,
    Project,
    Seed,
    convert_sql_errors,
)
from connector.publishing.project_loader import CONTENT_VIEWS
from connector.publishing.seeds import create_seed_table
from connector.warehouse.duckdb_file import literal, open_file, quoted, transaction
from connector.warehouse.published_file import open_read_only
from connector.warehouse.schema import landing_columns as landed_columns

BUILD_MEMORY_MAX = "1GB"
"""Memory limit of DuckDB while models are built; larger data spills to the disk."""


def build(
    file: Path,
    project: Project,
    *,
    select: Sequence[str] = (),
    finish: Callable[[duckdb.DuckDBPyConnection, BuildResult], None] | None = None,
    watch: BuildObserver | None = None,
) -> BuildResult:
    """Build seeds, views and tables in `file`, comment them, and check them.

    Args:
        file: Draft in which to build.
        project: Project to build.
        select: Names of models to build, with all that they read. Default: all.
        finish: Called before the file is closed.
        watch: Called with the progress.

    Raises:
        ModelError: A model cannot be built. The error names file and line.
        WarehouseError: A file cannot be used.
    """
    names = project.selected(select)
    with (
        open_file(file, memory=BUILD_MEMORY_MAX) as connection,
        _without_slow_compression(connection),
    ):
        if watch is not None:
            watch.on_plan(len(names), len(project.checks_of(names)))
        work = _ModelBuilder(connection, project, watch=watch)
        built = tuple(work.build(name) for name in names)
        if CONTENT_VIEWS in names and project.makes_content_views:
            _replace_content_views(connection, project)
        table_columns = read_table_columns(connection)
        check_columns(project, table_columns)
        _write_comments(
            connection, project, names, table_columns, column_descriptions(project, table_columns)
        )
        checks = project.checks_of(names)
        if select:
            absent = {each.table for each in project.nodes if each.name not in names}
            checks = tuple(each for each in checks if not each.reads & absent)
        checked = tuple(_run_checks(connection, project, checks, table_columns, watch=watch))
        done = BuildResult(built, checked)
        if finish is not None:
            finish(connection, done)
        connection.execute("CHECKPOINT")
    return done


def check(
    file: Path, project: Project, *, select: Sequence[str] = (), watch: BuildObserver | None = None
) -> tuple[CheckResult, ...]:
    """Run the tests and audits of the selected models in a built file, without changing it.

    Raises a `ModelError` for a check that cannot be run, and a `WarehouseError`.
    """
    checks = project.checks_of(project.selected(select))
    if watch is not None:
        watch.on_plan(0, len(checks))
    with open_read_only(file) as connection:
        table_columns = read_table_columns(connection)
        check_columns(project, table_columns)
        return tuple(_run_checks(connection, project, checks, table_columns, watch=watch))


@contextmanager
def _without_slow_compression(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Turn off FSST compression, which takes half of the writing time and saves 3% of the file."""
    connection.execute("SET GLOBAL disabled_compression_methods = 'fsst'")
    try:
        yield
    finally:
        connection.execute("RESET GLOBAL disabled_compression_methods")


class _ModelBuilder:
    """Builds models one by one."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        project: Project,
        *,
        watch: BuildObserver | None,
    ) -> None:
        self._connection, self._project = connection, project
        self._watch = watch
        found = connection.execute(
            "SELECT table_schema || '.' || table_name, table_type FROM information_schema.tables "
            "WHERE table_catalog = current_database()"
        ).fetchall()
        self._kinds = {name: "view" if kind == "VIEW" else "table" for name, kind in found}

    def build(self, name: str) -> BuiltModel:
        """Build one seed or model in a transaction. Raises `ModelFailed`."""
        if self._watch is not None:
            self._watch.on_model_start(name)
        began = time.monotonic()
        node = self._project.node(name)
        with transaction(self._connection):
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
            with convert_sql_errors(node.path, f"{name} cannot be built"):
                rows = self._create(node)
        seconds = time.monotonic() - began
        done = BuiltModel(name, node.schema, node.kind, rows, seconds)
        if self._watch is not None:
            self._watch.on_model_end(done)
        return done

    def _create(self, node: Model | Seed) -> int | None:
        """Create the table or view; return the number of rows, or None for a view."""
        if isinstance(node, Seed):
            return create_seed_table(self._connection, node)
        kind = "view" if node.kind == "view" else "table"
        existing = self._kinds.get(node.table, kind)
        if existing != kind:
            # A view does not replace a table, and a table does not replace a view.
            self._connection.execute(f"DROP {existing} {node.table}")
        self._connection.execute(f"CREATE OR REPLACE {kind} {node.table} AS {node.query.sql}")
        if kind == "view":
            return None
        found = self._connection.execute(f"SELECT count(*) FROM {node.table}").fetchone()
        assert found is not None
        return int(found[0])


def _write_comments(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    names: Iterable[str],
    table_columns: TableColumns,
    texts: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the comments of the tables, views and columns in one statement."""
    statements = []
    for node in (project.node(name) for name in names):
        kind = "VIEW" if node.kind == "view" else "TABLE"
        statements.append(f"COMMENT ON {kind} {node.table} IS {literal(node.about)}")
        statements += [
            f"COMMENT ON COLUMN {node.table}.{quoted(column.name)} IS {literal(text)}"
            for column in table_columns[node.table]
            if (text := texts[node.table].get(column.name))
        ]
    with transaction(connection):
        connection.execute(";\n".join(statements))


# -- Checks ----------------------------------------------------------------------------------------
# Each check is a query that finds wrong rows. Examples are values of `id` and `..._id` columns, so
# results contain no personal data.

EXAMPLES_MAX = 5
"""Maximum number of rows of a failed check that are named."""


def _run_checks(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    checks: Iterable[Check],
    table_columns: TableColumns,
    *,
    watch: BuildObserver | None,
) -> Iterator[CheckResult]:
    """Run the checks, and yield each result. Raises `ModelFailed` if a query fails."""
    for check in checks:
        with convert_sql_errors(check.path, f"{check.name} cannot be run"):
            sql = (
                check.query.sql
                if isinstance(check, Audit)
                else _wrong_rows_query(check, table_columns)
            )
            failing, examples = _find_wrong_rows(connection, sql)
        done = CheckResult(
            name=check.name,
            model=check.about,
            column=check.column,
            kind=check.kind,
            severity=check.severity,
            failing=failing,
            examples=examples,
            about=check.sentence,
        )
        if watch is not None:
            watch.on_check_end(done)
        yield done


def _wrong_rows_query(test: GenericTest, table_columns: TableColumns) -> str:
    """Return a query for the rows that violate the test, with the id columns of the table."""
    if test.kind == "unique":
        column = quoted(test.column)
        return (
            f"SELECT {column} FROM {test.table} WHERE {column} IS NOT NULL "
            f"GROUP BY 1 HAVING count(*) > 1"
        )
    column = f"checked.{quoted(test.column)}"
    if test.kind == "not_null":
        wrong = f"{column} IS NULL"
    elif test.kind == "accepted_values":
        values = [literal(v) if test.quotes_values else v for v in test.values]
        wrong = f"{column} NOT IN ({', '.join(values)})"
    else:
        wrong = (
            f"{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {test.referenced_table} AS other "
            f"WHERE other.{quoted(test.referenced_column or 'id')} = {column})"
        )
    keys = [
        quoted(each.name) for each in table_columns.get(test.table, ()) if _is_id_column(each.name)
    ]
    return f"SELECT {', '.join(keys) or '1'} FROM {test.table} AS checked WHERE {wrong}"


def _find_wrong_rows(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows that the query finds, and the smallest ids of a few."""
    # The text of an audit begins on its first line, so errors name the line in the file.
    cursor = connection.execute(
        f"SELECT count(*) OVER () AS failing, found.* FROM ({sql}\n) AS found "
        f"ORDER BY ALL LIMIT {EXAMPLES_MAX}"
    )
    names = [str(each[0]) for each in cursor.description or ()]
    rows = cursor.fetchall()
    place = next((n for n, name in enumerate(names) if n and _is_id_column(name)), None)
    shown = [str(row[place]) for row in rows if place is not None and row[place] is not None]
    return int(rows[0][0]) if rows else 0, tuple(dict.fromkeys(shown))


def _is_id_column(name: str) -> bool:
    """Return True for `id` and for names that end in `_id`."""
    return name == "id" or name.endswith("_id")


# -- Content ---------------------------------------------------------------------------------------
# One typed view per content type: the statements are rows of the model `content_views`.
#
# dbt makes the same views with a macro that runs the same statements (`macros/content_views.sql`).

_PASSED_ON = frozenset(
    ("id", "title", "slug", "status", "published_at", "created_at", "updated_at")
)
"""Columns of the items that every such view has."""


def _replace_content_views(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    """Replace the views of content types, and drop those of deleted content types."""
    model = project.models[CONTENT_VIEWS]
    with (
        convert_sql_errors(model.path, "the views of content types cannot be made"),
        transaction(connection),
    ):
        connection.execute("CREATE SCHEMA IF NOT EXISTS marts")
        existing = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE database_name = current_database() "
            "AND schema_name = 'marts' AND starts_with(view_name, 'content_')"
        ).fetchall()
        for (name,) in existing:
            if name not in project.models:
                connection.execute(f"DROP VIEW marts.{quoted(name)}")
        made = connection.execute(
            f"SELECT view_name, type_name, statement FROM {model.table} ORDER BY view_name"
        ).fetchall()
        fields: dict[str, list[tuple[str, ...]]] = {}
        for name, *field in connection.execute(
            "SELECT n.view_name, c.column_name, c.field_name, c.help_text "
            f"FROM {model.schema}.content_columns AS c "
            f"JOIN {model.schema}.content_names AS n USING (content_type_id)"
        ).fetchall():
            fields.setdefault(name, []).append(tuple(field))
        for name, type_name, statement in made:
            connection.execute(statement)
            connection.execute(_content_view_comments(name, type_name or "", fields.get(name, [])))


def _content_view_comments(
    view: str, type_name: str, fields: Iterable[tuple[str | None, ...]]
) -> str:
    """Return the statements that comment a view and its columns.

    `fields` has a row for each column: its name, its name on the platform, and its help text.
    """
    table = f"marts.{quoted(view)}"
    about = f"Live content items of the type {type_name}, with a typed column for each field."
    statements = [f"COMMENT ON VIEW {table} IS {literal(about)}"]
    items = landed_columns(CATALOG["content_items"])
    passed_on = [(each.name, each.comment) for each in items if each.name in _PASSED_ON]
    for column, *texts in (*passed_on, *fields):
        text = ": ".join(each for each in texts if each)
        statements.append(f"COMMENT ON COLUMN {table}.{quoted(column or '')} IS {literal(text)}")
    return ";".join(statements)
