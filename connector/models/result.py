"""What a build did: each model with its rows and seconds, each test and audit with what it found.

A check's examples are ids and values of key columns alone, since results reach logs, reports and
Dagster, and nothing personal may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

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
