"""Load a project folder: its settings, schema files, SQL and seeds.

dbt builds the same tables from the same folder. An entry of a schema file that dbt knows and the
connector does not is an error with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import yaml
from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from connector.errors import ModelError, ReferenceUnknown
from connector.publishing.project import (
    Audit,
    CheckKind,
    GenericTest,
    Model,
    ModelQuery,
    Project,
    Seed,
    Severity,
    SourceTable,
    shipped_folder,
)
from connector.warehouse.schema import Column

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    # The parser in C is ten times as fast, and not in every build of the library.
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# -- YAML ------------------------------------------------------------------------------------------

_LINE = "__line__"
"""Key for the line on which a mapping begins; every mapping of a file has it."""


class _YamlLoader(_SafeLoader):
    """Loader of plain YAML values. Adds the line of each mapping, and refuses duplicate keys."""


def _construct_mapping(loader: _YamlLoader, node: yaml.MappingNode) -> dict[str, Any]:
    """Return a YAML mapping with its line under `__line__`. Raises an error for a duplicate key."""
    found: dict[str, Any] = {_LINE: node.start_mark.line + 1}
    for key_node, value in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str) or key in found:
            message = f"the key {key!r} is duplicate or not text"
            raise yaml.constructor.ConstructorError(None, None, message, key_node.start_mark)
        found[key] = loader.construct_object(value, deep=True)
    return found


_YamlLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


class _FileEntry(BaseModel):
    """Mapping in a schema file. An unknown key is an error, because dbt may give it a meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int | None = Field(None, alias="__line__")
    meta: Any = None

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, entry: Any) -> Any:
        """Raise `ValueError` for a key that is not a field of the entry."""
        known = [each.alias or name for name, each in cls.model_fields.items()]
        for key in entry if isinstance(entry, dict) else ():
            if key not in known:
                allowed = ", ".join(name for name in known if name != _LINE)
                raise ValueError(f"{key!r} is not a key of this entry; use one of: {allowed}")
        return entry


EntryT = TypeVar("EntryT", bound=BaseModel)


