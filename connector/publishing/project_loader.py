"""Reads a project folder: its settings, schema files, SQL and seeds.

What dbt would do and this does not is refused where it stands, so that both make the same of the
same folder. What the files may say is what the classes below declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from connector.errors import ModelInvalid, ModelTwice, ReferenceUnknown
from connector.publishing.project import (
    Audit,
    Call,
    CheckKind,
    ColumnType,
    GenericTest,
    Model,
    Project,
    Seed,
    Severity,
    SourceTable,
    Template,
    read_template,
)

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    # The parser in C is ten times as fast, and not in every build of the library.
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# -- YAML ------------------------------------------------------------------------------------------

_LINE = "__line__"
"""The key under which every mapping of a file has the line on which it begins."""


class _Loader(_SafeLoader):
    """Loader of plain YAML values, with the line of each mapping and no key twice."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {_LINE: node.start_mark.line + 1}
    for key_node, value in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str) or key in found:
            told = f"the key {key!r} is duplicate or not text"
            raise yaml.constructor.ConstructorError(None, None, told, key_node.start_mark)
        found[key] = loader.construct_object(value, deep=True)
    return found


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


class _FileEntry(BaseModel):
    """Mapping of a file; a key that is not known is refused, with those that are.

    One that is passed over would make dbt build something else.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int = Field(alias="__line__")
    meta: Any = None

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, entry: Any) -> Any:
        known = [each.alias or name for name, each in cls.model_fields.items()]
        for key in entry if isinstance(entry, dict) else ():
            if key not in known:
                allowed = ", ".join(name for name in known if name != _LINE)
                raise ValueError(f"{key!r} is not a key of this entry; use one of: {allowed}")
        return entry


EntryT = TypeVar("EntryT", bound=_FileEntry)


def read_yaml(path: Path, form: type[EntryT]) -> EntryT:
    """The one mapping of a YAML file. Raises `ModelInvalid` with the line."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 # plain values
        return form.model_validate(found)
    except ValidationError as error:
        raise _invalid(path, found, error) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise ModelInvalid(f"is not valid YAML: {error.problem}", path=path, line=line) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelInvalid(f"cannot be read: {type(error).__name__}", path=path) from None


def _invalid(path: Path, found: Any, error: ValidationError) -> ModelInvalid:
    """The first error, with the line of the innermost mapping that it is in."""
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
    told = first.get("ctx", {}).get("error") or f"{first['msg']}, not {_shown(first['input'])}"
    return ModelInvalid(f"{keys}: {told}" if keys else told, path=path, line=line)


def _shown(value: Any) -> str:
    return "a mapping or list" if isinstance(value, dict | list) else repr(value)


def _lines(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))


def _plain(value: Any) -> Any:
    # YAML reads true as a boolean; SQL and dbt write it in small letters.
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _without_line_numbers(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != _LINE} if isinstance(value, dict) else value


_OneLine = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
_NAME = r"[a-z][a-z0-9_]{0,62}"
_Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
_Paths = tuple[str, ...]

# -- What files may say ----------------------------------------------------------------------------


class _SeedSettings(_FileEntry):
    schema_name: str | None = Field(None, alias="+schema")


class _ModelSettings(_SeedSettings):
    materialized: Literal["view", "table"] = Field("view", alias="+materialized")


class ProjectSettings(_FileEntry):
    """Settings of `dbt_project.yml`: where things are, and what holds for all of them."""

    name: str
    model_folders: _Paths = Field(alias="model-paths")
    seed_folders: _Paths = Field(alias="seed-paths")
    audit_folders: _Paths = Field(alias="test-paths")
    models: Annotated[dict[str, _ModelSettings], BeforeValidator(_without_line_numbers)] = {}
    seeds: Annotated[dict[str, _SeedSettings], BeforeValidator(_without_line_numbers)] = {}
    at_end: Literal["{{ make_content_views() }}"] | None = Field(None, alias="on-run-end")
    # These are dbt's alone, and change nothing that is built.
    version: Any = None
    config_version: Any = Field(None, alias="config-version")
    profile: Any = None
    flags: Any = None
    macro_folders: Any = Field(None, alias="macro-paths")

    @model_validator(mode="after")
    def _configures_itself(self) -> ProjectSettings:
        for name in (*self.models, *self.seeds):
            if name != self.name:
                raise ValueError(f"{name!r} is configured, but the project is {self.name!r}")
        return self

    @property
    def for_models(self) -> _ModelSettings:
        """Configuration for all models."""
        return self.models.get(self.name) or _ModelSettings.model_validate({_LINE: 1})

    @property
    def for_seeds(self) -> _SeedSettings:
        """Configuration for all seeds."""
        return self.seeds.get(self.name) or _SeedSettings.model_validate({_LINE: 1})


