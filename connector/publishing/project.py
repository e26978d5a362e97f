"""Values that describe a project folder and the result of a build."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol

import duckdb

from connector.errors import ModelError, ModelFailed, UnknownName
from connector.warehouse.schema import Column

# -- Result ----------------------------------------------------------------------------------------
# Examples of a check are only ids and values of key columns: results are written to logs, reports
# and Dagster, which must not contain personal data.

Kind = Literal["seed", "view", "table"]
Severity = Literal["error", "warn"]
CheckKind = Literal["unique", "not_null", "accepted_values", "relationships", "audit"]


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """Seed or model that was built, or copied from the published file.

    `rows` is None for a view, whose rows are not counted. `seconds` is the wall time of the build.
    """

    name: str
    schema: str
    kind: Kind
    rows: int | None
    seconds: float

    @property
    def table(self) -> str:
        """The table as `schema.table`."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one generic test or audit.

    Attributes:
        name: Unique name in the project.
        model: The checked model, seed or source table.
        column: The checked column; None for an audit.
        failing: Number of rows found.
        examples: A few ids of these rows, never values of a personal column.
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
        """True if the check found no rows."""
        return self.failing == 0


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of a build. The file can be published if `blocking` is empty."""

    models: tuple[BuiltModel, ...]
    checks: tuple[CheckResult, ...]

    @property
    def blocking(self) -> tuple[CheckResult, ...]:
        """The failed checks of severity error, which prevent a publication."""
        return tuple(c for c in self.checks if not c.passed and c.severity == "error")

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        """Failed checks of severity warn."""
        return tuple(c for c in self.checks if not c.passed and c.severity == "warn")


class BuildObserver(Protocol):
    """Receives the progress of a build, for example to show it."""

    def on_plan(self, models: int, checks: int) -> None:
        """The build starts with this number of models and checks."""

    def on_model_start(self, name: str) -> None:
        """The build of the model starts."""

    def on_model_end(self, model: BuiltModel) -> None:
        """The model is built."""

    def on_check_end(self, check: CheckResult) -> None:
        """The test or audit is complete."""


# -- Query -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """SQL of a file, with tables instead of `ref()` and `source()`.

    A line of `sql` is the same line of the file, so that DuckDB's errors name the file's line.

    Attributes:
        path: The file.
        sql: The SQL. Tables have no catalog, so that a view survives a rename of the database file.
        refs: Names of the models and seeds that it refers to, each once, in order.
        sources: Source tables that it refers to, as `schema.table`.
        options: Arguments of `config()`.
    """

    path: Path
    sql: str
    refs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


# -- Declared --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GenericTest:
    """Test of a column, declared in a schema file.

    Attributes:
        about: Name of the tested model, seed or source table.
        table: The same as `schema.table`.
        values: Allowed values of `accepted_values`.
        quotes_values: True if the values are texts, False if they are SQL expressions.
        referenced_table: Table that a test `relationships` refers to, as `schema.table`.
        referenced_column: Column of that table.
    """

    name: str
    kind: CheckKind
    about: str
    table: str
    column: str
    severity: Severity
    path: Path
    line: int
    values: tuple[str, ...] = ()
    quotes_values: bool = True
    referenced_table: str | None = None
    referenced_column: str | None = None

    @property
    def sentence(self) -> str:
        """Requirement of the test as a sentence."""
        column = f"{self.table}.{self.column}"
        if self.kind == "unique":
            return f"No two rows have the same {column}."
        if self.kind == "not_null":
            return f"Every row has a value of {column}."
        if self.kind == "accepted_values":
            return f"{column} is one of: {', '.join(self.values)}."
        return f"Every {column} is a {self.referenced_column} of {self.referenced_table}."

    @property
    def reads(self) -> frozenset[str]:
        """The tables that the test reads."""
        return frozenset((self.table, self.referenced_table or self.table))


@dataclass(frozen=True, slots=True)
class Audit:
    """Query that must return no rows.

    `about` is the first model that it refers to, or the first source table if it refers to none.
    """

    name: str
    sentence: str
    query: ModelQuery
    severity: Severity
    about: str
    reads: frozenset[str]
    kind: CheckKind = "audit"
    column: None = None

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.query.path


Check = GenericTest | Audit


@dataclass(frozen=True, slots=True)
class Model:
    """SQL file that builds a table or view, with its entry in a schema file.

    Attributes:
        grain: Meaning of one row, from the header; may be empty.
        sentence: Summary from the header; may be empty.
        description: Description in the schema file; may be empty.
        column_descriptions: Descriptions in the schema file, by column.
        declared: File and line of the entry in the schema file.
        is_own: True for a model of the user's folder.
        personal: Columns for which the schema file declares `personal`.
    """

    name: str
    schema: str
    kind: Literal["view", "table"]
    grain: str
    sentence: str
    query: ModelQuery
    description: str = ""
    column_descriptions: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[Path, int] | None = None
    is_own: bool = False
    personal: Mapping[str, bool] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table as `schema.table`."""
        return f"{self.schema}.{self.name}"

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.query.path

    @property
    def about(self) -> str:
        """Description of the rows, for comments and catalogs."""
        grain = f"Grain: {self.grain}." if self.grain else ""
        return self.description or "\n".join(each for each in (self.sentence, grain) if each)


