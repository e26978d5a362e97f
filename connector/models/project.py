"""A folder of SQL models, seeds and audits in dbt's form, with all references resolved.

dbt builds the same tables from the same folder. Every error names the file, and the line if it is
known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any, Literal

import duckdb
import yaml
from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from connector.errors import ModelError, ModelFailed, UnknownName
from connector.warehouse.file import literal, quoted

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    # The parser in C is ten times as fast, and not in every build of the library.
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Kind = Literal["seed", "view", "table"]
Severity = Literal["error", "warn"]

OWN_SCHEMA = "own"
"""Schema of the models of users."""

SHIPPED_FOLDER = Path(__file__).parents[2] / "dbt_like_sql"
"""Project that comes with the connector, next to its package."""

_FOLDERS = ("staging", "marts", "seeds", "audits")
"""Folders of a project; the schema of a table is the name of its folder."""

# -- Schema files ----------------------------------------------------------------------------------

_LINE = "__line__"
"""Key for the line on which a mapping begins; every mapping of a file has it."""


class _YamlLoader(_SafeLoader):
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
        kinds = [key for key in given if key != _LINE] if isinstance(given, dict) else []
        options = given[kinds[0]] or {} if len(kinds) == 1 else None
        if not isinstance(options, dict):
            raise ValueError(f"{test!r} is not a test; write '- unique' or '- unique: {{...}}'")
        flat = {key: value for key, value in options.items() if key not in ("arguments", "config")}
        flat |= (options.get("arguments") or {}) | (options.get("config") or {})
        return {**flat, "kind": kinds[0], _LINE: given.get(_LINE, 0)}


class _ColumnMeta(BaseModel):
    personal: StrictBool | None = None


class ColumnEntry(_Entry):
    """Column in a schema file, with its description and tests."""

    name: str
    description: Annotated[str, AfterValidator(_join_words)] = ""
    meta: _ColumnMeta = _ColumnMeta()  # type: ignore[assignment] # only its own key is read
    data_tests: list[ColumnTest] = []


class _TableConfig(_Entry):
    column_types: Mapping[str, str | int] = {}


class TableEntry(_Entry):
    """Model, seed or source table in a schema file, with its columns.

    `config` has the types of a seed's columns; its `meta: {key: [...]}` are the columns that no two
    rows may have in common.
    """

    name: str = Field(default="", pattern=r"^[a-z][a-z0-9_]{0,62}$")
    description: Annotated[str, AfterValidator(_join_words)] = ""
    columns: list[ColumnEntry] = []
    config: _TableConfig = _TableConfig()

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
        return {name: str(types.get(name, "varchar")) for name in self.named}


class _Source(_Entry):
    name: str
    schema_name: str = Field(default="", alias="schema")
    description: str = ""
    tables: list[TableEntry]


class _SchemaFile(_Entry):
    version: Any = None
    models: list[TableEntry] = []
    seeds: list[TableEntry] = []
    sources: list[_Source] = []

    def entries(self) -> Iterator[tuple[str, TableEntry]]:
        """Entries by the name of a model or seed, or by the `schema.table` of a source."""
        yield from ((each.name, each) for each in (*self.models, *self.seeds))
        yield from ((f"{s.name}.{each.name}", each) for s in self.sources for each in s.tables)


def _read_schema_file(path: Path) -> _SchemaFile:
    """Read and validate a schema file. Raises `ModelError` with the line."""
    found: Any = None
    try:
        found = yaml.load(_read_text(path), _YamlLoader) or {}  # noqa: S506 # it makes plain values
        return _SchemaFile.model_validate(found)
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        line = mark.line + 1 if mark else None
        raise ModelError(f"is not valid YAML: {problem}", path=path, line=line) from None
    except ValidationError as error:
        first, line, place = error.errors()[0], 1, found
        for step in (*first["loc"], ""):
            line = place.get(_LINE, line) if isinstance(place, dict) else line
            try:
                place = place[step]
            except (KeyError, IndexError, TypeError):
                break
        wrong = first["input"]
        given = "a mapping or list" if isinstance(wrong, dict | list) else repr(wrong)
        message = str(first.get("ctx", {}).get("error") or f"{first['msg']}, not {given}")
        if first["type"] == "extra_forbidden":
            message = "is not a key of this entry"
        keys = ".".join(str(step) for step in first["loc"])
        raise ModelError(f"{keys}: {message}", path=path, line=line) from None


def _read_text(path: Path) -> str:
    """Return the text of a file. Raises `ModelError`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot be read: {type(error).__name__}", path=path) from None


