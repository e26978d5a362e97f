"""What a project folder declares, as plain values: models, seeds, sources, columns, tests, audits.

Nothing here reads a file or knows a database.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import duckdb

from connector.errors import ModelFailed, ModelInvalid
from connector.publishing import graph

# -- Result ----------------------------------------------------------------------------------------
# What a build did: each model with its rows and seconds, each test and audit with what it found.
#
# A check's examples are ids and values of key columns alone, since results reach logs, reports and
# Dagster, and nothing personal may.


Kind = Literal["seed", "view", "table"]
Severity = Literal["error", "warn"]
CheckKind = Literal["unique", "not_null", "accepted_values", "relationships", "audit"]


@dataclass(frozen=True, slots=True)
class ModelBuilt:
    """One model or seed as it was built, or carried over from an earlier file.

    `rows` is None for a view, which is counted by no one until it is asked. `seconds` is the wall
    time of the build.
    """

    name: str
    schema: str
    kind: Kind
    rows: int | None
    seconds: float
    is_carried: bool = False

    @property
    def table(self) -> str:
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Checked:
    """How one generic test or audit came out.

    `name` is unique in the project, `model` the model, seed or source table that it is about, and
    `column` is None for an audit. `failing` counts the rows that it found, `examples` are a few
    of their ids (values of a unique or id column, never of a personal one).
    """

    name: str
    model: str
    column: str | None
    kind: CheckKind
    severity: Severity
    failing: int
    examples: tuple[str, ...] = ()
    about: str = ""

    @property
    def passed(self) -> bool:
        """Whether it found nothing."""
        return self.failing == 0


@dataclass(frozen=True, slots=True)
class Built:
    """A build that ran to its end: every selected model stands in the file.

    Whether the file is fit to publish is what `blocking` says: it is, where that is empty.
    """

    models: tuple[ModelBuilt, ...]
    checks: tuple[Checked, ...]

    @property
    def blocking(self) -> tuple[Checked, ...]:
        """The failed checks of severity error: analysts keep the file that they have."""
        return tuple(c for c in self.checks if not c.passed and c.severity == "error")

    @property
    def warnings(self) -> tuple[Checked, ...]:
        """The failed checks of severity warn."""
        return tuple(c for c in self.checks if not c.passed and c.severity == "warn")


class Building(Protocol):
    """Who is told how a build goes on."""

    def planned(self, models: int, checks: int) -> None:
        """So many models will be built and so many checks made."""

    def building(self, name: str) -> None:
        """The model's turn has come."""

    def built(self, model: ModelBuilt) -> None:
        """The model stands."""

    def checked(self, check: Checked) -> None:
        """A test or an audit has ended."""


# -- Rendering -------------------------------------------------------------------------------------
# What stands in double braces: ref, source and config, and nothing else of Jinja.
#
#     select id, status from {{ source('landing', 'jobs') }}
#     select job_id from {{ ref('stg_jobs') }}
#     {{ config(materialized='view') }}        {{ config(severity='warn') }} in an audit
#
# A rendered text has as many lines as the file, so that a line of one is the same line of the
# other. Names are rendered as `schema.table`, without the catalog: a view survives the file's new
# name.


ALLOWED = (
    "{{ ref('model') }}, {{ source('schema', 'table') }} and "
    "{{ config(materialized='table' or 'view') }}, in an audit {{ config(severity='error' or "
    "'warn') }}"
)
CONFIGURED: Mapping[str, tuple[str, ...]] = {
    "materialized": ("table", "view"),
    "severity": ("error", "warn"),
}
"""What a file may configure, and the values allowed."""

_BRACE = re.compile(r"\{\{|\{%|\{#|\}\}|%\}|#\}")
_CALL = re.compile(r"\{\{-?\s*(ref|source|config)\s*\(([^{}]*?)\)\s*-?\}\}", re.DOTALL)
_CALL_ARGUMENTS = {"ref": 1, "source": 2, "config": 0}


@dataclass(frozen=True, slots=True)
class Call:
    """One use of the braces: which word, its arguments, and the place from 1."""

    word: str
    arguments: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Template:
    """A file's text with the calls that it holds."""

    text: str
    path: Path
    calls: tuple[Call, ...]

    @property
    def refs(self) -> tuple[Call, ...]:
        """The calls of `ref`, in order."""
        return tuple(each for each in self.calls if each.word == "ref")

    @property
    def sources(self) -> tuple[Call, ...]:
        """The calls of `source`, in order."""
        return tuple(each for each in self.calls if each.word == "source")

    @property
    def options(self) -> dict[str, str]:
        """What the file configures."""
        return {k: v for each in self.calls for k, v in each.options}

    def render(self, name: Callable[[Call], str]) -> str:
        """The text with each ref and source replaced by its table; lines stay where they are."""
        parts, at = [], 0
        for each in self.calls:
            replaced = "" if each.word == "config" else name(each)
            lines = self.text.count("\n", each.start, each.end)
            parts += [self.text[at : each.start], replaced, "\n" * lines]
            at = each.end
        return "".join((*parts, self.text[at:]))