def read_yaml(path: Path, model: type[EntryT]) -> EntryT:
    """Read a YAML file and validate it as `model`. Raises `ModelError` with the line."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _YamlLoader)  # noqa: S506 # plain values
        return model.model_validate(found)
    except ValidationError as error:
        raise _to_model_error(path, found, error) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise ModelError(f"is not valid YAML: {error.problem}", path=path, line=line) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelError(f"cannot be read: {type(error).__name__}", path=path) from None


def _to_model_error(path: Path, found: Any, error: ValidationError) -> ModelError:
    """Return a `ModelError` for the first error, with its line in the document `found`."""
    first = error.errors()[0]
    line = 1
    for step in first["loc"]:
        line = found.get(_LINE, line) if isinstance(found, dict) else line
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            break
    line = found.get(_LINE, line) if isinstance(found, dict) else line
    keys = ".".join(str(step) for step in first["loc"])
    given = first["input"]
    shown = "a mapping or list" if isinstance(given, dict | list) else repr(given)
    message = first.get("ctx", {}).get("error") or f"{first['msg']}, not {shown}"
    return ModelError(f"{keys}: {message}" if keys else message, path=path, line=line)


def _single_spaced(text: str) -> str:
    """Return each line of the text with single spaces."""
    return "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))


def _sql_scalar(value: Any) -> Any:
    """Return a YAML boolean or number as SQL text; other values unchanged."""
    # YAML reads true as a boolean; SQL and dbt write it in lower case.
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _without_line_number(value: Any) -> Any:
    """Return a mapping without the key `__line__`; other values unchanged."""
    return {k: v for k, v in value.items() if k != _LINE} if isinstance(value, dict) else value


_OneLine = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
_NAME = r"[a-z][a-z0-9_]{0,62}"
_Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
_Paths = tuple[str, ...]

# -- Entries ---------------------------------------------------------------------------------------


class _Defaults(BaseModel):
    """Default schema and materialization of a folder of models or seeds."""

    schema_name: str | None = Field(None, alias="+schema")
    materialized: Literal["view", "table"] = Field("view", alias="+materialized")


class ProjectSettings(BaseModel):
    """Settings of `dbt_project.yml`: the folders, and the defaults of models and seeds.

    Keys that only dbt needs are ignored.
    """

    name: str
    model_folders: _Paths = Field(alias="model-paths")
    seed_folders: _Paths = Field(alias="seed-paths")
    audit_folders: _Paths = Field(alias="test-paths")
    models: Annotated[dict[str, _Defaults], BeforeValidator(_without_line_number)] = {}
    seeds: Annotated[dict[str, _Defaults], BeforeValidator(_without_line_number)] = {}
    at_end: str | None = Field(None, alias="on-run-end")

    def defaults(self, kind: Literal["models", "seeds"]) -> _Defaults:
        """Return the defaults of all models, or of all seeds."""
        given: dict[str, _Defaults] = getattr(self, kind)
        return given.get(self.name, _Defaults.model_validate({}))


_ARGUMENTS: Mapping[CheckKind, set[str]] = {
    "unique": set(),
    "not_null": set(),
    "accepted_values": {"values"},
    "relationships": {"to", "field"},
}
"""Tests of a column, with the arguments of each."""


class _TestEntry(_FileEntry):
    """Test of a column in a schema file, with the arguments of its kind."""

    kind: Literal["unique", "not_null", "accepted_values", "relationships"]
    name: _OneLine | None = None
    severity: Severity = "error"
    values: tuple[Annotated[str, BeforeValidator(_sql_scalar)], ...] = ()
    quote: bool = True
    to: _OneLine | None = None
    field: _OneLine | None = None

    @model_validator(mode="after")
    def _check_arguments_of_kind(self) -> _TestEntry:
        """Raise `ValueError` if an argument is missing or does not belong to the kind of test."""
        given = self.model_fields_set & {"values", "quote", "to", "field"}
        wanted = _ARGUMENTS[self.kind]
        if given - ({"quote"} if "values" in wanted else set()) != wanted:
            arguments = " and ".join(sorted(wanted)) or "no argument"
            raise ValueError(f"the test {self.kind} takes {arguments}")
        return self


_INNER = ("arguments", "config")


def _flatten_test(test: Any) -> Any:
    """Return a test as one mapping with its kind, wherever dbt allows its arguments."""
    kinds = [test] if isinstance(test, str) else [*_without_line_number(test)]
    given = test.get(kinds[0]) or {} if isinstance(test, dict) and kinds else {}
    parts = [given, *(given.get(key) or {} for key in _INNER)] if isinstance(given, dict) else []
    if len(kinds) != 1 or not parts or not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"{test!r} is not a test; write '- unique' or '- unique: {{...}}'")
    flat = {"kind": kinds[0], _LINE: test[_LINE] if isinstance(test, dict) else None}
    for part in parts:
        flat |= {k: v for k, v in part.items() if k not in (_LINE, *_INNER)}
    return flat


_Tests = list[Annotated[_TestEntry, BeforeValidator(_flatten_test)]]


class _ColumnMeta(BaseModel):
    """`meta` of a column. Keys other than `personal` are ignored."""

    personal: StrictBool | None = None


class _ColumnEntry(_FileEntry):
    """Column in a schema file, with its description and tests."""

    name: _OneLine
    description: _OneLine = ""
    meta: _ColumnMeta = _ColumnMeta()
    data_tests: _Tests = []
    tests: _Tests = []
    """Older name of `data_tests` in dbt."""


class _TableEntry(_FileEntry):
    """Model, seed or source table in a schema file, with its columns."""

    name: _Name
    description: Annotated[str, AfterValidator(_single_spaced)] = ""
    columns: tuple[_ColumnEntry, ...] = ()

    @property
    def column_descriptions(self) -> dict[str, str]:
        """Description of each listed column; it may be empty."""
        return {each.name: each.description for each in self.columns}

    @property
    def personal(self) -> dict[str, bool]:
        """Value of `meta: {personal: ...}` of each column that has one."""
        declared = ((each.name, each.meta.personal) for each in self.columns)
        return {name: personal for name, personal in declared if personal is not None}


class _SeedConfig(_FileEntry):
    """`config` of a seed: the types of its columns."""

    column_types: Annotated[dict[str, str], BeforeValidator(_without_line_number)] = {}


class _SeedEntry(_TableEntry):
    """Seed in a schema file, whose column types are required."""

    config: _SeedConfig


class _SourceEntry(_FileEntry):
    """Source in a schema file: a schema with its tables."""

    name: _OneLine
    schema_name: _OneLine = Field("", alias="schema")
    description: str = ""
    tables: tuple[_TableEntry, ...]


class SchemaFile(_FileEntry):
    """Schema file, in dbt's form: models, seeds and sources with their columns."""

    version: Any = None
    models: tuple[_TableEntry, ...] = ()
    seeds: tuple[_SeedEntry, ...] = ()
    sources: tuple[_SourceEntry, ...] = ()


