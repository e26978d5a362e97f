"""Column lineage: which columns each model's column is made of, down to the API's fields.

A column is made of the columns in the expression that gives its value; conditions of joins and
filters decide about rows and are no part of it. `count(*)` is made of no column. A column is
*plain* where it passes one column on as it is, through any number of common table expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from connector.models.describe import Described, Shapes, describe
from connector.models.project import Project

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope

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