def read_template(text: str, path: Path) -> Template:
    """Find what stands in braces. Raises `ModelInvalid` with the place of anything not allowed."""
    calls, at = [], 0
    while found := _BRACE.search(text, at):
        call = _CALL.match(text, found.start())
        if call is None:
            raise _refused(text, path, found.start(), "this is not understood")
        calls.append(_call(text, path, call))
        at = call.end()
    return Template(text, path, tuple(calls))


def _call(text: str, path: Path, found: re.Match[str]) -> Call:
    word, inside = found.group(1), found.group(2)
    try:
        tree = ast.parse(f"{word}({inside})", mode="eval").body
        assert isinstance(tree, ast.Call)
        arguments = tuple(_text(each) for each in tree.args)
        options = tuple((each.arg or "**", _text(each.value)) for each in tree.keywords)
    except (SyntaxError, ValueError):
        raise _refused(text, path, found.start(), f"{word}() takes plain texts") from None
    if len(arguments) != _CALL_ARGUMENTS[word] or (options and word != "config"):
        problem = f"{word}() takes {_CALL_ARGUMENTS[word]} name(s) and nothing else"
        raise _refused(text, path, found.start(), problem)
    for name, value in options:
        if value not in CONFIGURED.get(name, ()):
            raise _refused(text, path, found.start(), f"config({name}={value!r}) is not understood")
    line, column = _line_and_column(text, found.start())
    return Call(word, arguments, options, found.start(), found.end(), line, column)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError(ast.dump(node))


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def _refused(text: str, path: Path, at: int, problem: str) -> ModelInvalid:
    line, column = _line_and_column(text, at)
    shown = text[at:].split("\n", 1)[0][:40]
    return ModelInvalid(
        f"{shown!r}: {problem}",
        path=path,
        line=line,
        column=column,
        action=f"Write plain SQL with {ALLOWED}.",
    )


# -- Declared --------------------------------------------------------------------------------------
#