_ARGUMENTS: Mapping[CheckKind, set[str]] = {
    "unique": set(),
    "not_null": set(),
    "accepted_values": {"values"},
    "relationships": {"to", "field"},
}
"""The tests that a schema file may ask of a column, and the arguments of each."""


class _TestEntry(_FileEntry):
    kind: Literal["unique", "not_null", "accepted_values", "relationships"]
    name: _OneLine | None = None
    severity: Severity = "error"
    values: tuple[Annotated[str, BeforeValidator(_plain)], ...] = ()
    quote: bool = True
    to: _OneLine | None = None
    field: _OneLine | None = None

    @model_validator(mode="after")
    def _check_arguments_of_kind(self) -> _TestEntry:
        given = self.model_fields_set & {"values", "quote", "to", "field"}
        wanted = _ARGUMENTS[self.kind]
        if given - ({"quote"} if "values" in wanted else set()) != wanted:
            told = " and ".join(sorted(wanted)) or "no argument"
            raise ValueError(f"the test {self.kind} takes {told}")
        return self


_INNER = ("arguments", "config")


def _flat(test: Any, line: int) -> Any:
    """Return a test's configuration as one mapping, wherever dbt allows it."""
    if isinstance(test, str):
        return {_LINE: line, "kind": test}
    kinds = [*_without_line_numbers(test)] if isinstance(test, dict) else []
    if len(kinds) != 1:
        raise ValueError(f"{test!r} is not a test; write '- unique' or '- unique: {{...}}'")
    flat = {_LINE: test[_LINE], "kind": kinds[0]}
    said = test[kinds[0]] or {}
    inner = [said.get(key) or {} for key in _INNER] if isinstance(said, dict) else []
    for part in (said, *inner):
        if not isinstance(part, dict):
            raise ValueError(
                f"the arguments of the test {kinds[0]} must be a mapping, not {part!r}"
            )
        flat |= {k: v for k, v in part.items() if k not in (_LINE, *_INNER)}
    return flat