# -- SQL -------------------------------------------------------------------------------------------
# A model or an audit is a Jinja template with three functions, as in dbt:
#     select id, status from {{ source('landing', 'jobs') }}
#     select job_id from {{ ref('stg_jobs') }}
#     {{ config(materialized='view') }}        {{ config(severity='warn') }} in an audit

_JINJA = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
_BRACES = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "materialized": ("table", "view"),
    "severity": ("error", "warn"),
}
"""Options of `config()`, and the allowed values."""


def render(
    text: str, path: Path, nodes: Mapping[str, str], sources: Mapping[str, str]
) -> ModelQuery:
    """Evaluate the template of a file.

    `nodes` has the table of each model and seed, `sources` the table of each `schema.table` that
    `source()` can name. Raises `ModelError`, and `ReferenceUnknown` for an unknown name.
    """
    refs, read, options = dict[str, str](), dict[str, str](), dict[str, str]()

    def ref(name: str) -> str:
        refs[name] = _resolve_name("model or seed", name, nodes)
        return refs[name]

    def source(schema: str, table: str) -> str:
        name = f"{schema}.{table}"
        read[name] = _resolve_name("source", name, sources)
        return read[name]

    def config(**given: str) -> str:
        for name, value in given.items():
            allowed = _resolve_name("option of config()", name, _OPTIONS)
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}. Allowed: {', '.join(allowed)}")
        options.update(given)
        return ""

    try:
        template = _JINJA.from_string(_BRACES.sub(_on_one_line, text))
        sql = template.render(ref=ref, source=source, config=config)
    except ReferenceUnknown as error:
        place: Any = {"path": path, "line": _template_line(error)}
        raise ReferenceUnknown(error.what, error.received, error.allowed, **place) from None
    except Exception as error:  # a template can raise anything
        reason = str(error).replace(f"{render.__name__}.<locals>.", "")
        raise ModelError(
            f"the template cannot be evaluated: {reason}",
            path=path,
            line=_template_line(error),
            action="Write plain SQL with {{ ref('model') }}, {{ source('schema', 'table') }}"
            " and {{ config(materialized='table' or 'view') }}, in an audit"
            " {{ config(severity='error' or 'warn') }}.",
        ) from None
    return ModelQuery(path, sql, tuple(refs), tuple(read.values()), options)


def _on_one_line(braces: re.Match[str]) -> str:
    """Move line breaks inside the braces behind them, because Jinja would drop them."""
    return braces[0].replace("\n", " ") + "\n" * braces[0].count("\n")


def _template_line(error: Exception) -> int | None:
    """Return the line of the template that caused an error; None if it is unknown."""
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    frames = extract_tb(error.__traceback__)
    return next((each.lineno for each in reversed(frames) if each.filename == "<template>"), None)


ValueT = TypeVar("ValueT")


def _resolve_name(what: str, name: str, known: Mapping[str, ValueT]) -> ValueT:
    """Return the value of a name. Raises `ReferenceUnknown`, which calls the name a `what`."""
    if name not in known:
        raise ReferenceUnknown(what, name, tuple(known))
    return known[name]


