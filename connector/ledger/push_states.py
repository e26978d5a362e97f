"""Life of one row of a push, as data: its states, events and outcomes.

The table is the only place where a transition is written. The steps and the journal both look
their next state up in it, so that a transition that it does not have is an assertion and never
a silent step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

# -- Task ------------------------------------------------------------------------------------------
# What one spreadsheet row undertakes to do, once it has passed every check. Plain values.
#
# The rows' checker makes tasks, the push steps carry them out, and the ledger keeps them.


Mode = Literal["create", "update", "upsert", "convert"]
"""What a person asks of a whole file; an upsert becomes a create or an update, row by row."""

Operation = Literal["create", "update", "convert"]
"""What the API is asked to do for one row."""

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
"""How a row ended. Every row has exactly one.

`unchanged`: the record has all of it already, or this row was applied by an earlier push.
`duplicate`: another row of the file, or a record, is the same. `invalid`: our own checks refuse
it. `rejected`: the API refused it. `not_applied`: accepted by the API, whose answer shows other
values than were sent. `conflict`: another user changed the record since. `held`: sent, its fate
unknown, for a person to settle. `not_sent`: the push ended before its turn.
"""

PreviewOutcome = RowOutcome | Operation
"""What would become of a row: the operation that would be sent for it, or its outcome already."""


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """A landed record: the answer that showed it last, as received.

    `is_whole` says that it was a detail: a list item shows fewer fields (API 2). `is_deleted` says
    that the record is known to be gone. `seen` is its detail as it was landed when a person last
    saw what the file would change, where that is asked for.
    """

    record: Mapping[str, Any]
    is_whole: bool = True
    is_deleted: bool = False
    seen: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One row's write.

    `number` is the row's number as a spreadsheet shows it (the headings are 1). `parent` is the
    content type's slug of a content item. `fields` are JSON values as a body takes them: the
    whole of a create, what is wanted of an update. `afterwards` is what create refuses and update
    accepts: it follows the create as an update. `record_id` names the record of an update or a
    conversion, and `base` holds what is landed of it under the names in `fields`. `identity` is
    what tells this record from others: the values of the natural key, by field.
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
"""Where a row stands.

`read`: it came from a file and nothing is undertaken yet. `planned`: to be written. `intent`:
the attempt is on the disk, and may be on its way. `unknown`: sent, the answer unknown, not looked
for yet. `settling`: looked for and not found, which proves nothing until no late commit is to be
expected. `held` and `ambiguous`: for a person, because nothing was found, or more than one.
`follows`: the same write is open in an earlier batch, or was applied otherwise than sent, and this
row ends as that one does.
`dropped`: a person gave the row up. The others are named as their outcomes are.
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
    "retried",
    "declared_applied",
    "resent",
    "looked_again",
    "dropped",
]
"""What befalls a row.

`begun`: the record is created, and what create refuses follows as an update. `unsent`: nothing
can have been applied. `altered`: applied, and the API shows other values than were sent.
`refused_afterwards`: the record is created, and the update after it is refused. `refused_in_doubt`:
refused, while an earlier attempt's fate is unknown. `confirmed`: refused because an earlier attempt
had been applied. `kept`: for a person. The last five are a person's own decisions.
"""

Step = Literal["first", "afterwards"]
"""What is being done for a row: its operation, or the update that follows its create."""

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
        "retried": "planned",
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
"""The next state, by state and event. A state that is not here is never left."""

TERMINAL: frozenset[State] = frozenset(get_args(State)) - TRANSITIONS.keys()
"""States that are never left."""

IN_DOUBT: frozenset[State] = frozenset(("intent", "unknown", "settling", "held", "ambiguous"))
"""States of a row that was sent, or may have been, and whose fate is not known."""

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
    """The state after an event. An event that the state lacks is our mistake."""
    following = TRANSITIONS.get(state, {})
    assert event in following, f"a row that is {state} cannot be {event}"
    return following[event]


def outcome_of(
    state: State, operation: Operation | None, *, is_begun: bool = False, is_in_doubt: bool = False
) -> RowOutcome:
    """Return the outcome of a row in that state if the push ended now.

    `is_begun`: its record is created, and the update after it is not done. `is_in_doubt`: an
    attempt's fate is unknown, whatever was decided since. A row that follows is called by
    `outcome_of_follower`.
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
    """Outcome of a row that follows another, by the outcome of that one."""
    is_done = followed in ("created", "updated", "converted")
    return "unchanged" if is_done else followed
