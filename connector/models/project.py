"""A folder of SQL models, seeds and audits in dbt's form, with all references resolved.

dbt builds the same tables from the same folder. Every error names the file, and the line if it is
known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    PrivateAttr,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)

from connector.errors import ModelError, ModelFailed, ReferenceUnknown, UnknownName
from connector.warehouse.file import literal, quoted

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    # The parser in C is ten times as fast, and not in every build of the library.
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Kind = Literal["seed", "view", "table"]
Severity = Literal["error", "warn"]

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

_OneLine = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
_Lines = Annotated[
    str,
    AfterValidator(
        lambda text: "\n".join(" ".join(each.split()) for each in text.strip().split("\n"))
    ),
]


class _Entry(BaseModel):
    """Mapping in a schema file. An unknown key is an error, because dbt may give it a meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int = Field(default=1, alias="__line__")
    meta: Mapping[str, Any] = {}


class ColumnTest(_Entry):
    """Test of a column, with the arguments of its kind."""

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
        if len(kinds) != 1 or not isinstance(given[kinds[0]] or {}, dict):
            raise ValueError(f"{test!r} is not a test; write '- unique' or '- unique: {{...}}'")
        arguments = given[kinds[0]] or {}
        parts = [arguments, *(arguments.get(each) or {} for each in ("arguments", "config"))]
        flat = {key: value for part in parts for key, value in part.items()}
        flat = {key: value for key, value in flat.items() if key not in ("arguments", "config")}
        return {**flat, "kind": kinds[0], _LINE: given.get(_LINE, 0)}

    @model_validator(mode="after")
    def _check_arguments(self) -> ColumnTest:
        wanted = {"accepted_values": {"values"}, "relationships": {"to", "field"}}.get(self.kind)
        if self.model_fields_set & {"values", "to", "field"} != (wanted or set()):
            arguments = " and ".join(sorted(wanted or ["no argument"]))
            raise ValueError(f"the test {self.kind} takes {arguments}")
        return self


class _ColumnMeta(BaseModel):
    personal: StrictBool | None = None


class ColumnEntry(_Entry):
    """Column in a schema file, with its description and tests."""

    name: str
    description: _OneLine = ""
    meta: _ColumnMeta = _ColumnMeta()  # type: ignore[assignment] # only its own key is read
    data_tests: list[ColumnTest] = []
    tests: list[ColumnTest] = []
    """Older name of `data_tests` in dbt."""


class _TableConfig(_Entry):
    column_types: Mapping[str, str | int] = {}


class TableEntry(_Entry):
    """Model, seed or source table in a schema file, with its columns.

    `config` has the types of a seed's columns; its `meta: {key: [...]}` are the columns that no two
    rows may have in common.
    """

    name: str = Field(default="", pattern=r"^[a-z][a-z0-9_]{0,62}$")
    description: _Lines = ""
    columns: list[ColumnEntry] = []
    config: _TableConfig = _TableConfig()
    _path: Path = PrivateAttr(default=Path())

    @field_validator("columns")
    @classmethod
    def _check_unique(cls, columns: list[ColumnEntry]) -> list[ColumnEntry]:
        if len({each.name for each in columns}) < len(columns):
            raise ValueError("a column is declared twice")
        return columns

    @property
    def path(self) -> Path:
        """The schema file."""
        return self._path

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


def _read_schema_file(path: Path) -> _SchemaFile:
    """Read and validate a schema file. Raises `ModelError` with the line."""
    found: Any = None
    try:
        found = yaml.load(_read_text(path), _YamlLoader)  # noqa: S506 # the loader makes plain values
        return _SchemaFile.model_validate(found)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ModelError(f"is not valid YAML: {error.problem}", path=path, line=line) from None
    except yaml.YAMLError:
        raise ModelError("is not valid YAML", path=path) from None
    except ValidationError as error:
        first, line, place = error.errors()[0], 1, found
        for step in (*first["loc"], ""):
            line = place.get(_LINE, line) if isinstance(place, dict) else line
            try:
                place = place[step]
            except (KeyError, IndexError, TypeError):
                break
        given = "a mapping or list" if isinstance(first["input"], dict | list) else first["input"]
        message = str(first.get("ctx", {}).get("error") or f"{first['msg']}, not {given!r}")
        if first["type"] == "extra_forbidden":
            message = "is not a key of this entry"
        keys = ".".join(str(step) for step in first["loc"])
        raise ModelError(f"{keys}: {message}" if keys else message, path=path, line=line) from None


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
    refs: tuple[str, ...]
    sources: tuple[str, ...]
    options: Mapping[str, str]


