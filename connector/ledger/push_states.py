"""States, events and outcomes of a row of a push.

Every transition is in the table `TRANSITIONS`. The steps of a push and the journal look up the next
state there, so that an unknown transition is an assertion error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# -- Task ------------------------------------------------------------------------------------------
# A row that has passed every check becomes a task. The push carries it out, the ledger stores it.


Mode = Literal["create", "update", "upsert", "convert"]
"""Operation for a whole file. An upsert becomes a create or an update for each row."""

Operation = Literal["create", "update", "convert"]
"""Operation of one row."""

RowOutcome = Literal[
    "created",
    "updated",
    "converted",
    "unchanged",
    "duplicate",
    "invalid",
    "rejected",
    "not_applied",
    "conflict",
    "held",
    "not_sent",
]
"""Outcome of a row. Every row has exactly one.

`unchanged`: the record has all values already, or an earlier push applied the row. `duplicate`:
another row of the file, or a record, is the same. `invalid`: refused by the connector's checks.
`rejected`: refused by the API. `not_applied`: accepted by the API, which returned other values.
`conflict`: another user changed the record since. `held`: sent and unconfirmed; a person has to
decide. `not_sent`: the push ended before its turn.
"""

PreviewOutcome = RowOutcome | Operation
"""Outcome of a row in a preview: the operation that would be sent, or its outcome already."""


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """Record in the warehouse, as last received.

    Attributes:
        is_whole: Whether the record is complete. A list item has fewer fields (API 2).
        is_deleted: Whether the record was deleted.
        seen: Complete record at the time of the user's last preview of the file, if requested.
    """

    record: Mapping[str, Any]
    is_whole: bool = True
    is_deleted: bool = False
    seen: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Operation that one row of a spreadsheet requests, with its values.

    Attributes:
        number: Number of the row in the spreadsheet; the headings are row 1.
        fields: JSON values of the body: all fields of a create, or the wanted values of an update.
        parent: Slug of the content type of a content item.
        afterwards: Fields that are sent as an update after the create, since create refuses them.
        record_id: Record of an update or a conversion.
        base: Values of the fields of an update when they were last loaded, to detect conflicts.
        identity: Values of the natural key, by field.
    """

    number: int
    operation: Operation
    resource: str
    fields: Mapping[str, Any]
    parent: str | None = None
    afterwards: Mapping[str, Any] = field(default_factory=dict)
    record_id: str | None = None
    base: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)


# -- Push states -----------------------------------------------------------------------------------


State = Literal[
    "read",
    "planned",
    "intent",
    "unknown",
    "settling",
    "held",
    "ambiguous",
    "applied",
    "not_applied",
    "rejected",
    "conflict",
    "unchanged",
    "duplicate",
    "invalid",
    "follows",
    "dropped",
]
"""State of a row.

`read`: read from a file. `planned`: to be sent. `intent`: the attempt is recorded, and may have
been sent. `unknown`: sent, not answered, not looked up yet. `settling`: looked up and not found,
while it may still take effect. `held` and `ambiguous`: a person has to decide, because nothing was
found, or more than one record. `follows`: another row has the same write, and this row ends as that
one does. `dropped`: a person gave the row up. The others are named like their outcomes.
"""

RowEvent = Literal[
    "undertaken",
    "refused_here",
    "repeated",
    "up_to_date",
    "written_elsewhere",
    "changed_elsewhere",
    "missing",
    "intended",
    "unsent",
    "lost",
    "accepted",
    "altered",
    "begun",
    "refused",
    "refused_afterwards",
    "refused_in_doubt",
    "confirmed",
    "found",
    "several",
    "absent",
    "unapplied",
    "kept",
    "declared_applied",
    "resent",
    "looked_again",
    "dropped",
]
"""Event that changes the state of a row.

`begun`: the record is created, and an update follows. `unsent`: certainly nothing was applied.
`altered`: applied, and the API returned other values. `refused_afterwards`: the record is created,
and the update after it is refused. `refused_in_doubt`: refused, while the fate of an earlier
attempt is unknown. `confirmed`: refused because an earlier attempt was applied. `kept`: held for a
person. The last five are decisions of a person.
"""