_HEADER = re.compile(
    r"-- (?:model: (?P<model>.+)\n-- grain: (?P<grain>.+)|audit: (?P<audit>.+))\n"
    r"(?P<sentence>(?:-- .+\n)+)"
)
"""Opening comment of a model or an audit: its name, the grain of a model, one sentence.

The sentence may have several lines. Notes may follow after an empty comment line.
"""

_FORMS = {
    "model": "'-- model: NAME', '-- grain: one row per ...' and a sentence, each on a line",
    "audit": "'-- audit: NAME' and a sentence",
}


def read_header(text: str, path: Path, word: Literal["model", "audit"]) -> tuple[str, str]:
    """Return grain (empty for an audit) and sentence of the header. Raises `ModelError`."""
    found = _HEADER.match(text)
    if found is None or found[word] != path.stem or not found["sentence"].endswith(".\n"):
        raise ModelError(
            f"the header is incomplete, or does not name {path.stem}",
            path=path,
            line=1,
            action=f"Begin the file with {_FORMS[word]} that ends with a full stop.",
        )
    sentence = found["sentence"].replace("\n-- ", " ")
    return found["grain"] or "", sentence.removeprefix("-- ").strip()


# -- Folder ----------------------------------------------------------------------------------------

CONTENT_VIEWS = "content_views"
"""Model whose rows are the statements that create the views of content types."""


@dataclass(frozen=True, slots=True)
class OwnModels:
    """Folder of the user's models, and the schema of their tables."""

    folder: Path
    schema: str = "own"


def load_project(
    folder: Path | None = None, *, seeds: Path | None = None, own: OwnModels | None = None
) -> Project:
    """Load the project in a folder (None: the shipped one), with the user's models.

    `seeds` is a folder of csv files that replace seeds of the same name. Raises `ModelError`, which
    names the file, and the line if it is known.
    """
    return _ProjectLoader(folder or shipped_folder(), seeds, own).load()


class _SqlFile(NamedTuple):
    """SQL file of a model or an audit. `schema` is the schema of the model's table."""

    path: Path
    schema: str
    text: str
    is_own: bool = False

    @property
    def is_audit(self) -> bool:
        """True for an audit, which has no schema or begins with `-- audit:`."""
        return not self.schema or (self.is_own and self.text.startswith("-- audit:"))