# -- SQL files -------------------------------------------------------------------------------------
# A model or an audit is a Jinja template with three functions, as in dbt:
#     select id, status from {{ source('landing', 'jobs') }}
#     select job_id from {{ ref('stg_jobs') }}
#     {{ config(materialized='view') }}        {{ config(severity='warn') }} in an audit

_JINJA = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
_BRACES = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)
_OPTIONS = {"materialized": ("table", "view"), "severity": ("error", "warn")}


@dataclass(frozen=True, slots=True)
class _Query:
    """Evaluated template: its SQL, the names in ref() and source(), and the options of config().

    A line of `sql` is the same line of the file, so that DuckDB's errors name the file's line.
    """

    sql: str
    refs: list[str]
    sources: list[str]
    options: dict[str, str]


# -- Project ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Model or seed.

    Attributes:
        path: SQL file of a model, csv file of a seed.
        entry: Entry in a schema file, empty if it has none.
        schema_file: Path of that file.
        sql: Query of a model.
        parents: Names of the models and seeds that it reads.
        sources: Loaded tables that it reads, as `schema.table`.
        is_own: True for a file of the user.
    """

    name: str
    schema: str
    kind: Kind
    path: Path
    entry: TableEntry
    schema_file: Path | None = None
    sql: str = ""
    parents: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    is_own: bool = False

    @property
    def table(self) -> str:
        """The table as `schema.table`."""
        return f"{self.schema}.{self.name}"

    @property
    def about(self) -> str:
        """Description of the rows."""
        return self.entry.description


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
        parents = {name: node.parents for name, node in self.nodes.items()}
        children = {n: [c for c, made_of in parents.items() if n in made_of] for n in parents}
        chosen = set() if words else {*self.nodes}
        for word in words:
            bare = word.removeprefix("+").removesuffix("+")
            names = {n for n, node in self.nodes.items() if bare in (n, node.schema)}
            if not names:
                schemas = {node.schema for node in self.nodes.values()}
                raise UnknownName("model, seed or folder", bare, (*self.nodes, *schemas))
            chosen |= names
            for is_wanted, steps in ((word[0] == "+", parents), (word[-1] == "+", children)):
                waiting = [*names] if is_wanted else []
                found = {*names}
                while waiting:
                    new = {*steps[waiting.pop()]} - found
                    found |= new
                    waiting += new
                chosen |= found
        return tuple(name for name in self.nodes if name in chosen)

    def checks_of(self, names: Collection[str]) -> tuple[Check, ...]:
        """Return the checks that read one of these models and seeds, or a table loaded for them."""
        nodes = [self.nodes[name] for name in names]
        tables = {table for node in nodes for table in (node.table, *node.sources)}
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


class _Loader:
    """Reads the files of a project: first the schema files, because SQL names their sources."""

    def __init__(self, folder: Path, seeds: Path | None, own: Path | None) -> None:
        self._folder, self._seeds, self._own = folder, seeds, own
        self._entries: dict[str, tuple[Path, TableEntry]] = {}
        """Entries with their schema files, by the name of the model or seed, or `schema.table`."""
        self._tables: dict[str, str] = {}
        """Table of each model and seed."""
        self._sources: dict[str, TableEntry] = {}

    def load(self) -> Project:
        """Return the project, with all references resolved."""
        for path in self._files("*.y*ml"):
            for name, entry in _read_schema_file(path).entries():
                first, earlier = self._entries.setdefault(name, (path, entry))
                if earlier is not entry:
                    raise _duplicate(f"{name} is also in {first}:{earlier.line}", path, entry.line)
        self._sources = {name: entry for name, (_, entry) in self._entries.items() if "." in name}
        texts = {path: _read_text(path) for path in self._files("*.sql")}
        audits = {path for path, text in texts.items() if self._is_audit(path, text)}
        paths: dict[str, Path] = {}
        for path in (*self._files("*.csv"), *(each for each in texts if each not in audits)):
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", path.stem):
                action = "Rename the file: a-z, 0-9 and '_', beginning with a letter."
                message = f"{path.stem!r} is not a valid table name"
                raise ModelError(message, path=path, action=action)
            if (first := paths.setdefault(path.stem, path)) is not path:
                raise _duplicate(f"{path.stem} is also {first}", path)
            self._tables[path.stem] = f"{self._schema(path)}.{path.stem}"
        for name, (path, entry) in self._entries.items():
            if name not in paths and name not in self._sources:
                known = tuple(paths)
                unknown = str(UnknownName("model or seed", name, known))
                raise ModelError(unknown, code="reference_unknown", path=path, line=entry.line)
        nodes = {
            name: self._seed(path) if path.suffix == ".csv" else self._model(path, texts[path])
            for name, path in paths.items()
        }
        checks: dict[str, Check] = {}
        found = (self._audit(path, text) for path, text in texts.items() if path in audits)
        for each in (*self._tests(), *found):
            if (other := checks.setdefault(each.name, each)) is not each:
                message = f"the test {each.name} is also in {other.path}:{other.line or 1}"
                raise _duplicate(message, each.path, each.line)
        return Project(_in_build_order(nodes), self._sources, tuple(checks.values()))

    def _files(self, pattern: str) -> list[Path]:
        """Return the project's files of this pattern, and then the user's."""
        found = [p for name in _FOLDERS for p in sorted((self._folder / name).rglob(pattern))]
        if self._own is not None and pattern != "*.csv":
            found += sorted(self._own.rglob(pattern))
        return found

    def _is_own(self, path: Path) -> bool:
        return self._own is not None and self._own in path.parents

    def _schema(self, path: Path) -> str:
        return OWN_SCHEMA if self._is_own(path) else path.relative_to(self._folder).parts[0]

    def _is_audit(self, path: Path, text: str) -> bool:
        """Return True for a file of `audits`, and for a user's that begins with `-- audit:`."""
        return text.startswith("-- audit:") or self._schema(path) == "audits"

    def _model(self, path: Path, text: str) -> Node:
        query = self._query(path, text)
        schema_file, entry = self._entries.get(path.stem, (None, TableEntry()))
        return Node(
            name=path.stem,
            schema=self._schema(path),
            kind="view" if query.options.get("materialized") == "view" else "table",
            path=path,
            entry=entry,
            schema_file=schema_file,
            sql=query.sql,
            parents=tuple(dict.fromkeys(query.refs)),
            sources=tuple(dict.fromkeys(query.sources)),
            is_own=self._is_own(path),
        )

    def _seed(self, path: Path) -> Node:
        """Return the seed of a csv file, or of the user's file of the same name."""
        if path.stem not in self._entries:
            raise ModelError(f"the seed {path.stem} is in no schema file", path=path)
        users = (self._seeds or self._folder) / path.name
        schema_file, entry = self._entries[path.stem]
        path, is_own = (users, True) if users.exists() else (path, False)
        return Node(path.stem, "seeds", "seed", path, entry, schema_file, is_own=is_own)

    def _query(self, path: Path, text: str) -> _Query:
        """Evaluate a template. Raises `ModelError`."""
        if text.rstrip().endswith(";"):
            line = text.rstrip().count("\n") + 1
            action = "Remove the semicolon. A file contains one query."
            raise ModelError("the query ends with a semicolon", path=path, line=line, action=action)
        query = _Query("", [], [], {})

        def ref(name: str) -> str:
            if name not in self._tables:
                raise UnknownName("model or seed", name, self._tables)
            query.refs.append(name)
            return self._tables[name]

        def source(schema: str, table: str) -> str:
            name = f"{schema}.{table}"
            if name not in self._sources:
                raise UnknownName("source", name, self._sources)
            query.sources.append(name)
            return name

        def config(**given: str) -> str:
            for name, value in given.items():
                if value not in _OPTIONS.get(name, ()):
                    allowed = ", ".join(_OPTIONS.get(name, _OPTIONS))
                    raise ValueError(f"config() has {name}={value!r}. Allowed: {allowed}")
            query.options.update(given)
            return ""

        # Jinja drops line breaks inside of braces, so they are moved behind them.
        text = _BRACES.sub(lambda b: b[0].replace("\n", " ") + "\n" * b[0].count("\n"), text)
        try:
            sql = _JINJA.from_string(text).render(ref=ref, source=source, config=config)
        except Exception as error:  # a template can raise anything
            frames = reversed(extract_tb(error.__traceback__))
            place = next((each.lineno for each in frames if each.filename == "<template>"), None)
            if isinstance(error, UnknownName):
                message, code = str(error), "reference_unknown"
                raise ModelError(message, code=code, path=path, line=place) from None
            reason = re.sub(r"\S+<locals>\.", "", str(error))
            raise ModelError(
                f"the template cannot be evaluated: {reason}",
                path=path,
                line=error.lineno if isinstance(error, TemplateSyntaxError) else place,
                action="Write plain SQL with {{ ref('model') }}, {{ source('schema', 'table') }}"
                " and {{ config(materialized='view') }}.",
            ) from None
        return replace(query, sql=sql)

    def _audit(self, path: Path, text: str) -> Check:
        """Return the audit of a file. Its sentence is the comment at the beginning."""
        query = self._query(path, text)
        comment = re.match(r"(?:-- audit:.*\n)?((?:--.*\n)*)", text)
        return Check(
            name=path.stem,
            model=(*query.refs, *query.sources, "")[0],
            severity="warn" if query.options.get("severity") == "warn" else "error",
            about=" ".join(comment[1].replace("--", " ").split()) if comment else "",
            sql=query.sql,
            reads=frozenset((*(self._tables[name] for name in query.refs), *query.sources)),
            path=path,
        )

    def _tests(self) -> Iterator[Check]:
        for name, (path, entry) in self._entries.items():
            for column in entry.columns:
                for test in column.data_tests:
                    yield self._test(name, column, test, path)

    def _test(self, model: str, entry: ColumnEntry, test: ColumnTest, path: Path) -> Check:
        table, column = self._tables.get(model, model), quoted(entry.name)
        name, reads, line = f"{table}.{entry.name}", {table}, test.line or entry.line
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
                other = self._other_table(test, path, line)
                reads.add(other)
                about = f"Every {name} is a {test.field} of {other}."
                sql = f"SELECT checked.* FROM {table} AS checked ANTI JOIN {other} AS other"
                sql += f" ON other.{quoted(test.field)} = checked.{column}"
                sql += f" WHERE checked.{column} IS NOT NULL"
        label = test.name or f"{test.kind}_{model.replace('.', '_')}_{entry.name}"
        return Check(label, model, test.severity, about, sql, frozenset(reads), path, line)

    def _other_table(self, test: ColumnTest, path: Path, line: int) -> str:
        """Return the table that `to: ref('x')` or `to: source('x', 'y')` of a test names."""
        # The same number of lines before it as in the file, so that an error names the line.
        text = "\n" * (line - 1) + f"{{{{ {test.to} }}}}"
        table = self._query(path, text).sql.strip()
        if table not in (*self._tables.values(), *self._sources):
            action = "Write to: ref('model')."
            raise ModelError("'to' is not a ref or source", path=path, line=line, action=action)
        return table


def _duplicate(message: str, path: Path, line: int | None = None) -> ModelError:
    return ModelError(message, path=path, line=line, action="Rename one of the two.")


def _in_build_order(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return the nodes, each after its parents. Raises `ModelError` for a circle of refs."""
    try:
        order = [*TopologicalSorter({n: each.parents for n, each in nodes.items()}).static_order()]
    except CycleError as error:
        # The circle begins and ends with the same model. Each model reads the one before.
        ring = error.args[1][:0:-1]
        raise ModelError(
            f"models refer to each other in a circle: {' -> '.join((*ring, ring[0]))}",
            path=nodes[ring[0]].path,
            action="Remove one of the ref() calls between these models.",
        ) from None
    # The user's models are last, because they may name a shipped table without ref().
    order.sort(key=lambda name: nodes[name].is_own and nodes[name].kind != "seed")
    return {name: nodes[name] for name in order}


# -- Errors of SQL ---------------------------------------------------------------------------------

_SQL_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)


@contextmanager
def sql_errors(path: Path, problem: str, line: int | None = None) -> Iterator[None]:
    """Raise DuckDB's error in a statement as `ModelFailed` with the file's path and line.

    The statement is the text of the file, or made from `line` of the file.
    """
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
