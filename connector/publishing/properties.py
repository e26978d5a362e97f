"""Reads what `.yml` files say beside models and seeds: descriptions, types, tests, sources.

The form is dbt's. What a file says and this does not understand is refused by name, since passing
over it would make another result than dbt makes of the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import yaml

from connector.errors import ModelInvalid, ModelTwice
from connector.publishing.project import CheckKind, Documented, Place, Severity, Source

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# -- Lined -----------------------------------------------------------------------------------------
# YAML whose every mapping knows its line, and the few questions that readers ask of it.


class Lined(dict[str, Any]):
    """A mapping of a YAML file: `path` and `line` (from 1) say where it begins."""

    path: Path
    line: int

    def refuse(self, problem: str, action: str) -> ModelInvalid:
        """The error that the mapping is not as it must be."""
        return ModelInvalid(problem, path=self.path, line=self.line, action=action)

    def allow(self, what: str, *names: str) -> None:
        """Refuse every key but these: one that is passed over would change the result unseen."""
        for key in self:
            if key not in names:
                raise self.refuse(
                    f"{key!r} of {what} is not understood", f"Use one of: {', '.join(names)}."
                )

    def text(self, key: str, *, default: str | None = None) -> str:
        """The text under the key, on one line. Raises `ModelInvalid` where there is none."""
        value = self.get(key, default)
        if not isinstance(value, str):
            raise self.refuse(f"{key!r} must be a text", f"Write '{key}: ...' here.")
        return " ".join(value.split())

    def paragraph(self, key: str) -> str:
        """The text under the key with its lines, or nothing."""
        self.text(key, default="")
        return "\n".join(" ".join(line.split()) for line in self.get(key, "").strip().split("\n"))

    def mappings(self, key: str) -> Iterator[Lined]:
        """The mappings of the list under the key; none where it is not there."""
        for each in self.get(key) or ():
            if not isinstance(each, Lined):
                raise self.refuse(f"{key!r} must be a list of mappings", "Write '- name: ...'.")
            yield each

    def mapping(self, key: str) -> Lined:
        """The mapping under the key, empty where it is not there."""
        value = self.get(key)
        if value is None:
            value = Lined()
            value.path, value.line = self.path, self.line
        if not isinstance(value, Lined):
            raise self.refuse(f"{key!r} must be a mapping", f"Write '{key}:' and keys below it.")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of plain values under the key, as texts."""
        value = self.get(key)
        if not isinstance(value, list) or any(isinstance(v, dict | list) for v in value):
            raise self.refuse(f"{key!r} must be a list", f"Write '{key}: [...]' here.")
        return tuple(_plain(each) for each in value)


def _plain(value: object) -> str:
    # YAML reads true as a boolean; SQL and dbt write it in small letters.
    return str(value).lower() if isinstance(value, bool) else str(value)


# The parser in C is ten times as fast, and not in every build of the library.


class _Loader(_SafeLoader):
    """Plain YAML values alone, each mapping with its line."""

    path: Path


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Lined:
    keys = [loader.construct_object(key) for key, _ in node.value]
    line = node.start_mark.line + 1
    for key in keys:
        if not isinstance(key, str) or keys.count(key) > 1:
            raise ModelInvalid(
                f"the key {key!r} is there twice, or no text", path=loader.path, line=line
            )
    values = [loader.construct_object(value, deep=True) for _, value in node.value]
    made = Lined(zip(keys, values, strict=True))
    made.path, made.line = loader.path, line
    return made


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Lined:
    """The one mapping of a YAML file. Raises `ModelInvalid` with the line of what is wrong."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        loader.path = path
        found = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise ModelInvalid(f"is no YAML: {error.problem}", path=path, line=line) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelInvalid(f"cannot be read: {type(error).__name__}", path=path) from None
    if not isinstance(found, Lined):
        raise ModelInvalid("must be a mapping", path=path, line=1)
    return found


# -- Header ----------------------------------------------------------------------------------------
# The comment that opens a model or an audit: its name, its grain, one sentence.
#
#     -- model: fct_placements
#     -- grain: one row per placement (a contract or permanent booking that is not cancelled)
#     -- Every placement with its fee, from the first source of it that is known.
#
#     -- audit: no_job_is_lost
#     -- Every job that is landed and not deleted is a row of dim_jobs.
#
# The sentence may run over several lines. Notes may follow after an empty comment line; they are
# for readers of the file and go nowhere else.


Word = Literal["model", "audit"]

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
NAME_ALLOWED = "a-z, 0-9 and '_', beginning with a letter, at most 63 of them"


@dataclass(frozen=True, slots=True)
class Header:
    """A file's own words on itself; an audit has no grain."""

    name: str
    grain: str
    sentence: str


def read_header(text: str, path: Path, word: Word) -> Header:
    """Read the opening comment. Raises `ModelInvalid` with the line that is not as it must be."""
    comment = []
    for line in text.split("\n"):
        if not line.startswith("--"):
            break
        comment.append(line[2:].strip())
    name = _labelled(comment, 0, word, path)
    if name != path.stem or not NAME.fullmatch(name):
        raise _wrong(
            path,
            1,
            f"the header names {name!r}",
            f"Write '-- {word}: {path.stem}': the file's own name, of {NAME_ALLOWED}.",
        )
    grain = _labelled(comment, 1, "grain", path) if word == "model" else ""
    first = 2 if word == "model" else 1
    sentence = " ".join(_until_empty(comment[first:]))
    if not sentence or not sentence.endswith("."):
        raise _wrong(
            path,
            first + 1,
            "the header has no sentence",
            "Say in one sentence, with a full stop, what the rows are: '-- Every job ...'.",
        )
    return Header(name, grain, sentence)


def _labelled(comment: list[str], index: int, label: str, path: Path) -> str:
    found = comment[index].partition(":") if index < len(comment) else ("", "", "")
    if found[0] != label or not found[2].strip():
        raise _wrong(
            path,
            index + 1,
            f"the header must have '-- {label}: ...' here",
            f"Begin the file with {_form(label)}.",
        )
    return found[2].strip()


def _form(label: str) -> str:
    if label == "audit":
        return "'-- audit: NAME' and a sentence"
    return "'-- model: NAME', '-- grain: one row per ...' and a sentence, each on a line"


def _until_empty(lines: list[str]) -> list[str]:
    return lines[: lines.index("")] if "" in lines else lines


def _wrong(path: Path, line: int, problem: str, action: str) -> ModelInvalid:
    return ModelInvalid(problem, path=path, line=line, action=action)


# -- Properties ------------------------------------------------------------------------------------
#


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
