"""Row of a push: what it writes, what the record was before, and what the API answered. Pure.

    planned   to be sent, or to be sent again
    sent      on the disk before the first byte; applied or not until an answer or a look tells
    done      applied, or nothing had to be sent
    refused   not applied: by a check, by the API, because of another user, or by a person
    held      sent and not found; only a person's decision ends it

A preview makes the row, the steps of a push change it, and the journal saves it after every change.
`done` and `refused` are final.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from connector.catalog.resource import LATENESS_SECONDS
from connector.state.database import columns

Mode = Literal["create", "update", "upsert", "convert"]
"""Operation for a whole file. An upsert becomes a create or an update for each row."""

Operation = Literal["create", "update", "convert"]
State = Literal["planned", "sent", "done", "refused", "held"]

Applied = Literal["created", "updated", "converted", "unchanged"]
NotApplied = Literal[
    "duplicate", "invalid", "rejected", "not_applied", "conflict", "held", "not_sent"
]
Undone = Literal["delete", "restore", "deleted", "restored", "undone", "nothing"]
NotUndone = Literal["partly", "irreversible", "refused", "unread", "not_reached"]
Outcome = Operation | Applied | NotApplied | Undone | NotUndone
"""Outcome for users. Every row has exactly one. The operations are those of a preview, and `delete`
and `restore` those of the preview of an undo.

`unchanged`: the record has all values, or an earlier push applied the row. `duplicate`: another row
of the file, or a record, is the same. `invalid`: refused by the connector's checks. `rejected`:
refused by the API. `not_applied`: accepted, and the API returned other values. `conflict`: another
user changed the record since. `held`: sent and unconfirmed. `not_sent`: the push ended before, the
row has a warning, or a person gave the row up.

`undone`: undone before, or nothing is left of the row. `nothing`: the row had changed nothing.
`partly`: some fields are restored. `irreversible`: a conversion. `unread`: the record could not be
read, or the write was not answered. `not_reached`: the undo ended before.
"""

GOOD = frozenset((*get_args(Applied), *get_args(Undone)))
"""Outcomes of a push and of an undo that need no attention."""

Fate = Literal["accepted", "refused", "limited", "unsent", "lost"]
"""End of an attempt. `limited` and `unsent` had no effect for certain; a 429 is `limited`."""

RowKey = tuple[str, int]
"""A row: its batch, and its number in the file."""

SHOWN_CHARACTERS_MAX = 200
"""Maximum number of characters of a value in a problem."""

SETTLE_SECONDS_MIN = 300.0
"""Minimum number of seconds after which an unanswered request can no longer take effect."""

FOLLOWS = frozenset(("taken_over", "already_pushed"))
"""Codes of a refused row whose write another row has made or may have made."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem or warning of a row.

    Attributes:
        column: Heading in the file; None, as `field`, for a problem of the whole row.
        received: Cell, or value that was to be sent, cut to a length that can be shown.
        allowed: Values allowed.
        fix: What to do.
        field: Name of the field in the API.
        found: Value that the API has instead, ids of matching records, or number of a row.
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
        return re.sub(r"\b[Tt]he value\b", lambda _: f'"{self.received}"', self.message, count=1)


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """Record in the local copy, as last received.

    Attributes:
        is_whole: Whether the record is complete. A list item has fewer fields (API 2).
        seen: Complete record at the time of the user's last preview of the file, if requested.
    """

    record: Mapping[str, Any]
    is_whole: bool = True
    is_deleted: bool = False
    seen: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class KnownId:
    """Id of a user or a lead status, which the API does not list.

    `name` is the name that the agency gave it, or empty. `records` is the number of loaded records
    that have the id.
    """

    id: str
    name: str = ""
    records: int = 0

    def __str__(self) -> str:
        return self.name or f"{self.id} ({self.records:,} records)"