class _ProjectLoader:
    """Reads the schema files of one project when it is created; `load` reads all other files."""

    def __init__(self, folder: Path, users_seeds: Path | None, own: OwnModels | None) -> None:
        self._folder, self._users_seeds, self._own = folder, users_seeds, own
        self._settings = settings = read_yaml(folder / "dbt_project.yml", ProjectSettings)
        self._models: dict[str, tuple[Path, _TableEntry]] = {}
        self._seeds: dict[str, tuple[Path, _SeedEntry]] = {}
        self._sources: dict[str, tuple[Path, _TableEntry]] = {}
        self._source_tables: dict[str, SourceTable] = {}
        folders = (*settings.model_folders, *settings.seed_folders, *settings.audit_folders)
        for suffix in ("yml", "yaml"):
            for path in (*self._find_files(folders, suffix), *self._find_user_files(suffix)):
                self._read_schema_file(path)
        self._tables: dict[str, str] = {}
        """Tables of the models and seeds, by name."""

    def _read_schema_file(self, path: Path) -> None:
        """Add the entries of one schema file. Raises `ModelError`."""
        read = read_yaml(path, SchemaFile)
        for model in read.models:
            _add_entry(self._models, model.name, path, model)
        for seed in read.seeds:
            _add_entry(self._seeds, seed.name, path, seed)
        for source in read.sources:
            for table in source.tables:
                name = f"{source.name}.{table.name}"
                _add_entry(self._sources, name, path, table)
                schema = source.schema_name or source.name
                self._source_tables[name] = SourceTable(
                    f"{schema}.{table.name}", table.column_descriptions
                )

    def load(self) -> Project:
        """Return the project, with all references resolved."""
        seeds = {each.name: each for each in self._read_seeds()}
        files = [*self._read_sql_files()]
        paths = {each.name: each.path for each in seeds.values()}
        self._tables = {each.name: each.table for each in seeds.values()}
        for path, schema, _, _ in (each for each in files if not each.is_audit):
            if path.stem in paths:
                raise ModelError(
                    f"{path.stem} is also {paths[path.stem]}", path=path, code="model_twice"
                )
            paths[path.stem] = path
            self._tables[path.stem] = f"{schema}.{path.stem}"
        models = {each.path.stem: self._read_model(each) for each in files if not each.is_audit}
        _check_entries_have_files("model", self._models, models)
        _check_entries_have_files("seed", self._seeds, seeds)
        makes_views = self._settings.at_end is not None
        project = Project(models, seeds, self._source_tables, makes_views)
        assert project.parents is not None, "these models depend on each other in a circle"
        audits = tuple(self._read_audits(each for each in files if each.is_audit))
        project = replace(project, audits=audits)
        return replace(project, tests=tuple(self._read_tests(project)))

    def _read_sql_files(self) -> Iterator[_SqlFile]:
        """Yield the models and audits of the project, and then the user's."""
        default = self._settings.defaults("models").schema_name
        for folder in self._settings.model_folders:
            for path in self._find_files((folder,), "sql"):
                yield _SqlFile(path, default or folder, _read_query(path))
        for path in self._find_files(self._settings.audit_folders, "sql"):
            yield _SqlFile(path, "", _read_query(path))
        for path in self._find_user_files("sql"):
            assert self._own is not None, "there are own files"
            yield _SqlFile(path, self._own.schema, _read_query(path), is_own=True)

    def _find_files(self, folders: tuple[str, ...], suffix: str) -> Iterator[Path]:
        """Yield the files with this suffix in folders of the project, sorted by path."""
        for folder in dict.fromkeys(folders):
            yield from sorted((self._folder / folder).glob(f"**/*.{suffix}"))

    def _find_user_files(self, suffix: str) -> list[Path]:
        """Return the files with the suffix in the user's folder of models, sorted by path."""
        return sorted(self._own.folder.glob(f"**/*.{suffix}")) if self._own else []

    def _render_query(self, text: str, path: Path) -> ModelQuery:
        """Evaluate the template of a file with the tables of this project."""
        sources = {name: each.table for name, each in self._source_tables.items()}
        return render(text, path, self._tables, sources)

    def _read_model(self, file: _SqlFile) -> Model:
        """Return the model of a file. The user's models need no header. Raises `ModelError`."""
        path, schema, text, is_own = file
        if not re.fullmatch(_NAME, path.stem):
            raise ModelError(
                f"{path.stem!r} is not a valid table name",
                path=path,
                action="Rename the file: a-z, 0-9 and '_', beginning with a letter.",
            )
        grain, sentence = "", ""
        if not is_own or text.startswith("-- model:"):
            grain, sentence = read_header(text, path, "model")
        query = self._render_query(text, path)
        default = "table" if is_own else self._settings.defaults("models").materialized
        declared = self._models.get(path.stem)
        entry = declared[1] if declared else None
        return Model(
            name=path.stem,
            schema=schema,
            kind="view" if query.options.get("materialized", default) == "view" else "table",
            grain=grain,
            sentence=sentence,
            query=query,
            description=entry.description if entry else "",
            column_descriptions=entry.column_descriptions if entry else {},
            declared=(declared[0], declared[1].line or 1) if declared else None,
            is_own=is_own,
            personal=entry.personal if entry else {},
        )

    def _read_seeds(self) -> Iterator[Seed]:
        """Yield each seed of the project, with the user's file if there is one."""
        schema = self._settings.defaults("seeds").schema_name
        for shipped in self._find_files(self._settings.seed_folders, "csv"):
            _, entry = self._seeds[shipped.stem]
            types = entry.config.column_types
            users = self._users_seeds / shipped.name if self._users_seeds else shipped
            is_users = users != shipped and users.exists()
            yield Seed(
                name=shipped.stem,
                schema=schema or shipped.parent.name,
                about=entry.description,
                columns=tuple(
                    Column(n, types[n], text) for n, text in entry.column_descriptions.items()
                ),
                path=users if is_users else shipped,
                is_users=is_users,
            )

    def _read_audits(self, files: Iterable[_SqlFile]) -> Iterator[Audit]:
        """Yield the audits. Raises `ModelError` if two have the same name."""
        seen: dict[str, Path] = {}
        for path, _, text, _ in files:
            _, sentence = read_header(text, path, "audit")
            if path.stem in seen:
                raise ModelError(
                    f"{path.stem} is also {seen[path.stem]}", path=path, code="model_twice"
                )
            seen[path.stem] = path
            query = self._render_query(text, path)
            severity: Severity = "warn" if query.options.get("severity") == "warn" else "error"
            about = (*query.refs, *query.sources, "")[0]
            reads = frozenset((*(self._tables[name] for name in query.refs), *query.sources))
            yield Audit(path.stem, sentence, query, severity, about, reads)

    def _read_tests(self, project: Project) -> Iterator[GenericTest]:
        """Yield the tests of columns in all schema files. Raises `ModelError` for equal names."""
        tested = [
            *((project.models[name].table, name, *each) for name, each in self._models.items()),
            *((project.seeds[name].table, name, *each) for name, each in self._seeds.items()),
            *((t := project.sources[n].table, t, *each) for n, each in self._sources.items()),
        ]
        places = {audit.name: f"{audit.path}:1" for audit in project.audits}
        for table, about, path, entry in tested:
            for column in entry.columns:
                for test in (*column.data_tests, *column.tests):
                    line = test.line or column.line or 1
                    name = test.name or f"{test.kind}_{about.replace('.', '_')}_{column.name}"
                    if name in places:
                        message = f"the test {name} is also in {places[name]}"
                        raise ModelError(message, path=path, line=line, code="model_twice")
                    places[name] = f"{path}:{line}"
                    yield GenericTest(
                        name=name,
                        kind=test.kind,
                        about=about,
                        table=table,
                        column=column.name,
                        severity=test.severity,
                        path=path,
                        line=line,
                        values=test.values,
                        quotes_values=test.quote,
                        referenced_table=self._referenced_table(path, test, line),
                        referenced_column=test.field,
                    )

    def _referenced_table(self, path: Path, test: _TestEntry, line: int) -> str | None:
        """Return the table that `to: ref('x')` or `to: source('x', 'y')` of a test names.

        Returns None for a test without `to`. Raises `ModelError` for other texts.
        """
        if test.to is None:
            return None
        # The same number of lines before it as in the file, so that an error names the file's line.
        query = self._render_query("\n" * (line - 1) + f"{{{{ {test.to} }}}}", path)
        table = query.sql.strip()
        if table not in (*(self._tables[name] for name in query.refs), *query.sources):
            action = "Write to: ref('model')."
            raise ModelError("'to' is not a ref or source", path=path, line=line, action=action)
        return table