class _ColumnEntry(_FileEntry):
    name: _OneLine
    description: _OneLine = ""
    data_tests: tuple[_TestEntry, ...] = ()

    @model_validator(mode="after")
    def _check_personal(self) -> _ColumnEntry:
        said = self.meta.get("personal", False) if isinstance(self.meta, dict) else False
        if not isinstance(said, bool):
            raise ValueError(f"meta: personal must be true or false, and not {said!r}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _flatten_tests(cls, entry: Any) -> Any:
        if not isinstance(entry, dict):
            return entry
        # The newer and the older word of dbt's for the same.
        lists = [entry.get("data_tests") or [], entry.get("tests") or []]
        if not all(isinstance(each, list) for each in lists):
            raise ValueError("tests must be a list: write 'data_tests: [unique, not_null]'")
        tests = [*lists[0], *lists[1]]
        others = {key: value for key, value in entry.items() if key != "tests"}
        return {**others, "data_tests": [_flat(each, entry[_LINE]) for each in tests]}


class _TableEntry(_FileEntry):
    name: _Name
    description: Annotated[str, AfterValidator(_lines)] = ""
    columns: tuple[_ColumnEntry, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The text of each column that is listed; some may be empty."""
        return {each.name: each.description for each in self.columns}

    @property
    def personal(self) -> dict[str, bool]:
        """The columns of which `meta` says whether they are personal."""
        said = {each.name: each.meta for each in self.columns if isinstance(each.meta, dict)}
        return {name: meta["personal"] for name, meta in said.items() if "personal" in meta}


class _SeedConfig(_FileEntry):
    column_types: Annotated[dict[str, str], BeforeValidator(_without_line_numbers)] = {}


class _SeedEntry(_TableEntry):
    config: _SeedConfig

    @model_validator(mode="after")
    def _check_column_types(self) -> _SeedEntry:
        types, columns = self.config.column_types, self.texts
        if untyped := [name for name in columns if name not in types]:
            raise ValueError(f"no column_types for {', '.join(untyped)} of the seed {self.name}")
        if unlisted := [name for name in types if name not in columns]:
            raise ValueError(f"{', '.join(unlisted)} has a type but is not listed under columns")
        return self


class _SourceEntry(_FileEntry):
    name: _OneLine
    schema_name: _OneLine = Field("", alias="schema")
    description: str = ""
    tables: tuple[_TableEntry, ...]


class SchemaFile(_FileEntry):
    """Schema file: what stands beside models and seeds, in dbt's form."""

    version: Any = None
    models: tuple[_TableEntry, ...] = ()
    seeds: tuple[_SeedEntry, ...] = ()
    sources: tuple[_SourceEntry, ...] = ()


# -- Header ----------------------------------------------------------------------------------------
# The comment that opens a model or an audit: its name, its grain, one sentence.
#
#     -- model: fct_placements
#     -- grain: one row per placement (a contract or permanent booking that is not cancelled)
#     -- Every placement with its fee, from the first source of it that is known.
#
# An audit has no grain. The sentence may run over several lines; notes may follow after an empty
# comment line, for readers of the file alone.

_FORMS = {
    "model": "'-- model: NAME', '-- grain: one row per ...' and a sentence, each on a line",
    "audit": "'-- audit: NAME' and a sentence",
}


def read_header(text: str, path: Path, word: Literal["model", "audit"]) -> tuple[str, str, str]:
    """The name, grain and sentence of the opening comment.

    Raises `ModelInvalid` with the line that is not as it must be.
    """
    comment = takewhile(lambda line: line.startswith("--"), text.split("\n"))
    lines = [line[2:].strip() for line in comment]
    labels = ("model", "grain") if word == "model" else ("audit",)
    values = []
    for number, label in enumerate(labels):
        found, _, value = lines[number].partition(":") if number < len(lines) else ("", "", "")
        if found != label or not value.strip():
            raise _wrong(path, number + 1, f"this line must be '-- {label}: ...'", word)
        values.append(value.strip())
    if values[0] != path.stem or not re.fullmatch(_NAME, values[0]):
        told = f"the name {values[0]!r} in the header is not the file's name"
        raise _wrong(path, 1, told, word)
    sentence = " ".join(takewhile(bool, lines[len(labels) :]))
    if not sentence.endswith("."):
        told = "the header needs a sentence that describes the rows and ends with a full stop"
        raise _wrong(path, len(labels) + 1, told, word)
    return values[0], values[1] if word == "model" else "", sentence


def _wrong(path: Path, line: int, problem: str, word: str) -> ModelInvalid:
    action = f"Begin the file with {_FORMS[word]}."
    return ModelInvalid(problem, path=path, line=line, action=action)


# -- Folder ----------------------------------------------------------------------------------------

FOLDER_NAME = "dbt_like_sql"
CONTENT_VIEWS = "content_views"
"""The model whose rows are the statements of the content types' views."""

CONTENT_VIEW = "marts.content_"
"""How the names of these views begin."""


def shipped_folder() -> Path:
    """The project folder that comes with the connector, beside its package."""
    return Path(str(files("connector"))).parent / FOLDER_NAME


def project_files(folder: Path) -> list[Path]:
    """Return the files below a folder of models or seeds that can change what is built."""
    return sorted(
        path for path in folder.glob("**/*") if path.suffix in (".sql", ".yml", ".yaml", ".csv")
    )


@dataclass(frozen=True, slots=True)
class OwnModels:
    """The user's folder of models, and the schema that they are built in."""

    folder: Path
    schema: str = "own"


def load_project(
    folder: Path | None = None, *, seeds: Path | None = None, own: OwnModels | None = None
) -> Project:
    """Read the project folder (None: the shipped one), and the user's models after it.

    A csv file in `seeds`, the user's folder, wins over the project's own of the same name. Raises a
    `ModelError` that names the file, and the line where there is one.
    """
    return _ProjectReader(folder or shipped_folder(), seeds, own).project()


class _ProjectReader:
    """Reads one folder, once."""

    def __init__(self, folder: Path, users_seeds: Path | None, own: OwnModels | None) -> None:
        self._folder, self._users_seeds, self._own = folder, users_seeds, own
        self._settings = settings = read_yaml(folder / "dbt_project.yml", ProjectSettings)
        self._models: dict[str, tuple[Path, _TableEntry]] = {}
        self._seeds: dict[str, tuple[Path, _SeedEntry]] = {}
        self._sources: dict[str, tuple[Path, _TableEntry]] = {}
        self._source_tables: dict[str, SourceTable] = {}
        folders = (*settings.model_folders, *settings.seed_folders, *settings.audit_folders)
        for path in (*self._files(folders, "yml"), *self._files(folders, "yaml")):
            self._read(path)
        for path in (*self._own_files("yml"), *self._own_files("yaml")):
            self._read(path)

    def _read(self, path: Path) -> None:
        """Read one schema file. Raises `ModelInvalid` or `ModelTwice`."""
        read = read_yaml(path, SchemaFile)
        for model in read.models:
            _add_once(self._models, model.name, path, model)
        for seed in read.seeds:
            _add_once(self._seeds, seed.name, path, seed)
        for source in read.sources:
            for table in source.tables:
                name = f"{source.name}.{table.name}"
                _add_once(self._sources, name, path, table)
                schema = source.schema_name or source.name
                self._source_tables[name] = SourceTable(f"{schema}.{table.name}", table.texts)

    def project(self) -> Project:
        """The whole of it, with every reference looked up."""
        seeds = {each.name: each for each in self._read_seeds()}
        models: dict[str, Model] = {}
        for model in (*self._read_models(), *self._read_own_models()):
            other = models.get(model.name) or seeds.get(model.name)
            if other is not None:
                raise ModelTwice(f"{model.name} is also {other.path}", path=model.path)
            models[model.name] = model
        for what, declared, there in (
            ("model", self._models, models),
            ("seed", self._seeds, seeds),
        ):
            for name, (path, entry) in declared.items():
                if name not in there:
                    raise ReferenceUnknown(what, name, tuple(there), path=path, line=entry.line)
        makes_views = self._settings.at_end is not None
        project = Project(models, seeds, self._source_tables, makes_views)
        for each in models.values():
            _check_calls(project, each.template.path, each.template.calls)
        assert project.parents is not None, "these models depend on each other in a circle"
        project = replace(project, audits=tuple(self._read_audits(project)))
        return replace(project, tests=tuple(self._tests(project)))

    def _files(self, folders: tuple[str, ...], suffix: str) -> Iterator[Path]:
        for folder in dict.fromkeys(folders):
            yield from sorted((self._folder / folder).glob(f"**/*.{suffix}"))

    def _own_files(self, suffix: str) -> list[Path]:
        return sorted(self._own.folder.glob(f"**/*.{suffix}")) if self._own else []

    def _own_sql(self, word: Literal["model", "audit"]) -> Iterator[Template]:
        """The user's models, or the user's audits, whose header begins with that word."""
        for path in self._own_files("sql"):
            template = _template(path)
            if template.text.startswith("-- audit:") == (word == "audit"):
                yield template

    def _read_own_models(self) -> Iterator[Model]:
        """Read the user's models. They need no header: the name is the file's."""
        for template in self._own_sql("model"):
            name, grain, sentence = template.path.stem, "", ""
            if template.text.startswith("-- model:"):
                _, grain, sentence = read_header(template.text, template.path, "model")
            elif not re.fullmatch(_NAME, name):
                raise ModelInvalid(
                    f"{name!r} is not a valid table name",
                    path=template.path,
                    action="Rename the file: a-z, 0-9 and '_', beginning with a letter.",
                )
            assert self._own is not None, "there are own files"
            yield self._model(template, name, grain, sentence, self._own.schema, is_own=True)

    def _model(
        self,
        template: Template,
        name: str,
        grain: str,
        sentence: str,
        schema: str,
        *,
        is_own: bool = False,
    ) -> Model:
        declared = self._models.get(name)
        default = "table" if is_own else self._settings.for_models.materialized
        entry = declared[1] if declared else None
        return Model(
            name=name,
            schema=schema,
            kind="view" if template.option("materialized", default) == "view" else "table",
            grain=grain,
            sentence=sentence,
            template=template,
            description=entry.description if entry else "",
            texts=entry.texts if entry else {},
            declared=(declared[0], declared[1].line) if declared else None,
            is_own=is_own,
            personal=entry.personal if entry else {},
        )

    def _read_models(self) -> Iterator[Model]:
        defaults = self._settings.for_models
        for folder in self._settings.model_folders:
            for path in self._files((folder,), "sql"):
                template = _template(path)
                name, grain, sentence = read_header(template.text, path, "model")
                schema = defaults.schema_name or folder
                model = self._model(template, name, grain, sentence, schema)
                if self._settings.at_end and model.table.startswith(CONTENT_VIEW):
                    raise ModelInvalid(
                        f"the prefix of {model.table} is reserved for content types",
                        path=path,
                        line=1,
                        action=f"Choose a name that does not begin with {CONTENT_VIEW}.",
                    )
                yield model

    def _read_seeds(self) -> Iterator[Seed]:
        for shipped in self._files(self._settings.seed_folders, "csv"):
            if shipped.stem not in self._seeds:
                raise ModelInvalid(
                    f"no column_types for {shipped.stem}",
                    path=shipped,
                    action="Declare the seed in seeds.yml: each column with its description, and "
                    "its type under config: column_types.",
                )
            _, entry = self._seeds[shipped.stem]
            types = entry.config.column_types
            users = self._users_seeds / shipped.name if self._users_seeds else shipped
            is_users = users != shipped and users.exists()
            yield Seed(
                name=shipped.stem,
                schema=self._settings.for_seeds.schema_name or shipped.parent.name,
                about=entry.description,
                columns=tuple(ColumnType(n, types[n], text) for n, text in entry.texts.items()),
                path=users if is_users else shipped,
                is_users=is_users,
            )

    def _read_audits(self, project: Project) -> Iterator[Audit]:
        seen: dict[str, Path] = {}
        shipped = self._files(self._settings.audit_folders, "sql")
        for template in (*map(_template, shipped), *self._own_sql("audit")):
            path = template.path
            name, _, sentence = read_header(template.text, path, "audit")
            if name in seen:
                raise ModelTwice(f"{name} is also {seen[name]}", path=path)
            seen[name] = path
            _check_calls(project, path, template.calls)
            severity: Severity = "warn" if template.option("severity", "") == "warn" else "error"
            calls = [each for each in template.calls if each.word != "config"]
            about = (*template.names("ref"), *template.names("source"), "")[0]
            reads = frozenset(project.table_of(each) for each in calls)
            yield Audit(name, sentence, template, severity, about, reads)

    def _tests(self, project: Project) -> Iterator[GenericTest]:
        tested = [
            *((project.models[name].table, name, *each) for name, each in self._models.items()),
            *((project.seeds[name].table, name, *each) for name, each in self._seeds.items()),
            *((t := project.sources[n].table, t, *each) for n, each in self._sources.items()),
        ]
        places = {audit.name: f"{audit.path}:1" for audit in project.audits}
        for table, about, path, entry in tested:
            for column in entry.columns:
                for test in column.data_tests:
                    name = test.name or f"{test.kind}_{about.replace('.', '_')}_{column.name}"
                    if name in places:
                        told = f"the test {name} is also in {places[name]}"
                        raise ModelTwice(told, path=path, line=test.line)
                    places[name] = f"{path}:{test.line}"
                    yield GenericTest(
                        name=name,
                        kind=test.kind,
                        about=about,
                        table=table,
                        column=column.name,
                        severity=test.severity,
                        path=path,
                        line=test.line,
                        values=test.values,
                        quotes_values=test.quote,
                        to=_other_side(project, path, test),
                        field=test.field,
                    )


def _add_once(into: dict[str, Any], name: str, path: Path, entry: _TableEntry) -> None:
    if name in into:
        first, other = into[name]
        told = f"{name} is declared here and in {first}:{other.line}"
        raise ModelTwice(told, path=path, line=entry.line)
    if len(entry.texts) < len(entry.columns):
        told = f"a column of {name} is declared twice"
        raise ModelTwice(told, path=path, line=entry.line)
    into[name] = path, entry


def _template(path: Path) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelInvalid(f"cannot be read: {type(error).__name__}", path=path) from None
    template = read_template(text, path)
    if text.rstrip().endswith(";"):
        line = text.rstrip().count("\n") + 1
        action = "Remove the semicolon. A file contains one query."
        raise ModelInvalid("the query ends with a semicolon", path=path, line=line, action=action)
    return template


def _check_calls(project: Project, path: Path, calls: tuple[Call, ...]) -> None:
    """Raise `ReferenceUnknown` for a ref or source that names nothing."""
    nodes = (*project.models, *project.seeds)
    for each in calls:
        if each.word == "ref" and each.name not in nodes:
            raise ReferenceUnknown("model or seed", each.name, nodes, path=path, line=each.line)
        if each.word == "source" and each.name not in project.sources:
            known = tuple(project.sources)
            raise ReferenceUnknown("source", each.name, known, path=path, line=each.line)


def _other_side(project: Project, path: Path, test: _TestEntry) -> str | None:
    """The table that a relationship leads to: `to: ref('x')` or a source."""
    if test.to is None:
        return None
    # As many lines before it as the file has, so that an error names the file's line.
    calls = read_template("\n" * (test.line - 1) + f"{{{{ {test.to} }}}}", path).calls
    if [each.word for each in calls] not in (["ref"], ["source"]):
        action = "Write to: ref('model')."
        raise ModelInvalid("'to' is not a ref or source", path=path, line=test.line, action=action)
    _check_calls(project, path, calls)
    return project.table_of(calls[0])