def _render(text: str, path: Path, tables: Mapping[str, str], sources: Collection[str]) -> _Query:
    """Evaluate a template. Raises `ModelError`, and `ReferenceUnknown` for an unknown name."""
    refs, read, options = dict[str, str](), dict[str, str](), dict[str, str]()

    def ref(name: str) -> str:
        if name not in tables:
            raise ReferenceUnknown("model or seed", name, tuple(tables))
        refs[name] = tables[name]
        return tables[name]

    def source(schema: str, table: str) -> str:
        name = f"{schema}.{table}"
        if name not in sources:
            raise ReferenceUnknown("source", name, tuple(sources))
        read[name] = name
        return name

    def config(**given: str) -> str:
        for name, value in given.items():
            if value not in _OPTIONS.get(name, ()):
                allowed = ", ".join(_OPTIONS.get(name, _OPTIONS))
                raise ValueError(f"config() has {name}={value!r}. Allowed: {allowed}")
        options.update(given)
        return ""

    # Jinja drops line breaks inside of braces, so they are moved behind them.
    text = _BRACES.sub(lambda b: b[0].replace("\n", " ") + "\n" * b[0].count("\n"), text)
    try:
        sql = _JINJA.from_string(text).render(ref=ref, source=source, config=config)
    except Exception as error:  # a template can raise anything
        frames = reversed(extract_tb(error.__traceback__))
        line = next((each.lineno for each in frames if each.filename == "<template>"), None)
        if isinstance(error, ReferenceUnknown):
            unknown = error.what, error.received, error.allowed
            raise ReferenceUnknown(*unknown, path=path, line=line) from None
        reason = str(error).replace(f"{_render.__name__}.<locals>.", "")
        raise ModelError(
            f"the template cannot be evaluated: {reason}",
            path=path,
            line=error.lineno if isinstance(error, TemplateSyntaxError) else line,
            action="Write plain SQL with {{ ref('model') }}, {{ source('schema', 'table') }}"
            " and {{ config(materialized='table' or 'view') }}, in an audit"
            " {{ config(severity='error' or 'warn') }}.",
        ) from None
    return _Query(sql, tuple(refs), tuple(read), options)


# -- Project ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Model or seed.

    Attributes:
        path: SQL file of a model, csv file of a seed.
        entry: Entry in a schema file, empty if it has none.
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

    @property
    def grain(self) -> str:
        """Meaning of one row, from the description."""
        found = re.search(r"[Oo]ne row[^.]*", self.about)
        return found[0].lower().replace("\n", " ") if found else ""


@dataclass(frozen=True, slots=True)
class Check:
    """Test of a column, or audit: a query for wrong rows.

    Attributes:
        model: Checked model, seed or source table. For an audit, the first table that it reads.
        about: The requirement, as a sentence.
        sql: Query of an audit. For a test, the part of the query from `FROM`.
        reads: Tables that the query reads, as `schema.table`.
        columns: Columns that a test names, each with its table.
    """

    name: str
    kind: str
    model: str
    column: str | None
    severity: Severity
    about: str
    sql: str
    reads: frozenset[str]
    path: Path
    line: int | None = None
    columns: tuple[tuple[str, str], ...] = ()


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
            for is_wanted, steps in (
                (word.startswith("+"), parents),
                (word.endswith("+"), children),
            ):
                waiting, seen = [*names] if is_wanted else [], {*names}
                while waiting:
                    new = {*steps[waiting.pop()]} - seen
                    seen |= new
                    waiting += new
                chosen |= seen
        return tuple(name for name in self.nodes if name in chosen)

    def checks_of(self, names: Collection[str]) -> tuple[Check, ...]:
        """Return the checks that read one of these models and seeds.

        A check that reads source tables only is included if one of the models reads such a table.
        """
        made = {node.table for node in self.nodes.values()}
        tables = {self.nodes[name].table for name in names}
        sources = {each for name in names for each in self.nodes[name].sources}
        return tuple(
            each
            for each in self.checks
            if each.reads & tables or (not each.reads & made and each.reads & sources)
        )


def load_project(
    folder: Path = SHIPPED_FOLDER,
    *,
    seeds: Path | None = None,
    own: Path | None = None,
    own_schema: str = "own",
) -> Project:
    """Load the project in a folder, with the user's seeds and models.

    Args:
        folder: Project with the folders staging, marts, seeds and audits.
        seeds: Folder of csv files that replace seeds of the same name.
        own: Folder of the user's models, audits and schema files.
        own_schema: Schema of the user's models.

    Raises:
        ModelError: A file is invalid. Names the file, and the line if it is known.
    """
    return _Loader(folder, seeds, own, own_schema).load()


