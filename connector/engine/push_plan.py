"""What a push sets out to do: a file's rows, the terms on which they are written, and by what
marks a row is known again.

Plain values. A plan has every row of the file: those to be written as tasks, the others with the
verdict that was reached without asking the API.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from connector.engine.bookmark import LATENESS_SECONDS
from connector.engine.task import Mode, Task
from connector.errors import Misused
from connector.resource import Declaration
from connector.value import Kind

Policy = Literal["hold", "retry-after-settle"]
"""What becomes of a create that was sent, was not answered and is not found after the settle time:
it is kept for a person, or sent once more. A repeat can create a second record where the server
takes longer than that.
"""

SETTLE_SECONDS_MIN = 300.0
"""The least time after which a request that was not answered is taken to have no effect any more.
"""

SETTLE_DEADLINES = 2.0
"""It is also so many times the client's deadline for one attempt."""

DIGEST_CHARACTERS = 12
"""As much of a file's digest stands in a marker."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One thing to tell of a row, as the journal keeps it.

    `code` is stable. `field` is the API's name of the field and `column` the file's heading, None
    where the whole row is meant. `received` is what the row asked for, `found` what the API shows
    in its place; both are texts cut to a length that can be shown. `allowed` says what would have
    been right and `fix` what to do.
    """

    code: str
    message: str
    field: str | None = None
    column: str | None = None
    received: str | None = None
    found: str | None = None
    allowed: str | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row that is not to be written: what it is called, and why. `record_id` names the record
    that it is the same as, where there is one.
    """

    number: int
    outcome: Literal["invalid", "duplicate", "unchanged"]
    code: str
    problems: tuple[RowProblem, ...] = ()
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms rows are written.

    `overwrite`: even where somebody else changed the field since it was landed. `again`: even what
    an earlier push has applied, conversions apart. `marker_field` is a text field of the resource
    that is given a mark of the connector's own on create, by which the record is known for certain.
    `settle_seconds` is how long after an attempt its absence proves nothing, `lateness_seconds` how
    late a record may become visible.
    """

    policy: Policy = "hold"
    overwrite: bool = False
    again: bool = False
    marker_field: str | None = None
    settle_seconds: float = SETTLE_SECONDS_MIN
    lateness_seconds: float = LATENESS_SECONDS


@dataclass(frozen=True, slots=True)
class Plan:
    """All rows of one file for one resource: each number once, as a task or as a verdict. `digest`
    is of the file's bytes, in hexadecimal.

    There may be a million of them, which are not in memory: they are read one by one, more than
    once, and are the same each time.
    """

    resource: str
    mode: Mode
    file: str
    digest: str
    tasks: Collection[Task]
    verdicts: Collection[Verdict] = ()

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.tasks) + len(self.verdicts)

    @property
    def numbers(self) -> Iterator[int]:
        """The numbers of its rows, those of the tasks first."""
        yield from (task.number for task in self.tasks)
        yield from (verdict.number for verdict in self.verdicts)


def settle_seconds(deadline_seconds: float) -> float:
    """How long nothing is concluded from absence, for a client with that deadline."""
    return max(SETTLE_DEADLINES * deadline_seconds, SETTLE_SECONDS_MIN)


def check_marker(resource: Declaration, plan: Plan, terms: Terms) -> None:
    """Raise `Misused` or `UnknownName` for a marker field that cannot carry a mark: it must be a
    text that create takes and answers show, and that no row of the file fills.
    """
    if terms.marker_field is None:
        return
    field = resource.field(terms.marker_field)
    is_text = field.kind is Kind.STRING and not field.values and field.format is None
    if not is_text or not field.create.accepted or field.write_only:
        raise Misused(
            f"{field.name} of {resource.name} cannot carry a marker",
            action="Name a free text that create takes and the API shows, such as notes or tags.",
        )
    filled = next((each.number for each in plan.tasks if field.name in each.fields), None)
    if filled is not None:
        raise Misused(
            f"{field.name} is to carry the marker, and row {filled} gives it another value",
            action="Name another field for the marker, or leave the column out.",
        )


def marker_of(terms: Terms, digest: str, number: int) -> Mapping[str, str]:
    """The mark of a row, as a body has it; empty where none is asked for."""
    if terms.marker_field is None:
        return {}
    return {terms.marker_field: f"import:{digest[:DIGEST_CHARACTERS]}:{number}"}


def fingerprint(task: Task) -> str:
    """What makes two rows the same write, whatever file they come from. A marker is no part of it.

    A lead is converted once, so that a conversion is known by its lead alone.
    """
    if task.operation == "convert":
        return _digest(["convert", task.resource, task.record_id])
    what = [task.resource, task.operation, task.parent, task.record_id]
    return _digest([*what, dict(task.identity), dict(task.fields), dict(task.afterwards)])


def subject(task: Task) -> str | None:
    """What the row is about: the record it changes, or the identity of the one that it creates.

    Rows about one thing are written one after another. None: nothing identifies it.
    """
    if task.record_id is not None:
        return _digest([task.resource, task.record_id])
    if not task.identity:
        return None
    identity = {name: folded(value) for name, value in task.identity.items()}
    return _digest([task.resource, task.parent, identity])


def packed(task: Task) -> str:
    """The task as JSON, as the journal keeps it."""
    values: dict[str, Any] = {name: getattr(task, name) for name in _TASK_FIELDS}
    values |= {name: dict(values[name]) for name in _TASK_MAPPINGS}
    return json.dumps(values)


def unpacked(text: str) -> Task:
    """The task that was packed."""
    return Task(**json.loads(text))


_TASK_FIELDS = tuple(Task.__dataclass_fields__)
_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")


def folded(value: Any) -> Any:
    """The value of an identity as it is compared: letter case and outer blanks aside."""
    return value.strip().casefold() if isinstance(value, str) else value


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
