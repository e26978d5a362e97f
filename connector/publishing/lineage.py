"""Column lineage of the models, for Dagster, `models list` and the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.publishing.columns import TableColumns
from connector.publishing.project import Model, Project

ColumnKey = tuple[str, str]
"""Column: its table as `schema.table`, and its name."""


class Lineage:
    """Source columns of each column of a project's models, parsed from their SQL.

    Columns that only filter, join or group rows do not count. `table_columns` has all tables.
    """

    def __init__(self, project: Project, table_columns: TableColumns) -> None:
        self._parents: dict[ColumnKey, tuple[ColumnKey, ...]] = {}
        schema = _to_sqlglot_schema(table_columns)
        for node in project.nodes:
            if isinstance(node, Model) and node.table in table_columns:
                for name, parents in _trace_parents(node.query.sql, schema).items():
                    self._parents[node.table, name] = parents

    def parents(self, table: str, column: str) -> tuple[ColumnKey, ...]:
        """Return the columns that a column is computed from directly, sorted."""
        return self._parents.get((table, column), ())

    def origins(self, table: str, column: str) -> tuple[ColumnKey, ...]:
        """Return the columns of source tables and seeds that a column is computed from, sorted."""
        seen: set[ColumnKey] = set()
        waiting = list(self.parents(table, column))
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen.add(each)
                waiting += self.parents(*each)
        return tuple(sorted(each for each in seen if each not in self._parents))


def _to_sqlglot_schema(table_columns: TableColumns) -> Any:
    """Return the columns of all tables in sqlglot's form."""
    # Importing sqlglot takes time, and only catalogs need lineage.
    from sqlglot.schema import MappingSchema  # noqa: PLC0415

    tree: dict[str, Any] = {}
    for table, columns in table_columns.items():
        schema, _, name = table.partition(".")
        tree.setdefault(schema, {})[name] = {each.name: each.type for each in columns}
    return MappingSchema(tree, dialect="duckdb")


def _trace_parents(sql: str, schema: Any) -> Mapping[str, tuple[ColumnKey, ...]]:
    """Return the parents of each column of a query; none if sqlglot cannot read the query."""
    import sqlglot  # noqa: PLC0415
    from sqlglot.lineage import lineage  # noqa: PLC0415

    try:
        traced = lineage(None, sql, schema, dialect="duckdb", trim_selects=False)
    except (sqlglot.errors.SqlglotError, ValueError):
        return {}
    exp = sqlglot.exp
    found: dict[str, tuple[ColumnKey, ...]] = {}
    for name, node in traced.items():
        parents = set[ColumnKey]()
        for leaf in node.walk():
            table = leaf.expression
            if isinstance(table, exp.Table) and table.db:
                parents.add((f"{table.db}.{table.name}", exp.to_column(leaf.name).name))
        found[name] = tuple(sorted(parents))
    return found
