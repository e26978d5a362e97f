"""One typed view per content type: the statements are rows of the model `content_views`.

dbt makes the same views with a macro that runs the same statements (`macros/content_views.sql`).
"""

from __future__ import annotations

import duckdb

from connector.catalog import CATALOG
from connector.models.folder import CONTENT_VIEWS
from connector.models.project import Project
from connector.models.statement import naming_line
from connector.warehouse.file import transaction
from connector.warehouse.quoting import literal, quoted
from connector.warehouse.schema import Column, columns

_SCHEMA = "marts"
_PREFIX = "content_"
_PASSED_ON = frozenset(
    ("id", "title", "slug", "status", "published_at", "created_at", "updated_at")
)


def make_content_views(connection: duckdb.DuckDBPyConnection, project: Project) -> tuple[str, ...]:
    """Make the views anew, with comments, and return their names; none where the project asks for
    none. A view whose content type is gone goes as well.
    """
    if not project.makes_content_views:
        return ()
    model = project.models[CONTENT_VIEWS]
    with (
        naming_line(model.path, "the views of content types cannot be made"),
        transaction(connection),
    ):
        _drop_views(connection, project)
        made = connection.execute(
            f"SELECT view_name, type_name, statement FROM {model.table} ORDER BY view_name"
        ).fetchall()
        for name, type_name, statement in made:
            connection.execute(statement)
            _comment(connection, name, type_name or "", model.schema)
    return tuple(str(name) for name, _, _ in made)


def _drop_views(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    there = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE database_name = current_database() "
        "AND schema_name = ? AND starts_with(view_name, ?)",
        [_SCHEMA, _PREFIX],
    ).fetchall()
    for (name,) in there:
        if name not in project.models:
            connection.execute(f"DROP VIEW {_SCHEMA}.{quoted(name)}")


def _comment(connection: duckdb.DuckDBPyConnection, view: str, type_name: str, schema: str) -> None:
    """Comment the view and the columns of its fields with the names that people gave them."""
    table = f"{_SCHEMA}.{quoted(view)}"
    fields = connection.execute(
        f"SELECT c.column_name, c.field_name, c.help_text FROM {schema}.content_columns AS c "
        f"JOIN {schema}.content_names AS n USING (content_type_id) WHERE n.view_name = ?",
        [view],
    ).fetchall()
    about = f"Live content items of the type {type_name}, with a typed column for each field."
    statements = [f"COMMENT ON VIEW {table} IS {literal(about)}"]
    passed_on = [(each.name, each.comment, None) for each in _items_columns()]
    for column, field_name, help_text in (*passed_on, *fields):
        text = ": ".join(each for each in (field_name, help_text) if each)
        statements.append(f"COMMENT ON COLUMN {table}.{quoted(column)} IS {literal(text)}")
    connection.execute(";".join(statements))


def _items_columns() -> tuple[Column, ...]:
    """The columns of every such view that are those of the items."""
    return tuple(each for each in columns(CATALOG["content_items"]) if each.name in _PASSED_ON)