@dataclass(frozen=True, slots=True)
class Policy:
    """How a push treats repeated and conflicting rows, and how long it waits for lost answers.

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


@dataclass(slots=True)
class Attempt:
    """One request of a row, on the disk before its first byte is sent.

    Attributes:
        is_second: Whether it is the update that follows a create.
        body: Exact text of the body; None for a conversion.
        at: Time of our own clock before the first byte was sent.
        sent_after: Estimated time of the server's clock then.
        fate: End of the attempt; None if it was never recorded, so that it counts as lost.
        reason: Why it was refused, not sent or lost.
        answer: Answer to a lost attempt, without the API's own words.
    """

    is_second: bool
    method: str
    path: str
    body: str | None
    at: datetime
    sent_after: datetime
    fate: Fate | None = None
    reason: str | None = None
    answer: str | None = None

    @property
    def is_lost(self) -> bool:
        """Return True if the attempt may have been applied or not."""
        return self.fate in (None, "lost")


@dataclass(slots=True)
class Row:
    """Row of a push. The comment at the top of the module explains the states.

    Attributes:
        number: Number of the row in the spreadsheet; the headings are row 1.
        parent: Slug of the content type of a content item.
        fields: Values of the body: all of a create, or the wanted ones of an update.
        then: Values that a create does not accept; an update after it sends them.
        base: Former values of an update's fields, with which later changes are detected.
        identity: Values of the natural key.
        code: Code that details the outcome; may be empty.
        warnings: Warnings of a preview.
        before: Record before the first attempt, or as the create made it.
        is_created: Whether the record is created, and `then` still to be sent.
        updated_at: `updated_at` that the API showed after the last write.
        same: Row that this row repeats or follows.
    """

    number: int
    resource: str
    operation: Operation | None = None
    parent: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    then: Mapping[str, Any] = field(default_factory=dict)
    base: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    record_id: str | None = None
    state: State = "planned"
    outcome: Outcome = "not_sent"
    code: str = ""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    before: Mapping[str, Any] | None = None
    attempts: list[Attempt] = field(default_factory=list)
    is_created: bool = False
    updated_at: str | None = None
    same: RowKey | None = None
    batch: str = ""
    moved_at: datetime | None = None
    undone_at: datetime | None = None

    @property
    def key(self) -> RowKey:
        """Batch and number of the row."""
        return self.batch, self.number

    @property
    def current(self) -> list[Attempt]:
        """Attempts of the present step: the operation itself, or the update after its create."""
        return [each for each in self.attempts if each.is_second == self.is_created]

    @property
    def is_in_doubt(self) -> bool:
        """Return True if an attempt of the present step may have been applied or not."""
        return any(each.is_lost for each in self.current)

    @property
    def is_open(self) -> bool:
        """Return True if the write may have been applied, or was applied in part.

        No other row may write the same until this one has ended.
        """
        is_begun = self.is_created or self.is_in_doubt
        return self.state in ("sent", "held") or (self.state == "planned" and is_begun)

    @property
    def is_nameless(self) -> bool:
        """Return True if the row creates a record by which nothing can recognize it."""
        return self.operation == "create" and not self.identity

    @property
    def is_followed(self) -> bool:
        """Return True if the row has the outcome of the row in `same`."""
        return self.state == "refused" and self.code in FOLLOWS

    @property
    def changes(self) -> tuple[tuple[str, Any, Any], ...]:
        """Field, current value and new value of each change of an update or of an undo."""
        if self.outcome not in ("update", "restore", "restored", "partly"):
            return ()
        base = dict(_flat(self.base))
        return tuple((name, base.get(name), value) for name, value in _flat(self.fields))

    @property
    def values(self) -> dict[str, Any]:
        """Values that the row writes by field; those of a content type as `fields.KEY`."""
        return dict(_flat({**self.fields, **self.then}))

    def end(self, state: State, outcome: Outcome, code: str = "", *problems: Problem) -> None:
        """Set state and outcome. Problems replace the former ones."""
        self.state, self.outcome, self.code, self.problems = state, outcome, code, problems


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a body by field, with those of a content type as `fields.KEY`."""
    for name, value in body.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", each) for key, each in value.items())
        else:
            yield name, value


def shorten(value: Any) -> str:
    """Return a value as text of at most `SHOWN_CHARACTERS_MAX` characters; empty for None."""
    return "" if value is None else str(value)[:SHOWN_CHARACTERS_MAX]


# -- Same writes, same records ---------------------------------------------------------------------


def fingerprint(row: Row) -> str | None:
    """Return the hash of what a row writes, which equal rows of any file share.

    A lead is converted only once, so that a conversion is identified by its lead alone. None for a
    row without an operation.
    """
    if row.operation is None:
        return None
    if row.operation == "convert":
        return _hash(["convert", row.resource, row.record_id])
    # A create gets the id of its record only when it is sent.
    target_id = row.record_id if row.operation == "update" else None
    target = [row.resource, row.operation, row.parent, target_id]
    return _hash([*target, dict(row.identity), dict(row.fields), dict(row.then)])


def subject(row: Row) -> str | None:
    """Return the hash of the record that a row changes, or of the identity that it creates.

    Rows with the same subject are sent one after another. Creates without an identity share one, so
    that a look for the record of one cannot find that of another.
    """
    if row.operation is None:
        return None
    if row.operation != "create":
        return _hash([row.resource, row.record_id])
    identity = {name: fold(value) for name, value in row.identity.items()}
    return _hash([row.resource, row.parent, identity])


def fold(value: Any) -> Any:
    """Return a value of an identity without letter case and outer blanks, for comparison."""
    return value.strip().casefold() if isinstance(value, str) else value


def _hash(value: Any) -> str:
    """Return the SHA-256 of a JSON value, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


# -- Columns ---------------------------------------------------------------------------------------
# The journal has a column for each value by which rows are found, and three structures.

_ROW = TypeAdapter(Row)
_AFTER = ("parent", "fields", "then", "base", "identity")
_ANSWER = ("is_created", "problems", "warnings", "attempts")
_PLAIN = {each.name for each in fields(Row)} - {*_AFTER, *_ANSWER, "same"}


def to_columns(row: Row) -> dict[str, Any]:
    """Return the row by column of the table `rows`."""
    values = columns(row)
    same_batch, same_number = row.same or (None, None)
    return {
        **{name: values[name] for name in _PLAIN},
        "same_batch": same_batch,
        "same_number": same_number,
        "is_open": row.is_open,
        "fingerprint": fingerprint(row),
        "subject": subject(row),
        "after": {name: values[name] for name in _AFTER} if row.operation else None,
        "answer": _ROW.dump_python(row, mode="json", include={*_ANSWER}),
    }


def from_columns(stored: Any) -> Row:
    """Return the row from the columns of the table `rows`."""
    after, answer = stored["after"], stored["answer"]
    same = stored["same_batch"] and (stored["same_batch"], stored["same_number"])
    return _ROW.validate_python(
        {name: stored[name] for name in _PLAIN}
        | {name: after[name] for name in _AFTER if after is not None}
        | {name: answer[name] for name in _ANSWER}
        | {"same": same}
    )
