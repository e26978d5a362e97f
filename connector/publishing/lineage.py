"""Column lineage: what each model's column is made of, down to the API.

A column is made of the columns in the expression that gives its value; conditions of joins and
filters decide about rows and are no part of it. `count(*)` is made of no column. A column is
*plain* where it passes one column on as it is, through any number of common table expressions.

*Instead of* `sqlglot.lineage`, which finds the same and takes seven times as long over the shipped
models, since it begins anew for each column, and which does not know a union by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import ModelInvalid
from connector.publishing.project import Described, Model, Project, naming_line
from connector.warehouse.duckdb_file import quoted
from connector.warehouse.schema import complete_tables

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope

# -- Shapes ----------------------------------------------------------------------------------------
# Types come from DuckDB itself, by building the project over an empty warehouse in memory, so that
# catalogs, lineage and checks of the declarations can ask before anything was pulled.

Shapes = Mapping[str, tuple[Described, ...]]
"""The columns of each table, by `schema.table`, in their order."""

_SHAPES: dict[str, Shapes] = {}
"""What was described, by the digest of the project."""


def describe(project: Project) -> Shapes:
    """The columns of everything in the project, and of the sources below it.

    Raises a `ModelError` where a model cannot be built, even from nothing.
    """
    if project.digest not in _SHAPES:
        with empty_warehouse() as connection:
            for node in project.nodes:
                _make_empty(connection, project, node.name)
            _SHAPES[project.digest] = read_shapes(connection)
    return _SHAPES[project.digest]


@contextmanager
def empty_warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse in memory with all tables of this version and nothing in them."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        complete_tables(connection, "memory")
        yield connection


def _make_empty(connection: duckdb.DuckDBPyConnection, project: Project, name: str) -> None:
    """Make the seed or model as a table without rows.

    A view would be opened up again by each model that reads it.
    """
    node = project.node(name)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
    if isinstance(node, Model):
        with naming_line(node.path, f"{name} cannot be built"):
            sql = project.sql(node.template)
            connection.execute(f"CREATE TABLE {node.table} AS {sql}\nWITH NO DATA")
    else:
        defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in node.columns)
        connection.execute(f"CREATE TABLE {node.table} ({defined})")


def read_shapes(connection: duckdb.DuckDBPyConnection, database: str | None = None) -> Shapes:
    """The columns of all tables and views of a database (None: the one in use)."""
    found: dict[str, list[Described]] = {}
    for table, column, type, comment in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment "
        "FROM duckdb_columns() WHERE NOT internal "
        "AND database_name = coalesce(?, current_database()) "
        "ORDER BY schema_name, table_name, column_index",
        [database],
    ).fetchall():
        found.setdefault(table, []).append(Described(column, type, comment or ""))
    return {table: tuple(columns) for table, columns in found.items()}


# -- Lineage ---------------------------------------------------------------------------------------

Named = tuple[str, str]
"""A column: its table as `schema.table`, and its name."""

_DIALECT = "duckdb"


@dataclass(frozen=True, slots=True)
class Traced:
    """Columns that one is made of; `is_plain` where it passes one on as it is.

    `is_whole` is False if something in the expression is not known to be a column of a table.
    """

    parents: frozenset[Named] = frozenset()
    is_plain: bool = False
    is_whole: bool = False


class Lineage:
    """Lineage of a project, by table (`schema.table`) and column.

    A model is traced when it is asked about: parsing takes a few hundredths of a second each.
    """

    def __init__(self, project: Project, shapes: Shapes) -> None:
        models = project.models.values()
        self._models = {model.table: project.sql(model.template) for model in models}
        self._shapes = shapes
        self._traced: dict[str, dict[str, Traced]] = {}

    def parents(self, table: str, column: str) -> tuple[Named, ...]:
        """The columns that one is made of directly, sorted; a source's has none."""
        return tuple(sorted(self._of(table, column).parents))

    def plain_parents(self, table: str, column: str) -> tuple[Named, ...]:
        """The columns that one passes on as they are: one for each part of a union."""
        return self.parents(table, column) if self._of(table, column).is_plain else ()

    def origins(
        self, table: str, column: str, *, without: frozenset[str] = frozenset()
    ) -> tuple[Named, ...]:
        """The columns of sources and seeds that one is made of in the end, sorted.

        Those of `landing` are the API's fields, under the same names. What columns named in
        `without` are made of is left out.
        """
        seen: set[Named] = set()
        waiting = [(table, column)] if table in self._models else []
        while waiting:
            named = waiting.pop()
            if named not in seen:
                seen.add(named)
                waiting += () if named[1] in without else self.parents(*named)
        return tuple(sorted(each for each in seen if each[0] not in self._models))

    def is_known(self, table: str, column: str) -> bool:
        """Return True if everything that the column is made of was found."""
        if table not in self._models:
            return any(each.name == column for each in self._shapes.get(table, ()))
        traced = self._of(table, column)
        return traced.is_whole and all(self.is_known(*each) for each in traced.parents)

    def _of(self, table: str, column: str) -> Traced:
        if table not in self._models:
            return Traced()
        if table not in self._traced:
            self._traced[table] = self._trace(table)
        return self._traced[table].get(column, Traced())

    def _trace(self, table: str) -> dict[str, Traced]:
        """Trace the columns of a model, unless they were traced before."""
        sql = self._models[table]
        text = sql.lower().replace('"', "")
        read = tuple(each for each in self._shapes.items() if each[0].lower() in text)
        names = tuple(each.name for each in self._shapes.get(table, ()))
        key = (sql, names, *read)
        if key not in _TRACED:
            _TRACED[key] = _trace(sql, self._schema, names)
        return _TRACED[key]

    @cached_property
    def _schema(self) -> Any:
        """The columns of all tables, in the parser's own form."""
        # Its import takes a while, which nobody who needs no lineage should wait for.
        from sqlglot.schema import MappingSchema  # noqa: PLC0415

        tree: dict[str, Any] = {}
        for table, columns in self._shapes.items():
            schema, _, name = table.partition(".")
            tree.setdefault(schema, {})[name] = {each.name: each.type for each in columns}
        return MappingSchema(tree, dialect=_DIALECT)