Materialized = Literal["table", "view"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a file and a line of it, from 1."""

    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class GenericTest:
    """One of the four tests that a schema file may ask of a column.

    `values` are those of `accepted_values`; `to` and `field` the other side of `relationships`,
    `to` as a table with its schema. `about` names the model, seed or source table tested.
    """

    name: str
    kind: CheckKind
    about: str
    table: str
    column: str
    severity: Severity
    place: Place
    values: tuple[str, ...] = ()
    quotes_values: bool = True
    to: str | None = None
    field: str | None = None

    @property
    def sentence(self) -> str:
        """What the test asks, in a sentence."""
        column = f"{self.table}.{self.column}"
        if self.kind == "unique":
            return f"No two rows have the same {column}."
        if self.kind == "not_null":
            return f"Every row has a value of {column}."
        if self.kind == "accepted_values":
            return f"{column} is one of: {', '.join(self.values)}."
        return f"Every {column} is a {self.field} of {self.to}."


@dataclass(frozen=True, slots=True)
class Audit:
    """A query that must return nothing; `about` is the model that it refers to first, or the source
    table where it refers to none.
    """

    name: str
    sentence: str
    template: Template
    severity: Severity
    path: Path
    about: str = ""


@dataclass(frozen=True, slots=True)
class Documented:
    """A column with its description, which is empty where the schema file gives none."""

    name: str
    description: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """One SQL file: `sentence` and `grain` are of its header, `description` of its schema file,
    and `columns` those that the schema file lists.
    """

    name: str
    schema: str
    materialized: Materialized
    grain: str
    sentence: str
    template: Template
    path: Path
    description: str = ""
    columns: Mapping[str, Documented] = field(default_factory=dict)
    place: Place | None = None

    @property
    def table(self) -> str:
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.name}"

    @property
    def about(self) -> str:
        """What the rows are, as comments and catalogs show it."""
        return self.description or f"{self.sentence}\nGrain: {self.grain}."


@dataclass(frozen=True, slots=True)
class Seed:
    """A csv file that people own, with its columns as declared; `is_users` says whose file."""

    name: str
    schema: str
    sentence: str
    columns: tuple[Documented, ...]
    path: Path
    is_users: bool
    place: Place

    @property
    def table(self) -> str:
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Source:
    """A table that something else made: the landing, the history, the runs."""

    name: str
    schema: str
    table_name: str
    sentence: str
    columns: Mapping[str, Documented]
    place: Place

    @property
    def table(self) -> str:
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.table_name}"


# -- Project ---------------------------------------------------------------------------------------
# A project as read: its models, seeds, sources, tests and audits, and how they hang together.


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that a project folder declares; all references in it are known to be good.

    `parents` has every seed and model in building order, with the seeds and models that each is
    made of. `makes_content_views` says whether each content type gets a typed view.
    """

    name: str
    folder: Path
    models: Mapping[str, Model]
    seeds: Mapping[str, Seed]
    sources: Mapping[str, Source]
    tests: tuple[GenericTest, ...]
    audits: tuple[Audit, ...]
    parents: Mapping[str, tuple[str, ...]]
    makes_content_views: bool

    @property
    def checks(self) -> tuple[GenericTest | Audit, ...]:
        """All tests and audits, in the order of their files."""
        return *self.tests, *self.audits

    @property
    def order(self) -> tuple[str, ...]:
        """Seeds and models, each after what it is made of."""
        return tuple(self.parents)

    def selected(self, select: Sequence[str] = ()) -> tuple[str, ...]:
        """The seeds and models that `select` means, in building order; all of them where it is
        empty. Raises `UnknownName` with the nearest name.

        A word is a name or a folder's: `marts`, `fct_jobs`, `+fct_jobs` with all that it is made
        of, `stg_jobs+` with all that is made of it.
        """
        chosen = graph.select(select, self.folders, self.parents)
        return tuple(name for name in self.parents if name in chosen)

    @property
    def folders(self) -> dict[str, str]:
        """The folder of each seed and model, by which a selection may name it."""
        return {
            name: self.seeds[name].schema if name in self.seeds else self.models[name].schema
            for name in self.parents
        }

    def node(self, name: str) -> Model | Seed:
        """The model or seed of that name, which must be one."""
        return self.seeds[name] if name in self.seeds else self.models[name]

    def sql(self, template: Template) -> str:
        """A model's or audit's text as DuckDB takes it, line for line that of the file."""
        return template.render(self._table)

    def _table(self, call: Call) -> str:
        if call.word == "ref":
            return self.node(call.arguments[0]).table
        return self.sources[".".join(call.arguments)].table

    def sources_of(self, model: Model) -> tuple[str, ...]:
        """The source tables that a model reads itself, as `schema.table`."""
        read = (self.sources[".".join(each.arguments)].table for each in model.template.sources)
        return tuple(dict.fromkeys(read))

    def reads(self, check: GenericTest | Audit) -> frozenset[str]:
        """The seeds and models that a check reads; none for one on source tables alone."""
        if isinstance(check, Audit):
            return frozenset(each.arguments[0] for each in check.template.refs)
        names = (each.rpartition(".")[2] for each in (check.table, check.to) if each is not None)
        tables = (check.table, check.to)
        return frozenset(n for n in names if n in self.parents and self.node(n).table in tables)

    def sources_read(self, check: GenericTest | Audit) -> frozenset[str]:
        """The source tables that a check reads, as `schema.table`."""
        if isinstance(check, Audit):
            read = (".".join(each.arguments) for each in check.template.sources)
            return frozenset(self.sources[each].table for each in read)
        tables = {each.table for each in self.sources.values()}
        return frozenset(each for each in (check.table, check.to) if each and each in tables)

    @property
    def digest(self) -> str:
        """Tells two projects of different content apart: what is derived from it may be kept."""
        parts = [f"{m.table} {m.materialized} {self.sql(m.template)}" for m in self.models.values()]
        parts += [f"{s.table} {s.columns}" for s in self.seeds.values()]
        parts += [f"{m.table} {m.columns}" for m in self.models.values()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# -- Statement -------------------------------------------------------------------------------------
# Runs a statement made of a file, and names file and line where DuckDB refuses it.
#
# A statement holds the file's text from its first line on, so that DuckDB's `LINE n` is line n of
# the file. What DuckDB says of data is told without the data: it may be a person's.


_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
_MISSING = re.compile(r"(?:Table|View) with name \"?([\w.]+)\"? does not exist", re.IGNORECASE)


@contextmanager
def naming_line(path: Path, doing: str) -> Iterator[None]:
    """Turn what DuckDB says of a statement into a `ModelFailed` with file and line.

    Errors of the file system and of the disk pass, since no model is at fault.
    """
    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        message = str(error)
        line = _LINE.search(message)
        raise ModelFailed(
            f"{doing}: {_told(error, message)}",
            path=path,
            line=int(line.group(1)) if line else None,
            action=_action(message),
        ) from None


def _told(error: duckdb.Error, message: str) -> str:
    """DuckDB's sentence on one line, without the SQL that it repeats, and without data."""
    sentence = " ".join(_LINE.split(message)[0].split())
    if isinstance(error, _ABOUT_THE_TEXT):
        return sentence
    return _QUOTED.sub("'...'", sentence)


def _action(message: str) -> str | None:
    missing = _MISSING.search(message)
    if missing is None:
        return None
    return (
        f"Build what it is made of as well, with a '+' before its name: {missing.group(1)} is "
        "not there. If it is written as plain SQL, write it as ref() or source()."
    )
