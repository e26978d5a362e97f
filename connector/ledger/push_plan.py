"""Plan of a push: a file's rows, the policy, and marks by which a row is known.

Plain values. A plan has every row of the file: those to be written as tasks, the others with the
verdict that was reached without asking the API.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from connector.catalog.page import LATENESS_SECONDS
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.errors import Misused
from connector.ledger.push_states import Mode, Task

DoubtPolicy = Literal["hold", "retry"]
"""What becomes of a create that was sent, was not answered and is not found after the settle time:
it is kept for a person, or sent again. A repeat can create a second record where the server
takes longer than that.
"""

SETTLE_SECONDS_MIN = 300.0
"""The least time after which a request that was not answered is taken to have no effect any more.
"""

SETTLE_DEADLINES = 2.0
"""It is also so many times the client's deadline for one attempt."""

DIGEST_CHARACTERS = 12
"""As much of a file's digest stands in a marker."""


SHOWN_CHARACTERS_MAX = 200
"""Characters of a value that a problem shows."""

_THE_VALUE = re.compile(r"\b[Tt]he value\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a row, or is to be told of it.

    `code` is stable and documented. `column` is the file's heading and `field` the API's name,
    both None where the whole row is meant. `received` is the cell, or what the row asked for, and
    `found` what the API shows in its place, both cut to a length that can be shown; of several
    records that match, `found` has the ids, and of a row that is in the file twice, the number of
    the first. `allowed` says what would have been right and `fix`
    what to do.
    """

    code: str
    message: str
    column: str | None = None
    received: str | None = None
    allowed: str | None = None
    fix: str | None = None
    field: str | None = None
    found: str | None = None

    @property
    def text(self) -> str:
        """The message with the cell in place of the words "the value"."""
        if self.received is None:
            return self.message
        return _THE_VALUE.sub(lambda _: f'"{self.received}"', self.message, count=1)


def as_text(value: Any) -> str:
    """A value as a problem shows it."""
    return "" if value is None else str(value)[:SHOWN_CHARACTERS_MAX]


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """Verdict on a row not to be written; `record_id` is the record that it equals."""

    number: int
    outcome: Literal["invalid", "duplicate", "unchanged"]
    code: str
    problems: tuple[Problem, ...] = ()
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class PushPolicy:
    """Policy of a push: what it may overwrite, and how it treats unconfirmed rows.

    `overwrite`: even where another user changed the field since it was landed. `again`: even what
    an earlier push has applied, conversions apart. `marker_field` is a text field of the resource
    that is given a mark of the connector's own on create, by which the record is known for certain.
    `settle_seconds` is how long after an attempt its absence proves nothing, `lateness_seconds` how
    late a record may become visible.
    """

    policy: DoubtPolicy = "hold"
    overwrite: bool = False
    again: bool = False
    marker_field: str | None = None
    settle_seconds: float = SETTLE_SECONDS_MIN
    lateness_seconds: float = LATENESS_SECONDS


@dataclass(frozen=True, slots=True)
class PushPlan:
    """All rows of one file for one resource: each number once, as a task or as a
    verdict. `digest` is of the file's bytes, in hexadecimal.

    There may be a million of them, which are not in memory: they are read one by one, more than
    once, and are the same each time.
    """

    resource: str
    mode: Mode
    file: str
    digest: str
    tasks: Collection[Task]
    verdicts: Collection[RowVerdict] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.tasks) + len(self.verdicts)

    @property
    def numbers(self) -> Iterator[int]:
        """The numbers of its rows, those of the tasks first."""
        yield from (task.number for task in self.tasks)
        yield from (verdict.number for verdict in self.verdicts)


def settle_seconds(deadline_seconds: float) -> float:
    """Seconds for which a missing record proves nothing, for a client with that deadline."""
    return max(SETTLE_DEADLINES * deadline_seconds, SETTLE_SECONDS_MIN)


def check_marker(resource: Declaration, plan: PushPlan, terms: PushPolicy) -> None:
    """Raise `Misused` or `UnknownName` for a marker field that cannot carry a mark: it
    must be a text that create takes and answers show, and that no row of the file fills.
    """
    if terms.marker_field is None:
        return
    field = resource.field(terms.marker_field)
    is_text = field.kind is Kind.STRING and not field.values and field.format is None
    if not is_text or not field.create.accepted or field.write_only:
        raise Misused(
            f"{field.name} of {resource.name} cannot contain a marker",
            action=(
                "Choose a text field that can be set when a record is created and that the "
                "API returns, such as notes or tags."
            ),
        )
    filled = next((each.number for each in plan.tasks if field.name in each.fields), None)
    if filled is not None:
        raise Misused(
            f"{field.name} is used for the marker, but row {filled} has a value for it",
            action="Choose another field with --marker-field, or remove the column.",
        )


def marker_of(terms: PushPolicy, digest: str, number: int) -> Mapping[str, str]:
    """The mark of a row, as a body has it; empty where none is asked for."""
    if terms.marker_field is None:
        return {}
    return {terms.marker_field: f"import:{digest[:DIGEST_CHARACTERS]}:{number}"}


def fingerprint(task: Task) -> str:
    """Hash of what a row writes, whatever its file and its marker.

    A lead is converted once, so that a conversion is known by its lead alone.
    """
    if task.operation == "convert":
        return _digest(["convert", task.resource, task.record_id])
    what = [task.resource, task.operation, task.parent, task.record_id]
    return _digest([*what, dict(task.identity), dict(task.fields), dict(task.afterwards)])


def subject_hash(task: Task) -> str | None:
    """Hash of the record that a row changes, or of the identity that it creates.

    Rows about one thing are written one after another. None: nothing identifies it.
    """
    if task.record_id is not None:
        return _digest([task.resource, task.record_id])
    if not task.identity:
        return None
    identity = {name: fold_identity(value) for name, value in task.identity.items()}
    return _digest([task.resource, task.parent, identity])


def to_json(task: Task) -> str:
    """The task as JSON, as the journal keeps it."""
    values: dict[str, Any] = {name: getattr(task, name) for name in _TASK_FIELDS}
    values |= {name: dict(values[name]) for name in _TASK_MAPPINGS}
    return json.dumps(values)


def from_json(text: str) -> Task:
    """The task that was packed."""
    return Task(**json.loads(text))


_TASK_FIELDS = tuple(Task.__dataclass_fields__)
_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")


def fold_identity(value: Any) -> Any:
    """The value of an identity as it is compared: letter case and outer blanks aside."""
    return value.strip().casefold() if isinstance(value, str) else value


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


# -- Push order ------------------------------------------------------------------------------------
# In which order a batch's rows are begun: as the file has them, and those about one thing one
# after another, so that no look can take one row's record for another's.
#
# Pure: it hands rows out and is told how they ended.


class QueuedRow(Protocol):
    """A row to be begun: its key, and what it is about (None: unknown)."""

    @property
    def key(self) -> tuple[str, int]:
        """Its batch and number."""

    @property
    def subject(self) -> str | None:
        """Hash of the record or identity that the row is about."""


W = TypeVar("W", bound=QueuedRow)


@dataclass(frozen=True, slots=True)
class BlockedRow(Generic[W]):
    """A row that may not be begun: the row `by` is about the same thing, and is open."""

    row: W
    by: tuple[str, int]


class RowQueue(Generic[W]):
    """The rows of one run, which are taken one by one.
    `open_about` is what is open in the journal, by the row, and `mine` which rows of those are
    among the run's.
    """

    def __init__(
        self,
        rows: Iterable[W],
        open_about: Mapping[str, tuple[str, int]],
        mine: Collection[tuple[str, int]],
    ) -> None:
        self._rows = iter(rows)
        self._is_read = False
        self._ready: deque[W] = deque()
        self._under_way: dict[str, tuple[str, int]] = {
            subject: key for subject, key in open_about.items() if key in mine
        }
        self._open = {s: key for s, key in open_about.items() if key not in mine}
        self._behind: dict[str, list[W]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no row waits, not even for another one."""
        return self._is_read and not self._ready and not self._behind

    def next(self) -> W | BlockedRow[W] | None:
        """The next row that may be begun, or one that may not; None for neither."""
        while (row := self._next_candidate()) is not None:
            if row.subject is None:
                return row
            if row.subject in self._open:
                return BlockedRow(row, self._open[row.subject])
            holder = self._under_way.setdefault(row.subject, row.key)
            if holder == row.key:
                return row
            self._behind.setdefault(row.subject, []).append(row)
        return None

    def end_row(self, row: W, *, is_open: bool) -> None:
        """The row can be brought no further; `is_open`: whether it was written is open."""
        if row.subject is None:
            return
        assert self._under_way.pop(row.subject) == row.key
        if is_open:
            self._open[row.subject] = row.key
        self._ready.extendleft(reversed(self._behind.pop(row.subject, [])))

    def _next_candidate(self) -> W | None:
        """The row whose turn it is: one that has waited for another, else the next one."""
        if self._ready:
            return self._ready.popleft()
        row = next(self._rows, None)
        self._is_read = row is None
        return row