Step = Literal["first", "afterwards"]
"""Step of a row: its operation, or the update that follows its create."""

TRANSITIONS: Mapping[State, Mapping[RowEvent, State]] = {
    "read": {
        "undertaken": "planned",
        "refused_here": "invalid",
        "repeated": "duplicate",
        "up_to_date": "unchanged",
        "written_elsewhere": "follows",
    },
    "planned": {
        "refused_here": "invalid",
        "repeated": "duplicate",
        "up_to_date": "unchanged",
        "written_elsewhere": "follows",
        "changed_elsewhere": "conflict",
        "missing": "rejected",
        "refused_afterwards": "not_applied",
        "found": "applied",
        "altered": "not_applied",
        "intended": "intent",
    },
    "intent": {
        "accepted": "applied",
        "altered": "not_applied",
        "begun": "planned",
        "confirmed": "applied",
        "refused": "rejected",
        "refused_afterwards": "not_applied",
        "refused_in_doubt": "unknown",
        "unsent": "planned",
        "lost": "unknown",
    },
    "unknown": {
        "found": "applied",
        "altered": "not_applied",
        "begun": "planned",
        "several": "ambiguous",
        "absent": "settling",
        "unapplied": "planned",
        "changed_elsewhere": "conflict",
        "refused_afterwards": "not_applied",
        "kept": "held",
    },
    "settling": {
        "found": "applied",
        "altered": "not_applied",
        "begun": "planned",
        "several": "ambiguous",
        "kept": "held",
    },
    "held": {
        "declared_applied": "applied",
        "begun": "planned",
        "resent": "planned",
        "looked_again": "unknown",
        "dropped": "dropped",
    },
    "ambiguous": {
        "declared_applied": "applied",
        "begun": "planned",
        "resent": "planned",
        "looked_again": "unknown",
        "dropped": "dropped",
    },
}
"""Next state, by state and event. A state that is missing here is final."""

IN_DOUBT: frozenset[State] = frozenset(("intent", "unknown", "settling", "held", "ambiguous"))
"""States of a row that was sent, or may have been, and whose fate is unknown."""

FOR_A_PERSON: frozenset[State] = frozenset(("held", "ambiguous"))
"""States that only a person's decision ends."""

_DONE: Mapping[Operation, RowOutcome] = {
    "create": "created",
    "update": "updated",
    "convert": "converted",
}
_OUTCOMES: Mapping[State, RowOutcome] = {
    "not_applied": "not_applied",
    "rejected": "rejected",
    "conflict": "conflict",
    "unchanged": "unchanged",
    "duplicate": "duplicate",
    "invalid": "invalid",
    "dropped": "not_sent",
}


def next_state(state: State, event: RowEvent) -> State:
    """Return the state after an event. The table `TRANSITIONS` must have the transition."""
    following = TRANSITIONS.get(state, {})
    assert event in following, f"a row that is {state} cannot be {event}"
    return following[event]


def outcome_of(
    state: State, operation: Operation | None, *, is_begun: bool = False, is_in_doubt: bool = False
) -> RowOutcome:
    """Return the outcome that a row in this state would have if the push ended now.

    For a row that follows another, use `outcome_of_follower`. `is_begun` is True if the record is
    created and the update after it is still to be sent. `is_in_doubt` is True if the fate of an
    attempt is unknown, also if the user has decided since.
    """
    assert state != "follows", "a row that follows has the outcome of another"
    if state == "applied":
        assert operation is not None
        return _DONE[operation]
    if state in IN_DOUBT:
        return "held"
    if state in _OUTCOMES:
        return _OUTCOMES[state]
    assert state == "planned", state
    if is_in_doubt:
        return "held"
    return "not_applied" if is_begun else "not_sent"


def outcome_of_follower(followed: RowOutcome) -> RowOutcome:
    """Return the outcome of a row that follows another, from the outcome of the other row."""
    is_done = followed in ("created", "updated", "converted")
    return "unchanged" if is_done else followed