@dataclass(frozen=True, slots=True)
class Seed:
    """Table from a csv file. `is_users` is True for a file in the user's folder of seeds."""

    name: str
    schema: str
    about: str
    columns: tuple[Column, ...]
    path: Path
    is_users: bool
    kind: Literal["seed"] = "seed"
    grain: str = ""

    @property
    def table(self) -> str:
        """The table as `schema.table`."""
        return f"{self.schema}.{self.name}"

    @property
    def column_descriptions(self) -> dict[str, str]:
        """Descriptions of the columns."""
        return {each.name: each.comment for each in self.columns}


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Table that models read and no model makes, such as a table of landing or history."""

    table: str
    column_descriptions: Mapping[str, str]


# -- Files -----------------------------------------------------------------------------------------


def shipped_folder() -> Path:
    """Return the project folder that comes with the connector, next to its package."""
    return Path(str(files("connector"))).parent / "dbt_like_sql"


def project_files(folder: Path) -> list[Path]:
    """Return the SQL, YAML and csv files below the folder, sorted by path."""
    return sorted(
        path for path in folder.glob("**/*") if path.suffix in (".sql", ".yml", ".yaml", ".csv")
    )


# -- Project ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Project:
    """Project whose references are all resolved.

    The keys of `sources` are `schema.table` as `source()` names them. `makes_content_views` is True
    if each content type gets a typed view.
    """

    models: Mapping[str, Model]
    seeds: Mapping[str, Seed]
    sources: Mapping[str, SourceTable]
    makes_content_views: bool
    tests: tuple[GenericTest, ...] = ()
    audits: tuple[Audit, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """All tests and audits, in the order of their files."""
        return *self.tests, *self.audits

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """For every seed and model, in build order, the seeds and models that it reads.

        Raises `ModelError` if models refer to each other in a circle.
        """
        made_of: dict[str, tuple[str, ...]] = dict.fromkeys(self.seeds, ())
        made_of |= {name: each.query.refs for name, each in self.models.items()}
        own = {name for name, each in self.models.items() if each.is_own}
        try:
            # The user's models are last, because they may name a shipped table without `ref()`.
            order = sorted(TopologicalSorter(made_of).static_order(), key=own.__contains__)
        except CycleError as error:
            # The circle begins and ends with the same model. Each model reads the one before.
            ring = error.args[1][:0:-1]
            shown = " -> ".join((*ring, ring[0]))
            raise ModelError(
                f"models refer to each other in a circle: {shown}",
                code="models_circular",
                path=self.models[ring[0]].path,
            ) from None
        return {name: made_of[name] for name in order}

    @property
    def build_order(self) -> tuple[str, ...]:
        """Seeds and models, each after the ones it reads."""
        return tuple(self.parents)

    def selected(self, select: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the selected seeds and models in build order; all without a selection.

        A word is the name of a model, seed or folder. `+fct_jobs` adds everything that the model
        reads, and `stg_jobs+` everything that reads it. Raises `UnknownName` with the nearest name.
        """
        children: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, made_of in self.parents.items():
            for each in made_of:
                children[each].append(name)
        chosen = set() if select else set(self.parents)
        for word in select:
            bare = word.removeprefix("+").removesuffix("+")
            names = {n for n in self.parents if bare in (n, self.node(n).schema)}
            if not names:
                folders = {self.node(name).schema for name in self.parents}
                raise UnknownName("model, seed or folder", bare, (*self.parents, *folders))
            chosen |= names
            if word.startswith("+"):
                chosen |= _reachable(names, self.parents)
            if word.endswith("+"):
                chosen |= _reachable(names, children)
        return tuple(name for name in self.parents if name in chosen)

    def node(self, name: str) -> Model | Seed:
        """Return the seed or model with the name, which must exist."""
        return self.seeds[name] if name in self.seeds else self.models[name]

    @property
    def nodes(self) -> tuple[Model | Seed, ...]:
        """The seeds and models in build order."""
        return tuple(self.node(name) for name in self.parents)

    def checks_of(self, names: Iterable[str]) -> tuple[Check, ...]:
        """Return the tests and audits that read one of these seeds and models.

        Checks of source tables are included if a model reads the table and the check reads no
        model.
        """
        wanted = [self.node(name) for name in names]
        own = {each.table for each in self.nodes}
        tables = {each.table for each in wanted}
        sources = {t for m in wanted if isinstance(m, Model) for t in m.query.sources}
        return tuple(
            check
            for check in self.checks
            if check.reads & tables or (not check.reads & own and check.reads & sources)
        )

    @cached_property
    def digest(self) -> str:
        """Hash of the whole content, as a key for caches."""
        parts = [
            f"{m.table} {m.kind} {m.column_descriptions} {m.personal} {m.query.sql}"
            for m in self.models.values()
        ]
        parts += [f"{each.table} {each.columns}" for each in self.seeds.values()]
        parts += [f"{each.table} {each.column_descriptions}" for each in self.sources.values()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _reachable(names: Iterable[str], steps: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the names and all names that can be reached from them through `steps`."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += steps[name]
    return found


# -- Statement -------------------------------------------------------------------------------------
# A statement contains the file's text from its first line, so that DuckDB's `LINE n` is line n of
# the file. Values are removed from DuckDB's messages, because they may be personal.


_LINE = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ABOUT_THE_TEXT = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
_MISSING = re.compile(r"(?:Table|View) with name \"?([\w.]+)\"? does not exist", re.IGNORECASE)


@contextmanager
def convert_sql_errors(path: Path, problem: str) -> Iterator[None]:
    """Raise DuckDB's errors in a statement as `ModelFailed` with the file's path and line.

    `problem` begins the message, for example `fct_jobs cannot be built`. Errors of the file system
    and of a full disk are not converted.
    """
    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        message = str(error)
        quoted = _LINE.search(message)
        raise ModelFailed(
            f"{problem}: {_one_line_message(error, message)}",
            path=path,
            line=int(quoted[1]) if quoted else None,
            action=_missing_table_action(message),
        ) from None


def _one_line_message(error: duckdb.Error, message: str) -> str:
    """Return DuckDB's message on one line, without SQL and without values."""
    sentence = " ".join(_LINE.split(message)[0].split())
    if isinstance(error, _ABOUT_THE_TEXT):
        return sentence
    return _QUOTED.sub("'...'", sentence)


def _missing_table_action(message: str) -> str | None:
    """Return the next step if the message reports a missing table; None for another error."""
    missing = _MISSING.search(message)
    if missing is None:
        return None
    return (
        f"{missing.group(1)} does not exist. Add '+' before the model's name to build its "
        "sources too. In SQL, name tables with ref() or source()."
    )