class _Loader:
    """Reads the files of a project: first the schema files, because SQL names their sources."""

    def __init__(self, folder: Path, seeds: Path | None, own: Path | None, own_schema: str) -> None:
        self._folder, self._user_seeds = folder, seeds
        self._own, self._own_schema = own, own_schema
        self._entries: dict[str, TableEntry] = {}
        self._tables: dict[str, str] = {}
        """Table of each model and seed."""
        self._sources: dict[str, TableEntry] = {}
        for path in (*self._files("yml"), *self._files("yaml")):
            document = _read_schema_file(path)
            for each in (*document.models, *document.seeds):
                self._add_entry(each.name, path, each)
            for source in document.sources:
                for each in source.tables:
                    self._add_entry(f"{source.name}.{each.name}", path, each)
                    self._sources[f"{source.name}.{each.name}"] = each

    def _add_entry(self, name: str, path: Path, entry: TableEntry) -> None:
        if name in self._entries:
            first = self._entries[name]
            message = f"{name} is declared here and in {first.path}:{first.line}"
            raise ModelError(message, path=path, line=entry.line, code="model_twice")
        entry._path = path  # the file is not part of its content
        self._entries[name] = entry

    def load(self) -> Project:
        """Return the project, with all references resolved."""
        texts = {path: _read_text(path) for path in self._files("sql")}
        audits = [path for path, text in texts.items() if self._is_audit(path, text)]
        paths: dict[str, Path] = {}
        for path in (*self._files("csv"), *(each for each in texts if each not in audits)):
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", path.stem):
                action = "Rename the file: a-z, 0-9 and '_', beginning with a letter."
                message = f"{path.stem!r} is not a valid table name"
                raise ModelError(message, path=path, action=action)
            if path.stem in paths:
                message = f"{path.stem} is also {paths[path.stem]}"
                raise ModelError(message, path=path, code="model_twice")
            paths[path.stem] = path
            self._tables[path.stem] = f"{self._schema(path)}.{path.stem}"
        for name, entry in self._entries.items():
            if name not in paths and name not in self._sources:
                what, known = "model or seed", tuple(paths)
                raise ReferenceUnknown(what, name, known, path=entry.path, line=entry.line)
        nodes = {
            name: self._seed(path) if path.suffix == ".csv" else self._model(path, texts[path])
            for name, path in paths.items()
        }
        checks: dict[str, Check] = {}
        for each in (*self._tests(), *(self._audit(path, texts[path]) for path in audits)):
            if each.name in checks:
                first = checks[each.name]
                message = f"the test {each.name} is also in {first.path}:{first.line or 1}"
                raise ModelError(message, path=each.path, line=each.line, code="model_twice")
            checks[each.name] = each
        return Project(_in_build_order(nodes), self._sources, tuple(checks.values()))

    def _files(self, suffix: str) -> list[Path]:
        """Return the project's files with this suffix, and then the user's."""
        found = [p for name in _FOLDERS for p in sorted((self._folder / name).rglob(f"*.{suffix}"))]
        if self._own is not None and suffix != "csv":
            found += sorted(self._own.rglob(f"*.{suffix}"))
        return found

    def _is_own(self, path: Path) -> bool:
        return self._own is not None and self._own in path.parents

    def _schema(self, path: Path) -> str:
        is_own = self._is_own(path)
        return self._own_schema if is_own else path.relative_to(self._folder).parts[0]

    def _is_audit(self, path: Path, text: str) -> bool:
        """Return True for a file of `audits`, and for a user's that begins with `-- audit:`."""
        if self._is_own(path):
            return text.startswith("-- audit:")
        return self._schema(path) == "audits"

    def _model(self, path: Path, text: str) -> Node:
        query = self._query(path, text)
        return Node(
            name=path.stem,
            schema=self._schema(path),
            kind="view" if query.options.get("materialized") == "view" else "table",
            path=path,
            entry=self._entries.get(path.stem, TableEntry()),
            sql=query.sql,
            parents=query.refs,
            sources=query.sources,
            is_own=self._is_own(path),
        )

    def _seed(self, path: Path) -> Node:
        """Return the seed of a csv file, or of the user's file of the same name."""
        entry = self._entries.get(path.stem)
        if entry is None:
            raise ModelError(f"the seed {path.stem} is in no schema file", path=path)
        users = (self._user_seeds or self._folder) / path.name
        if is_own := users.exists():
            path = users
        return Node(path.stem, "seeds", "seed", path, entry, is_own=is_own)

    def _query(self, path: Path, text: str) -> _Query:
        if text.rstrip().endswith(";"):
            line = text.rstrip().count("\n") + 1
            action = "Remove the semicolon. A file contains one query."
            raise ModelError("the query ends with a semicolon", path=path, line=line, action=action)
        return _render(text, path, self._tables, self._sources)

    def _audit(self, path: Path, text: str) -> Check:
        """Return the audit of a file. Its sentence is the comment at the beginning."""
        query = self._query(path, text)
        comment = re.match(r"(?:--.*\n)*", text)
        words = comment[0].replace("--", " ").split() if comment else []
        start = 2 if words[:1] == ["audit:"] else 0
        return Check(
            name=path.stem,
            kind="audit",
            model=(*query.refs, *query.sources, "")[0],
            column=None,
            severity="warn" if query.options.get("severity") == "warn" else "error",
            about=" ".join(words[start:]),
            sql=query.sql,
            reads=frozenset((*(self._tables[name] for name in query.refs), *query.sources)),
            path=path,
        )

    def _tests(self) -> Iterator[Check]:
        """Yield the tests of all columns."""
        for name, entry in self._entries.items():
            for column in entry.columns:
                for test in (*column.data_tests, *column.tests):
                    yield self._test(name, column, test, entry.path)

    def _test(self, model: str, entry: ColumnEntry, test: ColumnTest, path: Path) -> Check:
        table, column = self._tables.get(model, model), f"checked.{quoted(entry.name)}"
        name, line = f"{table}.{entry.name}", test.line or entry.line
        columns = [(table, entry.name)]
        if test.kind == "unique":
            about = f"No two rows have the same {name}."
            where = f"{column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1"
        elif test.kind == "not_null":
            about = f"Every row has a value of {name}."
            where = f"{column} IS NULL"
        elif test.kind == "accepted_values":
            texts = [str(v).lower() if isinstance(v, bool) else str(v) for v in test.values]
            about = f"{name} is one of: {', '.join(texts)}."
            where = f"{column} NOT IN ({', '.join(map(literal, texts) if test.quote else texts)})"
        else:
            other = self._other_table(test, path, line)
            about = f"Every {name} is a {test.field} of {other}."
            where = f"{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {other} AS other"
            where += f" WHERE other.{quoted(test.field)} = {column})"
            columns.append((other, test.field))
        return Check(
            name=test.name or f"{test.kind}_{model.replace('.', '_')}_{entry.name}",
            kind=test.kind,
            model=model,
            column=entry.name,
            severity=test.severity,
            about=about,
            sql=f"FROM {table} AS checked WHERE {where}",
            reads=frozenset(table for table, _ in columns),
            path=path,
            line=line,
            columns=tuple(columns),
        )

    def _other_table(self, test: ColumnTest, path: Path, line: int) -> str:
        """Return the table that `to: ref('x')` or `to: source('x', 'y')` of a test names."""
        # The same number of lines before it as in the file, so that an error names the line.
        text = "\n" * (line - 1) + f"{{{{ {test.to} }}}}"
        query = _render(text, path, self._tables, self._sources)
        table = query.sql.strip()
        if table not in (*(self._tables[name] for name in query.refs), *query.sources):
            action = "Write to: ref('model')."
            raise ModelError("'to' is not a ref or source", path=path, line=line, action=action)
        return table


