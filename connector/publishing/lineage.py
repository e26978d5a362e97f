"""Column lineage: which columns each model's column is made of, down to the API's fields.

A column is made of the columns in the expression that gives its value; conditions of joins and
filters decide about rows and are no part of it. `count(*)` is made of no column. A column is
*plain* where it passes one column on as it is, through any number of common table expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import ModelInvalid
from connector.publishing.project import Documented, Model, Project, naming_line
from connector.publishing.seeds import make_empty_table
from connector.warehouse.duckdb_file import quoted
from connector.warehouse.schema import migrate

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope


# -- Describe --------------------------------------------------------------------------------------
# What columns a project's tables have, found by building it over an empty warehouse in memory.
#
# Types come from DuckDB itself and no data is needed, so that catalogs, lineage and checks of the
# declarations can ask before anything was pulled.


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
    return _kept_shapes(_Keyed(project.digest, project))


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
def _kept_shapes(keyed: _Keyed) -> Shapes:
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


# -- Lineage ---------------------------------------------------------------------------------------
#


Named = tuple[str, str]
"""A column: its table as `schema.table`, and its name."""

_DIALECT = "duckdb"


@dataclass(frozen=True, slots=True)
class Traced:
    """What one column is made of; `is_plain` where it is one of them, passed on as it is."""

    parents: frozenset[Named]
    is_plain: bool


class Lineage:
    """The lineage of a project, by table (`schema.table`) and column. A model is traced when it is
    asked about, since parsing takes a few hundredths of a second each.
    """

    def __init__(self, project: Project, shapes: Shapes) -> None:
        self._models = {
            model.table: project.sql(model.template) for model in project.models.values()
        }
        self._shapes = shapes
        self._known: Any = None
        self._traced: dict[str, dict[str, Traced]] = {}

    def parents(self, table: str, column: str) -> tuple[Named, ...]:
        """The columns that a column is made of directly, sorted; none for a source's column."""
        found = self._of(table).get(column)
        return tuple(sorted(found.parents)) if found else ()

    def origins(self, table: str, column: str) -> tuple[Named, ...]:
        """The columns of source tables and seeds that a column is made of in the end, sorted.

        Those of `landing` are the API's fields, under the same names.
        """
        seen: set[Named] = set()
        ends: set[Named] = set()
        waiting = list(self.parents(table, column))
        while waiting:
            named = waiting.pop()
            if named not in seen:
                seen.add(named)
                waiting += self.parents(*named)
                ends |= set() if named[0] in self._models else {named}
        return tuple(sorted(ends))

    def plain_parents(self, table: str, column: str) -> tuple[Named, ...]:
        """The columns that a column passes on as they are: one, or one for each part of a union."""
        found = self._of(table).get(column)
        return tuple(sorted(found.parents)) if found and found.is_plain else ()

    def _of(self, table: str) -> dict[str, Traced]:
        if table not in self._models:
            return {}
        if table not in self._traced:
            tracer = _Tracer(self._models[table], self._schema())
            self._traced[table] = tracer.trace(self._shapes.get(table, ()))
        return self._traced[table]

    def _schema(self) -> Any:
        """The columns of all tables, in the parser's own form."""
        if self._known is None:
            # Its import takes a while, which nobody who needs no lineage should wait for.
            from sqlglot.schema import MappingSchema  # noqa: PLC0415

            tree: dict[str, Any] = {}
            for table, columns in self._shapes.items():
                schema, _, name = table.partition(".")
                tree.setdefault(schema, {})[name] = {each.name: each.type for each in columns}
            self._known = MappingSchema(tree, dialect=_DIALECT)
        return self._known


