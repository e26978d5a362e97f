"""Reads what `.yml` files say beside models and seeds: descriptions, types, tests, sources.

The form is dbt's. What a file says and this does not understand is refused by name, since passing
over it would make another result than dbt makes of the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from connector.errors import ModelTwice
from connector.models.declared import Documented, Place, Source
from connector.models.header import NAME, NAME_ALLOWED
from connector.models.lined import Lined, read_yaml
from connector.models.result import CheckKind, Severity

_ARGUMENTS: dict[CheckKind, tuple[str, ...]] = {
    "unique": (),
    "not_null": (),
    "accepted_values": ("values", "quote"),
    "relationships": ("to", "field"),
}
"""The tests that a schema file may ask of a column, and the arguments of each."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A test as a file asks for it, before anything is known of what it is about."""

    kind: CheckKind
    column: str
    name: str | None
    severity: Severity
    arguments: Lined
    place: Place


@dataclass(frozen=True, slots=True)
class Properties:
    """What a file says of one model, seed or source table."""

    name: str
    description: str
    columns: dict[str, Documented]
    tests: tuple[Asked, ...]
    place: Place


@dataclass(slots=True)
class Said:
    """What all files of a project say; a name stands in one file only."""

    models: dict[str, Properties] = field(default_factory=dict)
    seeds: dict[str, Properties] = field(default_factory=dict)
    sources: dict[str, tuple[Source, Properties]] = field(default_factory=dict)

    def read(self, path: Path) -> None:
        """Read one file. Raises `ModelInvalid` or `ModelTwice`."""
        top = read_yaml(path)
        top.allow("a schema file", "version", "models", "seeds", "sources")
        for each in top.mappings("models"):
            each.allow("a model", "name", "description", "columns", "meta")
            _enter(self.models, _properties(each))
        for each in top.mappings("seeds"):
            each.allow("a seed", "name", "description", "columns", "config", "meta")
            config = each.mapping("config")
            config.allow("a seed's config", "column_types")
            _enter(self.seeds, _properties(each, types=config.mapping("column_types")))
        for each in top.mappings("sources"):
            each.allow("a source", "name", "schema", "description", "tables", "meta")
            for table in each.mappings("tables"):
                self._enter_source(each, table)

    def _enter_source(self, source: Lined, table: Lined) -> None:
        table.allow("a source's table", "name", "description", "columns", "meta")
        said = _properties(table)
        name = source.text("name")
        made = Source(
            name=name,
            schema=source.text("schema", default=name),
            table_name=said.name,
            sentence=said.description,
            columns=said.columns,
            place=said.place,
        )
        key = f"{name}.{said.name}"
        if key in self.sources:
            raise _twice(key, said.place, self.sources[key][1].place)
        self.sources[key] = made, said


def _enter(into: dict[str, Properties], said: Properties) -> None:
    if said.name in into:
        raise _twice(said.name, said.place, into[said.name].place)
    into[said.name] = said


def _twice(name: str, place: Place, first: Place) -> ModelTwice:
    told = f"{name} is declared here and in {first.path}:{first.line}"
    return ModelTwice(told, path=place.path, line=place.line)


def _properties(entry: Lined, types: Lined | None = None) -> Properties:
    columns: dict[str, Documented] = {}
    tests: list[Asked] = []
    for each in entry.mappings("columns"):
        each.allow("a column", "name", "description", "data_tests", "tests", "meta")
        name = each.text("name")
        if name in columns:
            raise _twice(f"the column {name}", Place(each.path, each.line), _place(entry))
        type = types.text(name) if types is not None and name in types else None
        columns[name] = Documented(name, each.text("description", default=""), type)
        tests += _tests(each, name)
    for name in types or ():
        if name not in columns:
            assert types is not None
            raise types.refuse(f"{name} has a type and is not among the columns", "List it there.")
    name = entry.text("name")
    if not NAME.fullmatch(name):
        raise entry.refuse(f"the name {name!r} is not allowed", f"Use {NAME_ALLOWED}.")
    return Properties(name, entry.paragraph("description"), columns, tuple(tests), _place(entry))


def _place(entry: Lined) -> Place:
    return Place(entry.path, entry.line)


def _tests(column: Lined, name: str) -> Iterator[Asked]:
    for key in ("data_tests", "tests"):
        for each in column.get(key) or ():
            kind, said = _kind(column, each)
            allowed = _ARGUMENTS[kind]
            said.allow(f"the test {kind}", "name", "arguments", "config", "severity", *allowed)
            arguments = said.mapping("arguments")
            arguments.allow(f"the test {kind}", *allowed)
            for argument in allowed:
                if argument in said:
                    arguments[argument] = said[argument]
            config = said.mapping("config")
            config.allow("a test's config", "severity")
            severity = config.get("severity", said.get("severity", "error"))
            if severity not in get_args(Severity):
                wanted = " or ".join(get_args(Severity))
                raise said.refuse(f"the severity {severity!r} is not known", f"Use {wanted}.")
            own = said.text("name") if "name" in said else None
            place = Place(said.path, said.line)
            yield Asked(kind, name, own, severity, arguments, place)


def _kind(column: Lined, entry: Any) -> tuple[CheckKind, Lined]:
    """The kind of a test and what is said of it; a bare word is a kind."""
    if isinstance(entry, Lined) and len(entry) == 1:
        kind, said = next(iter(entry)), entry.mapping(next(iter(entry)))
    else:
        kind, said = entry, Lined()
        said.path, said.line = column.path, column.line
    for known in _ARGUMENTS:
        if kind == known:
            return known, said
    raise said.refuse(f"there is no test {kind!r}", f"Use one of: {', '.join(_ARGUMENTS)}.")