_TRACED: dict[tuple[Any, ...], dict[str, Traced]] = {}
"""What was traced, by the query and the columns of the tables that it names."""


def lineage(project: Project, shapes: Shapes) -> Lineage:
    """The lineage of every model; `shapes` are the columns of all tables.

    What was traced of a model is kept for builds of the same model and tables, in this process.
    """
    tables = {each.table for each in (*project.nodes, *project.sources.values())}
    # A selection may have been built without all that is read elsewhere.
    known = {table: shapes[table] for table in sorted(tables) if table in shapes}
    return Lineage(project, known)


def _trace(sql: str, known: Any, names: Iterable[str]) -> dict[str, Traced]:
    """What each column of the query is made of; nothing where the parser cannot read the query."""
    from sqlglot.errors import SqlglotError  # noqa: PLC0415  # as above

    try:
        tracer = _Tracer(sql, known)
        return {name: tracer.trace(name) for name in names}
    except SqlglotError:
        return {}


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
        root = build_scope(qualified)
        assert root is not None, "a query has a scope"
        self._exp, self._root = sqlglot.exp, root
        self._scopes = {id(each.expression): each for each in root.traverse()}
        self._done: dict[tuple[int, str], Traced] = {}

    def trace(self, name: str) -> Traced:
        """What a column of the query is made of."""
        return self._column(self._root, name.lower())

    def _column(self, scope: Scope, name: str) -> Traced:
        """What a scope's column is made of."""
        key = (id(scope), name)
        if key not in self._done:
            # A recursive expression meets itself: what it adds there is known already.
            self._done[key] = Traced()
            self._done[key] = self._fresh(scope, name)
        return self._done[key]

    def _fresh(self, scope: Scope, name: str) -> Traced:
        query = scope.expression
        if isinstance(query, self._exp.SetOperation):
            return self._united(scope, name)
        if not isinstance(query, self._exp.Select):
            return self._made_of(query, scope, is_plain=False)
        for each in query.selects:
            if each.alias_or_name.lower() == name:
                bare = each.unalias().unnest()
                return self._made_of(bare, scope, is_plain=isinstance(bare, self._exp.Column))
        return Traced()

    def _united(self, scope: Scope, name: str) -> Traced:
        """A union's column is that of each part, in the same place or of the same name."""
        left, right = scope.set_operation_scopes
        names, others = _names(left.expression), _names(right.expression)
        if name not in names:
            return Traced()
        is_by_name = bool(scope.expression.args.get("by_name"))
        other = name if is_by_name else others[names.index(name)]
        return _joined([self._column(left, name), self._column(right, other)])

    def _made_of(self, expression: Any, scope: Scope, *, is_plain: bool) -> Traced:
        found = [self._named(each, scope) for each in expression.find_all(self._exp.Column)]
        if not all(map(self._is_known, expression.walk())):
            found.append(Traced())
        return _joined(found, is_plain=is_plain)

    def _is_known(self, node: Any) -> bool:
        """Return True if the node reads nothing, or reads columns by their names.

        A row as a value, a pattern of names and a place number may be any column.
        """
        exp = self._exp
        if isinstance(node, exp.Star):
            return isinstance(node.parent, exp.Count)
        if isinstance(node, exp.TableColumn | exp.Columns | exp.PositionalColumn):
            return False
        plain = (exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.DataType, exp.Var)
        is_leaf = next(node.iter_expressions(), None) is None
        return not is_leaf or isinstance(node, (*plain, exp.Func, exp.WindowSpec))

    def _named(self, column: Any, scope: Scope) -> Traced:
        """What a column that stands in an expression is made of."""
        for each in self._outward(column, scope):
            source = each.sources.get(column.table)
            if isinstance(source, self._exp.Table):
                # A function in the place of a table is of no schema, and made of no column.
                named = {(f"{source.db}.{source.name}", column.name)} if source.db else ()
                return Traced(frozenset(named), bool(named), bool(named))
            if source is not None:
                return self._column(source, column.name.lower())
        return Traced()

    def _outward(self, column: Any, scope: Scope) -> Iterator[Scope]:
        """The scope that a column stands in, and those around it: a subquery may look out."""
        at: Scope | None = self._scopes.get(id(column.parent_select), scope)
        while at is not None:
            yield at
            at = at.parent
        yield scope


