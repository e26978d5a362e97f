"""A folder of SQL models, seeds and audits in dbt's form, with all references resolved.

dbt builds the same tables from the same folder. Every error names the file, and the line if it is
known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any, Literal, TypeVar

import duckdb
import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from connector.errors import ModelError, ModelFailed, UnknownName
from connector.warehouse.file import literal, quoted

Kind = Literal["seed", "view", "table"]
Severity = Literal["error", "warn"]

SHIPPED_FOLDER = Path(__file__).parents[2] / "dbt_like_sql"
"""Project that comes with the connector, next to its package."""

_AUDITS = "audits"
_FOLDERS = ("staging", "marts", "seeds", _AUDITS)
"""Folders of a project; the schema of a table is the name of its folder."""

_NAME = r"[a-z][a-z0-9_]{0,62}"

# -- Schema files ----------------------------------------------------------------------------------

# The parser in C is ten times as fast, and not in every build of the library.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LINE = "__line__"
"""Key for the line where a mapping begins; every mapping has it."""


class _YamlLoader(_SafeLoader):  # type: ignore[misc]
    """Loader of plain YAML values. Adds the line of each mapping, and refuses duplicate keys."""


def _construct_mapping(loader: _YamlLoader, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {_LINE: node.start_mark.line + 1}
    for key_node, value in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str) or key in found:
            problem = f"the key {key!r} is duplicate or not text"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        found[key] = loader.construct_object(value, deep=True)
    return found


_YamlLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def _join_words(text: str) -> str:
    """Return the text with single spaces; its lines stay."""
    return "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))


_Text = Annotated[str, AfterValidator(_join_words)]


class _Entry(BaseModel):
    """Mapping in a schema file. An unknown key is an error, because dbt may give it a meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int = Field(default=1, alias="__line__")
    meta: Mapping[str, Any] = {}


class ColumnTest(_Entry):
    """Test of a column, with the arguments of its kind. DuckDB does not need dbt's `quote`."""

    kind: Literal["unique", "not_null", "accepted_values", "relationships"]
    name: str = ""
    severity: Severity = "error"
    values: tuple[str | bool | int | float, ...] = ()
    quote: bool = True
    to: str = ""
    field: str = ""

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, test: Any) -> Any:
        """Return the test as one mapping, wherever dbt allows its arguments."""
        given = {test: {}} if isinstance(test, str) else test
        kinds = {*given} - {_LINE} if isinstance(given, dict) else set()
        options = given[kind := kinds.pop()] or {} if len(kinds) == 1 else None
        if not isinstance(options, dict):
            raise ValueError("is not a test; write '- unique' or '- unique: {...}'")
        flat = {key: value for key, value in options.items() if key not in ("arguments", "config")}
        flat |= (options.get("arguments") or {}) | (options.get("config") or {})
        return {**flat, "kind": kind, _LINE: given.get(_LINE, 0)}


class ColumnEntry(_Entry):
    """Column in a schema file, with its description and tests."""

    name: str
    description: _Text = ""
    personal: StrictBool | None = Field(None, validation_alias=AliasPath("meta", "personal"))
    data_tests: list[ColumnTest] = []


class _TableConfig(_Entry):
    column_types: Mapping[str, str | int] = {}


class TableEntry(_Entry):
    """Model, seed, source or source table in a schema file.

    `config` has the types of a seed's columns; its `meta: {key: [...]}` are the columns that no two
    rows may have in common.
    """

    name: str = Field(default="", pattern=f"^{_NAME}$")
    description: _Text = ""
    columns: list[ColumnEntry] = []
    config: _TableConfig = _TableConfig()
    tables: list[TableEntry] = []
    path: Path = Field(default=Path(), alias="__path__")

    @property
    def named(self) -> dict[str, ColumnEntry]:
        """Listed columns, by name."""
        return {each.name: each for each in self.columns}

    @property
    def texts(self) -> dict[str, str]:
        """Descriptions of the columns that have one."""
        return {each.name: each.description for each in self.columns if each.description}

    @property
    def types(self) -> dict[str, str]:
        """Type of each column of a seed, in order."""
        types = self.config.column_types
        return {each.name: str(types.get(each.name, "varchar")) for each in self.columns}


class _SchemaFile(_Entry):
    version: Any = None
    models: list[TableEntry] = []
    seeds: list[TableEntry] = []
    sources: list[TableEntry] = []


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot be read: {type(error).__name__}", path=path) from None


