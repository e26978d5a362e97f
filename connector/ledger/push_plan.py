"""Plan of a push: the rows of a file, the policy, and the hashes that identify a row."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from connector.catalog.resource import LATENESS_SECONDS
from connector.ledger.push_states import Mode, PreviewOutcome, Task

SETTLE_SECONDS_MIN = 300.0
"""Minimum number of seconds after which an unanswered request can no longer take effect."""

SETTLE_DEADLINES = 2.0
"""The waiting time is at least this number of deadlines of one attempt."""

SHOWN_CHARACTERS_MAX = 200
"""Maximum number of characters of a value in a problem."""

_THE_VALUE = re.compile(r"\b[Tt]he value\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem or warning of a row.

    Attributes:
        code: Stable, documented code.
        column: Heading in the file; None for a problem of the whole row.
        field: Name of the field in the API; None for a problem of the whole row.
        received: Cell, or value that was to be sent, cut to a length that can be shown.
        found: Value that the API has instead. If several records match, their ids; for a repeated
            row, the number of the first one.
        allowed: Values allowed.
        fix: What to do.
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
        """Message in which the received value replaces the words "the value"."""
        if self.received is None:
            return self.message
        return _THE_VALUE.sub(lambda _: f'"{self.received}"', self.message, count=1)


def shorten(value: Any) -> str:
    """Return a value as text of at most `SHOWN_CHARACTERS_MAX` characters; empty for None."""
    return "" if value is None else str(value)[:SHOWN_CHARACTERS_MAX]


@dataclass(frozen=True, slots=True)
class RowResult:
    """Result of one row, of a push or of its preview.

    Attributes:
        code: Code that details the outcome; None if there is nothing to add.
        record_id: Id of the record, if known.
        changes: Field, current value and new value of each change of an update, in a preview.
        warnings: Warnings for a row that is sent.
    """

    number: int
    outcome: PreviewOutcome
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None
    changes: tuple[tuple[str, Any, Any], ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class PushPolicy:
    """How a push treats repeated and conflicting rows, and how long it waits for unconfirmed ones.

    Attributes:
        overwrite: Whether to overwrite changes by others since the record was loaded.
        resend: Whether to send rows again that an earlier push has applied, except conversions.
        settle_seconds: Seconds after an attempt in which it may still take effect.
        lateness_seconds: Maximum delay in seconds until a new record appears in lists.
    """

    overwrite: bool = False
    resend: bool = False
    settle_seconds: float = SETTLE_SECONDS_MIN
    lateness_seconds: float = LATENESS_SECONDS


@dataclass(frozen=True, slots=True)
class PushPlan:
    """All rows of one file for one resource, kept on the disk.

    Attributes:
        file: Name of the file.
        digest: SHA-256 of the file, in hexadecimal.
        tasks: Rows to send.
        unsent: Results of the other rows: invalid, duplicate or unchanged.
    """

    resource: str
    mode: Mode
    file: str
    digest: str
    tasks: Collection[Task]
    unsent: Collection[RowResult] = ()

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.tasks) + len(self.unsent)

    @property
    def row_numbers(self) -> Iterator[int]:
        """Numbers of all rows, first those of the tasks."""
        yield from (task.number for task in self.tasks)
        yield from (result.number for result in self.unsent)


def settle_seconds_min(deadline_seconds: float) -> float:
    """Return the seconds after which an unanswered request can no longer take effect.

    `deadline_seconds` is the client's time limit for one request.
    """
    return max(SETTLE_DEADLINES * deadline_seconds, SETTLE_SECONDS_MIN)


def fingerprint(task: Task) -> str:
    """Return the hash of the values that a row writes. Equal rows of any file have the same.

    A lead is converted only once, so that a conversion is identified by its lead alone.
    """
    if task.operation == "convert":
        return _hash_of_json(["convert", task.resource, task.record_id])
    what = [task.resource, task.operation, task.parent, task.record_id]
    return _hash_of_json([*what, dict(task.identity), dict(task.fields), dict(task.afterwards)])


def subject_hash(task: Task) -> str | None:
    """Return the hash of the record that a row changes, or of the identity that it creates.

    Rows with the same hash are sent one after another. None for a create without an identity.
    """
    if task.record_id is not None:
        return _hash_of_json([task.resource, task.record_id])
    if not task.identity:
        return None
    identity = {name: fold_identity(value) for name, value in task.identity.items()}
    return _hash_of_json([task.resource, task.parent, identity])


def task_to_json(task: Task) -> str:
    """Return the task as JSON for the journal."""
    values: dict[str, Any] = {name: getattr(task, name) for name in _TASK_FIELDS}
    values |= {name: dict(values[name]) for name in _TASK_MAPPINGS}
    return json.dumps(values)


def task_from_json(text: str) -> Task:
    """Return the task from the result of `task_to_json`."""
    return Task(**json.loads(text))


_TASK_FIELDS = tuple(Task.__dataclass_fields__)
_TASK_MAPPINGS = ("fields", "afterwards", "base", "identity")


def fold_identity(value: Any) -> Any:
    """Return a value of an identity without letter case and outer blanks, for comparison."""
    return value.strip().casefold() if isinstance(value, str) else value


def _hash_of_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


# -- Order of the rows -----------------------------------------------------------------------------
# Rows start in the order of the file. Rows for the same record or identity run one after another,
# so that a lookup cannot take the record of one row for that of another.


class QueuedRow(Protocol):
    """Row, or group of rows, in a `RowQueue`."""

    @property
    def key(self) -> tuple[str, int]:
        """Batch and number of the row."""

    @property
    def subject(self) -> str | None:
        """Hash of the record or identity that the row writes; None if unknown."""


W = TypeVar("W", bound=QueuedRow)


@dataclass(frozen=True, slots=True)
class BlockedRow(Generic[W]):
    """Row that cannot start, because the row `by` has an open write to the same record."""

    row: W
    by: tuple[str, int]


class RowQueue(Generic[W]):
    """Queue of the rows of one run. Rows for the same record start one after another.

    Args:
        rows: Rows, in order.
        open_by_subject: Row with an open write in the journal, by the hash of its record.
        own_open_rows: Those of these rows that this run continues.
    """

    def __init__(
        self,
        rows: Iterable[W],
        open_by_subject: Mapping[str, tuple[str, int]],
        own_open_rows: Collection[tuple[str, int]],
    ) -> None:
        self._rows = iter(rows)
        self._is_read = False
        self._ready: deque[W] = deque()
        self._under_way: dict[str, tuple[str, int]] = {
            subject: key for subject, key in open_by_subject.items() if key in own_open_rows
        }
        self._open = {s: key for s, key in open_by_subject.items() if key not in own_open_rows}
        self._behind: dict[str, list[W]] = {}

    @property
    def is_empty(self) -> bool:
        """Return True if no row is left, not even one that waits for another."""
        return self._is_read and not self._ready and not self._behind

    def next_row(self) -> W | BlockedRow[W] | None:
        """Return the next row that can start, or a blocked row; None if no row can start now."""
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
        """Let rows for the same record start. If `is_open`, the row's write blocks them instead."""
        if row.subject is None:
            return
        assert self._under_way.pop(row.subject) == row.key
        if is_open:
            self._open[row.subject] = row.key
        self._ready.extendleft(reversed(self._behind.pop(row.subject, [])))

    def _next_candidate(self) -> W | None:
        """Return the next row: one that waited for another, else the next one in order."""
        if self._ready:
            return self._ready.popleft()
        row = next(self._rows, None)
        self._is_read = row is None
        return row