def _in_build_order(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return the nodes, each after its parents. Raises `ModelError` for a circle of refs."""
    try:
        order = [*TopologicalSorter({n: each.parents for n, each in nodes.items()}).static_order()]
    except CycleError as error:
        # The circle begins and ends with the same model. Each model reads the one before.
        ring = error.args[1][:0:-1]
        raise ModelError(
            f"models refer to each other in a circle: {' -> '.join((*ring, ring[0]))}",
            code="models_circular",
            path=nodes[ring[0]].path,
        ) from None
    # The user's models are last, because they may name a shipped table without ref().
    order.sort(key=lambda name: nodes[name].is_own and nodes[name].kind != "seed")
    return {name: nodes[name] for name in order}


# -- Errors of SQL ---------------------------------------------------------------------------------

_SQL_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_MISSING = re.compile(r"(?:Table|View) with name \"?([\w.]+)\"? does not exist", re.IGNORECASE)
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)


@contextmanager
def sql_errors(path: Path, problem: str) -> Iterator[None]:
    """Raise DuckDB's error in a statement as `ModelFailed` with the file's path and line."""
    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        text = str(error)
        message = " ".join(_SQL_LINE.split(text)[0].split())
        if not isinstance(error, _ABOUT_THE_TEXT):
            # Errors of the data quote values, which may be personal.
            message = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", message)
        line, missing = _SQL_LINE.search(text), _MISSING.search(text)
        action = (
            f"{missing[1]} does not exist. In SQL, name tables with ref()." if missing else None
        )
        raise ModelFailed(
            f"{problem}: {message}", path=path, line=int(line[1]) if line else None, action=action
        ) from None