def _read_entries(path: Path) -> list[TableEntry]:
    """Return the entries of a schema file, those of source tables with the name `schema.table`."""
    found: Any = None
    try:
        found = yaml.load(_read_text(path), _YamlLoader) or {}  # noqa: S506 # it makes plain values
        file = _SchemaFile.model_validate(found)
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        line = mark.line + 1 if mark else None
        raise ModelError(f"is not valid YAML: {problem}", path=path, line=line) from None
    except ValidationError as error:
        first, line = error.errors()[0], 1
        for step in (*first["loc"], ""):
            line = found.get(_LINE, line) if isinstance(found, dict) else line
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                break
        keys = ".".join(str(step) for step in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise ModelError(f"{keys}: {problem}", path=path, line=line) from None
    named = [(each.name, each) for each in (*file.models, *file.seeds)]
    named += [
        (f"{each.name}.{table.name}", table) for each in file.sources for table in each.tables
    ]
    return [entry.model_copy(update={"name": name, "path": path}) for name, entry in named]


# -- Project ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Model or seed.

    Attributes:
        path: SQL file of a model, csv file of a seed.
        sql: Query of a model. Its lines are those of the file, so that DuckDB's errors name them.
        entry: Entry in a schema file, empty if it has none.
        config: Arguments of config().
        parents: Names of the models and seeds that it reads.
        sources: Loaded tables that it reads, as `schema.table`.
        reads: All tables that it reads.
        is_own: True for a file of the user.
    """

    name: str
    schema: str
    kind: Kind
    path: Path
    sql: str = ""
    entry: TableEntry = field(default_factory=TableEntry)
    config: Mapping[str, Any] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    is_own: bool = False
    line: int = 1

    @property
    def table(self) -> str:
        """The table as `schema.table`."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Check:
    """Test of a column, or audit: a query for wrong rows.

    Attributes:
        model: Checked model, seed or source table. For an audit, the first table that it reads.
        about: The requirement, as a sentence.
        reads: Tables that the query reads, as `schema.table`.
        line: Line of a test in its schema file; None for an audit, whose query is a file.
    """

    name: str
    model: str
    severity: Severity
    about: str
    sql: str
    reads: frozenset[str]
    path: Path
    line: int | None = None


@dataclass(frozen=True, eq=False)
class Project:
    """Models and seeds in build order, the source tables that they read, and all checks."""

    nodes: Mapping[str, Node]
    sources: Mapping[str, TableEntry]
    checks: tuple[Check, ...]

    def selected(self, words: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the selected models and seeds in build order; all without words.

        A word is the name of a model, seed or schema. `+fct_jobs` adds everything that the model
        reads, `stg_jobs+` everything that reads it. Raises `UnknownName` with the nearest name.
        """
        chosen = set() if words else {*self.nodes}
        for word in words:
            bare = word.removeprefix("+").removesuffix("+")
            found = {n for n, node in self.nodes.items() if bare in (n, node.schema)}
            if not found:
                schemas = {node.schema for node in self.nodes.values()}
                raise UnknownName("model, seed or folder", bare, (*self.nodes, *schemas))
            chosen |= found
            read, readers = {*found}, {*found}
            for name, node in reversed([*self.nodes.items()]) if word[0] == "+" else ():
                read.update(node.parents if name in read else ())
            for name, node in self.nodes.items() if word[-1] == "+" else ():
                readers.update(() if readers.isdisjoint(node.parents) else (name,))
            chosen |= read | readers
        return tuple(name for name in self.nodes if name in chosen)

    def checks_of(self, names: Collection[str]) -> tuple[Check, ...]:
        """Return the checks that read one of these models and seeds, or a table loaded for them."""
        tables = {t for name in names for t in (self.nodes[name].table, *self.nodes[name].sources)}
        return tuple(each for each in self.checks if each.reads & tables)


def load_project(
    folder: Path = SHIPPED_FOLDER, *, seeds: Path | None = None, own: Path | None = None
) -> Project:
    """Load the project in a folder, with the user's seeds and models.

    Args:
        folder: Project with the folders staging, marts, seeds and audits.
        seeds: Folder of csv files that replace seeds of the same name.
        own: Folder of the user's models, audits and schema files.

    Raises:
        ModelError: A file is invalid. Names the file, and the line if it is known.
    """
    return _Loader(folder, seeds, own).load()


# -- Files -----------------------------------------------------------------------------------------

_JINJA = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
_BRACES = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)


class _Loader:
    """Reads the files of a project: first the schema files, because SQL names their sources."""

    def __init__(self, folder: Path, seeds: Path | None, own: Path | None) -> None:
        self._folder, self._seeds, self._own = folder, seeds or folder / "seeds", own
        self._entries = _by_name(e for path in self._files("*.y*ml") for e in _read_entries(path))
        self._sources = {name: entry for name, entry in self._entries.items() if "." in name}
        self._nodes: dict[str, Node] = {}

    def load(self) -> Project:
        """Return the project, with all references resolved."""
        found = [self._read(path) for path in (*self._files("*.csv"), *self._files("*.sql"))]
        self._nodes = _by_name(each for each in found if each.schema != _AUDITS)
        for name, entry in self._entries.items():
            if name not in self._nodes and name not in self._sources:
                problem = str(UnknownName("model or seed", name, self._nodes))
                raise ModelError(problem, path=entry.path, line=entry.line)
        nodes = {name: self._render(each) for name, each in self._nodes.items()}
        audits = (self._audit(self._render(each)) for each in found if each.schema == _AUDITS)
        tests = (
            self._test(entry, column, test)
            for entry in self._entries.values()
            for column in entry.columns
            for test in column.data_tests
        )
        checks = _by_name((*tests, *audits))
        return Project(_in_build_order(nodes), self._sources, tuple(checks.values()))

    def _files(self, pattern: str) -> list[Path]:
        """Return the project's files of this pattern, and then the user's."""
        found = [p for name in _FOLDERS for p in sorted((self._folder / name).rglob(pattern))]
        if self._own is not None and pattern != "*.csv":
            found += sorted(self._own.rglob(pattern))
        return found

    def _read(self, path: Path) -> Node:
        """Return a model or an audit with its template, or a seed, of the user if there is one."""
        name, entry = path.stem, self._entries.get(path.stem, TableEntry())
        if path.suffix == ".csv":
            users = self._seeds / path.name
            used = users if users.exists() else path
            return Node(name, "seeds", "seed", used, entry=entry, is_own=used != path)
        text = _read_text(path)
        is_own = self._own is not None and self._own in path.parents
        schema = "own" if is_own else path.relative_to(self._folder).parts[0]
        schema = _AUDITS if text.startswith("-- audit:") else schema
        if schema != _AUDITS and not re.fullmatch(_NAME, name):
            action = "Rename the file: a-z, 0-9 and '_', beginning with a letter."
            raise ModelError(f"{name!r} is not a valid table name", path=path, action=action)
        return Node(name, schema, "table", path, text, entry, is_own=is_own)

    def _render(self, node: Node) -> Node:
        """Return a model or audit with its SQL and the tables that it reads; a seed unchanged."""
        parents, sources, options = dict[str, str](), dict[str, str](), dict[str, Any]()

        def ref(name: str) -> str:
            if name not in self._nodes:
                raise UnknownName("model or seed", name, self._nodes)
            return parents.setdefault(name, self._nodes[name].table)

        def source(schema: str, table: str) -> str:
            name = f"{schema}.{table}"
            if name not in self._sources:
                raise UnknownName("source", name, self._sources)
            return sources.setdefault(name, name)

        def config(**given: Any) -> str:
            options.update(given)
            return ""

        # Jinja drops line breaks inside of braces, so they are moved behind them.
        text = _BRACES.sub(lambda b: b[0].replace("\n", " ") + "\n" * b[0].count("\n"), node.sql)
        try:
            template = _JINJA.from_string(text.rstrip().removesuffix(";"))
            sql = template.render(ref=ref, source=source, config=config)
        except Exception as error:  # a template can raise anything
            frames = extract_tb(error.__traceback__)
            lines = [each.lineno for each in frames if each.filename == "<template>"]
            raise ModelError(
                f"the template cannot be evaluated: {error}",
                path=node.path,
                line=getattr(error, "lineno", None) or (lines or [None])[-1],
                action="Write plain SQL with {{ ref('model') }}, {{ source('schema', 'table') }}"
                " and {{ config(materialized='view') }}.",
            ) from None
        return replace(
            node,
            kind="view" if options.get("materialized") == "view" else node.kind,
            sql=sql,
            config=options,
            parents=tuple(parents),
            sources=tuple(sources),
            reads=frozenset((*parents.values(), *sources)),
        )

    def _audit(self, node: Node) -> Check:
        """Return the audit of a file. Its sentence is the comment at the beginning."""
        comment = re.match(r"(?:-- audit:.*\n)?((?:--.*\n)*)", node.sql)
        about = " ".join(comment[1].replace("--", " ").split()) if comment else ""
        severity: Severity = "warn" if node.config.get("severity") == "warn" else "error"
        model = (*node.parents, *node.sources, "")[0]
        return Check(node.name, model, severity, about, node.sql, node.reads, node.path)

    def _test(self, entry: TableEntry, column_entry: ColumnEntry, test: ColumnTest) -> Check:
        table = entry.name if entry.name in self._sources else self._nodes[entry.name].table
        column, name = quoted(column_entry.name), f"{table}.{column_entry.name}"
        line, reads = test.line or column_entry.line, frozenset((table,))
        match test.kind:
            case "unique":
                about = f"No two rows have the same {name}."
                sql = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
                sql += " GROUP BY ALL HAVING count(*) > 1"
            case "not_null":
                about = f"Every row has a value of {name}."
                sql = f"SELECT * FROM {table} WHERE {column} IS NULL"
            case "accepted_values":
                texts = [str(v).lower() if isinstance(v, bool) else str(v) for v in test.values]
                about = f"{name} is one of: {', '.join(texts)}."
                allowed = ", ".join(map(literal, texts))
                sql = f"SELECT * FROM {table} WHERE {column} NOT IN ({allowed})"
            case "relationships":
                # As many lines before it as in the file, so that an error names the line.
                text = "\n" * (line - 1) + f"{{{{ {test.to} }}}}"
                target = self._render(Node("", "", "table", entry.path, text))
                other, reads = target.sql.strip(), reads | target.reads
                about = f"Every {name} is a {test.field} of {other}."
                sql = f"SELECT checked.* FROM {table} AS checked ANTI JOIN {other} AS other"
                sql += f" ON other.{quoted(test.field)} = checked.{column}"
                sql += f" WHERE checked.{column} IS NOT NULL"
        label = test.name or f"{test.kind}_{entry.name.replace('.', '_')}_{column_entry.name}"
        return Check(label, entry.name, test.severity, about, sql, reads, entry.path, line)


_Named = TypeVar("_Named", TableEntry, Node, Check)


def _by_name(items: Iterable[_Named]) -> dict[str, _Named]:
    """Return the items by name. Raises `ModelError` for two of the same name."""
    found: dict[str, _Named] = {}
    for each in items:
        first = found.setdefault(each.name, each)
        if first is not each:
            problem = f"{each.name} is also in {first.path}:{first.line}; rename one of the two"
            raise ModelError(problem, path=each.path, line=each.line)
    return found


def _in_build_order(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return the nodes, each after its parents. Raises `ModelError` for a circle of refs."""
    try:
        order = [*TopologicalSorter({n: each.parents for n, each in nodes.items()}).static_order()]
    except CycleError as error:
        # The circle begins and ends with the same model. Each model reads the next one.
        ring = error.args[1][::-1]
        message = f"models refer to each other in a circle: {' -> '.join(ring)}"
        raise ModelError(message, path=nodes[ring[0]].path) from None
    # The user's models are last, because they may name a shipped table without ref().
    order.sort(key=lambda name: nodes[name].is_own and nodes[name].kind != "seed")
    return {name: nodes[name] for name in order}


# -- Errors of SQL ---------------------------------------------------------------------------------

_SQL_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)


@contextmanager
def sql_errors(path: Path, problem: str, line: int | None = None) -> Iterator[None]:
    """Raise DuckDB's error in the text of a file, or made from its `line`, as `ModelFailed`."""
    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        text = str(error)
        message = " ".join(_SQL_LINE.split(text)[0].split())
        if not isinstance(error, _ABOUT_THE_TEXT):
            # Errors of the data quote values, which may be personal.
            message = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", message)
        if line is None and (found := _SQL_LINE.search(text)):
            line = int(found[1])
        raise ModelFailed(f"{problem}: {message}", path=path, line=line) from None