def _names(query: Any) -> list[str]:
    """The names of a query's columns, in small letters."""
    return [str(each).lower() for each in query.named_selects]


def _joined(parts: list[Traced], *, is_plain: bool = True) -> Traced:
    parents = frozenset[Named]().union(*(each.parents for each in parts))
    is_whole = all(each.is_whole for each in parts)
    return Traced(parents, is_plain and all(each.is_plain for each in parts), is_whole)


# -- Texts -----------------------------------------------------------------------------------------
# The text of every column: written once in a schema file, or inherited from what it passes on.
#
# A landed column's text stands in the API's declaration, and its comment in the file bears it. A
# column that only passes another one on, lineage says, means what that one means.


def column_texts(project: Project, shapes: Shapes) -> dict[str, dict[str, str]]:
    """The text of each column by its table, as far as there is one."""
    texts: dict[str, dict[str, str]] = {
        table: {each.name: each.comment for each in columns} for table, columns in shapes.items()
    }
    for source in project.sources.values():
        written = {name: text for name, text in source.texts.items() if text}
        texts[source.table] = texts.get(source.table, {}) | written
    traced = lineage(project, shapes)
    for node in project.nodes:
        if not isinstance(node, Model):
            texts[node.table] = node.texts
            continue
        found = {name: text for name, text in node.texts.items() if text}
        for each in shapes.get(node.table, ()):
            passed_on = traced.plain_parents(node.table, each.name)
            inherited = {texts.get(table, {}).get(column, "") for table, column in passed_on}
            # Parts of a union may mean different things, and then neither's text is right.
            if each.name not in found and len(inherited) == 1:
                found[each.name] = inherited.pop()
        texts[node.table] = found
    return texts


def check_columns(project: Project, shapes: Shapes) -> None:
    """Raise `ModelInvalid` for a test or a text of a column that is not there."""
    for path, line, what, table, column in _named_columns(project):
        there = {each.name for each in shapes.get(table, ())}
        if there and column not in there:
            raise ModelInvalid(
                f"{what} is of the column {column}, and {table} has none of that name",
                path=path,
                line=line,
                action=f"Name one of its columns: {', '.join(sorted(there))}.",
            )


def _named_columns(project: Project) -> Iterator[tuple[Path, int, str, str, str]]:
    """Every column that a schema file names: where, what for, its table, its name."""
    for test in project.tests:
        yield test.path, test.line, f"the test {test.name}", test.table, test.column
        if test.to is not None and test.field is not None:
            yield test.path, test.line, f"the test {test.name}", test.to, test.field
    for model in project.models.values():
        if model.declared is not None:
            for column in model.texts:
                yield *model.declared, "a text", model.table, column
