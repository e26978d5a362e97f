"""What a project folder declares, as plain values: models, seeds, sources, columns, tests, audits.

Nothing here reads a file or knows a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from connector.models.rendering import Template
from connector.models.result import CheckKind, Severity

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