def lineage(project: Project, shapes: Shapes | None = None) -> Lineage:
    """The lineage of every model. `shapes` are the columns of all tables where they are known;
    else the project is described first. What was traced is kept for projects of the same content.
    """
    known = shapes if shapes is not None else describe(project)
    tables = {project.node(name).table for name in project.order}
    tables |= {each.table for each in project.sources.values()}
    # A selection may have been built without all that is read elsewhere.
    shown = tuple((table, known[table]) for table in sorted(tables) if table in known)
    return _kept(_Asked(project.digest, shown, project))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What lineage depends on: the content of the project, and the columns of its tables."""

    digest: str
    shown: tuple[tuple[str, tuple[Described, ...]], ...]
    project: Project = field(compare=False)


@lru_cache(maxsize=4)
def _kept(asked: _Asked) -> Lineage:
    return Lineage(asked.project, dict(asked.shown))


class _Tracer:
    """Traces the columns of one query."""

    def __init__(self, sql: str, known: Any) -> None:
        import sqlglot  # noqa: PLC0415  # as above
        from sqlglot.optimizer.qualify import qualify  # noqa: PLC0415
        from sqlglot.optimizer.scope import build_scope  # noqa: PLC0415

        qualified = qualify(
            sqlglot.parse_one(sql, dialect=_DIALECT),
            dialect=_DIALECT,
            schema=known,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        self._root = build_scope(qualified)
        assert self._root is not None, "a query has a scope"
        self._scopes = {id(each.expression): each for each in self._root.traverse()}
        self._done: dict[tuple[int, str], Traced] = {}

    def trace(self, columns: tuple[Described, ...]) -> dict[str, Traced]:
        """Each of the query's columns with what it is made of."""
        assert self._root is not None
        return {each.name: self._column(self._root, each.name) for each in columns}

    def _column(self, scope: Scope, name: str) -> Traced:
        """What a scope's column is made of."""
        key = (id(scope), name.lower())
        if key not in self._done:
            # A recursive expression meets itself: what it adds there is known already.
            self._done[key] = Traced(frozenset(), is_plain=False)
            self._done[key] = self._fresh(scope, name.lower())
        return self._done[key]

    def _fresh(self, scope: Scope, name: str) -> Traced:
        from sqlglot import exp  # noqa: PLC0415  # as above

        query = scope.expression
        if isinstance(query, exp.SetOperation):
            return self._united(scope, name)
        if not isinstance(query, exp.Select):
            return self._made_of(query, scope, is_plain=False)
        for each in query.selects:
            if each.alias_or_name.lower() == name:
                bare = each.unalias().unnest()
                return self._made_of(bare, scope, is_plain=isinstance(bare, exp.Column))
        return Traced(frozenset(), is_plain=False)

    def _united(self, scope: Scope, name: str) -> Traced:
        """A union's column is that of each part, in the same place."""
        left, right = scope.set_operation_scopes
        names, others = _names(left.expression), _names(right.expression)
        if name not in names:
            return Traced(frozenset(), is_plain=False)
        by_name = bool(scope.expression.args.get("by_name"))
        other = name if by_name else others[names.index(name)]
        parts = (self._column(left, name), self._column(right, other))
        parents = frozenset().union(*(each.parents for each in parts))
        return Traced(parents, is_plain=all(each.is_plain for each in parts))

    def _made_of(self, expression: Any, scope: Scope, *, is_plain: bool) -> Traced:
        from sqlglot import exp  # noqa: PLC0415  # as above

        found = [self._named(each, scope) for each in expression.find_all(exp.Column)]
        parents = frozenset[Named]().union(*(each.parents for each in found))
        return Traced(parents, is_plain and all(each.is_plain for each in found))

    def _named(self, column: Any, scope: Scope) -> Traced:
        """What a column that stands in an expression is made of."""
        from sqlglot import exp  # noqa: PLC0415  # as above

        for each in self._outward(column, scope):
            source = each.sources.get(column.table)
            if isinstance(source, exp.Table):
                named = (f"{source.db}.{source.name}", column.name)
                return Traced(frozenset((named,)), is_plain=True)
            if source is not None:
                return self._column(source, column.name)
        return Traced(frozenset(), is_plain=False)

    def _outward(self, column: Any, scope: Scope) -> Iterator[Scope]:
        """The scope that a column stands in, and those around it: a subquery may look out."""
        inner = self._scopes.get(id(column.parent_select), scope)
        at: Scope | None = inner
        while at is not None:
            yield at
            at = at.parent
        yield scope


def _names(query: Any) -> list[str]:
    """The names of a query's columns, in small letters."""
    return [str(each).lower() for each in query.named_selects]


# -- Texts -----------------------------------------------------------------------------------------
# The text of every column: written once in a schema file, or inherited from what it passes on.
#
# A landed column's text stands in the API's declaration, and its comment in the file bears it. A
# column that only passes another one on, lineage says, means what that one means.


def column_texts(project: Project, shapes: Shapes) -> dict[str, dict[str, str]]:
    """The text of each column by its table, as far as there is one, for all tables known."""
    texts: dict[str, dict[str, str]] = {
        table: {each.name: each.comment for each in columns} for table, columns in shapes.items()
    }
    for source in project.sources.values():
        texts.setdefault(source.table, {}).update(_written(source.columns))
    for seed in project.seeds.values():
        texts[seed.table] = {each.name: each.description for each in seed.columns}
    traced = lineage(project, shapes)
    for name in project.order:
        if name in project.models:
            model = project.models[name]
            columns = [each.name for each in shapes.get(model.table, ())]
            texts[model.table] = _texts_of(model, columns, traced, texts)
    return texts


def _written(columns: Mapping[str, Documented]) -> dict[str, str]:
    return {each.name: each.description for each in columns.values() if each.description}


def _texts_of(
    model: Model, columns: list[str], traced: Lineage, texts: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    found = _written(model.columns)
    for name in columns:
        if name not in found:
            passed_on = traced.plain_parents(model.table, name)
            inherited = {texts.get(table, {}).get(column, "") for table, column in passed_on}
            # Parts of a union may mean different things, and then neither's text is right.
            if len(inherited) == 1:
                found[name] = inherited.pop()
    return {name: found[name] for name in columns if found.get(name)}


def undescribed(project: Project, shapes: Shapes) -> tuple[str, ...]:
    """The columns of seeds and models, as `schema.table.column`, that no text describes."""
    texts = column_texts(project, shapes)
    return tuple(
        f"{table}.{column.name}"
        for name in project.order
        for table in (project.node(name).table,)
        for column in shapes.get(table, ())
        if not texts[table].get(column.name)
    )


def check_columns(project: Project, shapes: Shapes) -> None:
    """Raise `ModelInvalid` for a test or a text of a column that is not there."""
    for path, line, what, table, column in _asked(project):
        there = {each.name for each in shapes.get(table, ())}
        if there and column not in there:
            raise ModelInvalid(
                f"{what} is of the column {column}, and {table} has none of that name",
                path=path,
                line=line,
                action=f"Name one of its columns: {', '.join(sorted(there))}.",
            )


def _asked(project: Project) -> Iterator[tuple[Path, int, str, str, str]]:
    """Every column that a schema file names: where, what for, its table, its name."""
    for test in project.tests:
        place = test.place
        yield place.path, place.line, f"the test {test.name}", test.table, test.column
        if test.to is not None and test.field is not None:
            yield place.path, place.line, f"the test {test.name}", test.to, test.field
    for model in project.models.values():
        if model.place is not None:
            for column in model.columns:
                yield model.place.path, model.place.line, "a text", model.table, column