def _check_entries_have_files(
    what: str, declared: Mapping[str, tuple[Path, _TableEntry]], found: Collection[str]
) -> None:
    """Raise `ReferenceUnknown` if a schema file describes a model or seed that has no file."""
    for name, (path, entry) in declared.items():
        if name not in found:
            raise ReferenceUnknown(what, name, tuple(found), path=path, line=entry.line)


def _add_entry(into: dict[str, Any], name: str, path: Path, entry: _TableEntry) -> None:
    """Add an entry of a schema file. Raises `ModelError` for a duplicate entry or column."""
    if name in into:
        first, other = into[name]
        message = f"{name} is declared here and in {first}:{other.line}"
        raise ModelError(message, path=path, line=entry.line, code="model_twice")
    if len(entry.column_descriptions) < len(entry.columns):
        message = f"a column of {name} is declared twice"
        raise ModelError(message, path=path, line=entry.line, code="model_twice")
    into[name] = path, entry


def _read_query(path: Path) -> str:
    """Return the text of a SQL file. Raises `ModelError`, also for a semicolon at its end."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot be read: {type(error).__name__}", path=path) from None
    if text.rstrip().endswith(";"):
        line = text.rstrip().count("\n") + 1
        action = "Remove the semicolon. A file contains one query."
        raise ModelError("the query ends with a semicolon", path=path, line=line, action=action)
    return text
