"""Comments on what was built, from the texts of the schema files, written in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import duckdb

from connector.models.describe import Shapes
from connector.models.project import Project
from connector.warehouse.quoting import literal, quoted

Texts = Mapping[str, Mapping[str, str]]
"""The text of each column, by its table."""


def write_comments(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    names: Iterable[str],
    texts: Texts,
    shapes: Shapes,
) -> int:
    """Comment the tables and views and their columns, and return how many comments there are."""
    statements = [each for name in names for each in _statements(project, name, texts, shapes)]
    if statements:
        connection.execute(";\n".join(statements))
    return len(statements)


def _statements(project: Project, name: str, texts: Texts, shapes: Shapes) -> Iterator[str]:
    node = project.node(name)
    is_seed = name in project.seeds
    about = project.seeds[name].sentence if is_seed else project.models[name].about
    is_view = not is_seed and project.models[name].materialized == "view"
    yield f"COMMENT ON {'VIEW' if is_view else 'TABLE'} {node.table} IS {literal(about)}"
    for column in shapes[node.table]:
        text = texts.get(node.table, {}).get(column.name)
        if text:
            yield f"COMMENT ON COLUMN {node.table}.{quoted(column.name)} IS {literal(text)}"
