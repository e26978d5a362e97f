"""Runs generic tests and audits: each is a query that finds the rows that are wrong.

Examples of what was found are values of `id` and `..._id` columns alone: no result holds anything
personal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb

from connector.models.declared import Audit, GenericTest
from connector.models.describe import Shapes
from connector.models.project import Project
from connector.models.result import Building, Checked
from connector.models.statement import naming_line
from connector.warehouse.quoting import literal, quoted

EXAMPLES_MAX = 5
"""Rows of each failed check that are named."""

Check = GenericTest | Audit


def run_checks(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    checks: Iterable[Check],
    shapes: Shapes,
    watch: Building | None = None,
) -> Iterator[Checked]:
    """Run the checks, one after another. Raises `ModelFailed` for one that cannot be run."""
    for check in checks:
        path = check.path if isinstance(check, Audit) else check.place.path
        with naming_line(path, f"{check.name} cannot be run"):
            failing, examples = _found(connection, _query(project, check, shapes))
        done = _checked(check, failing, examples)
        if watch is not None:
            watch.checked(done)
        yield done


def checks_of(project: Project, names: Iterable[str]) -> tuple[Check, ...]:
    """The tests and audits of what the seeds and models are: those that read one of them, and
    those of the source tables that they read and of nothing else.
    """
    wanted = frozenset(names)
    models = (project.models[name] for name in wanted if name in project.models)
    sources = frozenset(table for model in models for table in project.sources_of(model))
    return tuple(
        check
        for check in project.checks
        if (read := project.reads(check)) & wanted
        or (not read and project.sources_read(check) & sources)
    )


def checks_about(project: Project, name: str) -> tuple[Check, ...]:
    """The tests and audits of one seed, model or source table (`schema.table`): each check is of
    one of them, an audit of the first that it refers to.
    """
    return tuple(check for check in project.checks if check.about == name)


def _query(project: Project, check: Check, shapes: Shapes) -> str:
    """The query for the wrong rows; an audit's text begins on its first line."""
    if isinstance(check, Audit):
        return project.sql(check.template)
    column = quoted(check.column)
    if check.kind == "unique":
        return (
            f"SELECT {column} FROM {check.table} WHERE {column} IS NOT NULL "
            f"GROUP BY 1 HAVING count(*) > 1"
        )
    keys = [each.name for each in shapes.get(check.table, ()) if _is_id(each.name)]
    shown = ", ".join(quoted(key) for key in keys) or "1"
    return f"SELECT {shown} FROM {check.table} AS checked WHERE {_wrong(check)}"


def _wrong(check: GenericTest) -> str:
    """The condition of a wrong row."""
    column = f"checked.{quoted(check.column)}"
    if check.kind == "not_null":
        return f"{column} IS NULL"
    if check.kind == "accepted_values":
        values = [literal(v) if check.quotes_values else v for v in check.values]
        return f"{column} NOT IN ({', '.join(values)})"
    return (
        f"{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {check.to} AS other "
        f"WHERE other.{quoted(check.field or 'id')} = {column})"
    )


def _found(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, tuple[str, ...]]:
    """How many rows the query finds, and the ids of a few, the smallest first."""
    cursor = connection.execute(
        f"SELECT count(*) OVER () AS failing, found.* FROM ({sql}\n) AS found "
        f"ORDER BY ALL LIMIT {EXAMPLES_MAX}"
    )
    names = [str(each[0]) for each in cursor.description or ()]
    rows = cursor.fetchall()
    if not rows:
        return 0, ()
    place = next((n for n, name in enumerate(names) if n and _is_id(name)), None)
    shown = () if place is None else (str(row[place]) for row in rows if row[place] is not None)
    return int(rows[0][0]), tuple(dict.fromkeys(shown))


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")


def _checked(check: Check, failing: int, examples: tuple[str, ...]) -> Checked:
    return Checked(
        name=check.name,
        model=check.about,
        column=None if isinstance(check, Audit) else check.column,
        kind="audit" if isinstance(check, Audit) else check.kind,
        severity=check.severity,
        failing=failing,
        examples=examples,
        about=check.sentence,
    )
