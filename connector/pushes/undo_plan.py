"""Plan of the undo of one row, by its current record. Pure.

A field is restored if it still has the row's value. A record that the row created is deleted if it
has not changed since. Changes of other users stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from connector.catalog import declaration
from connector.catalog.field import Field, Kind
from connector.catalog.field_comparison import is_same_value, unapplied_fields
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Declaration
from connector.client.fit import EARLIER_SECONDS, contradicting_fields
from connector.ledger.journal_records import RowKey
from connector.ledger.push_plan import SHOWN_CHARACTERS_MAX, Problem, shorten
from connector.ledger.push_states import Operation, Task

_BY_HAND = "Check the record on the platform, and change it there if necessary."


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """Row that was sent and applied.

    Attributes:
        written: Values that were sent.
        before: Record before an update.
        updated_at: `updated_at` that the API returned after the row's last write; None without.
        altered_values: Fields that the API changed, with the values that it returned.
        sent_after: Server time before a create was first sent; None for an update.
        undone_updates: Later updates by the connector that were undone, each as (`updated_at`
            before it, `updated_at` after its undo).
    """

    key: RowKey
    task: Task
    record_id: str
    written: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    updated_at: str | None = None
    altered_values: Mapping[str, str] = field(default_factory=dict)
    sent_after: datetime | None = None
    undone_updates: tuple[tuple[str, str], ...] = ()

    @property
    def resource(self) -> Declaration:
        """Resource of the record."""
        return declaration(self.task.resource)

    @property
    def operation(self) -> Operation:
        """Operation of the row: create or update."""
        return self.task.operation


@dataclass(frozen=True, slots=True)
class UndoStep:
    """What undoes a row: delete its record, send a body, or nothing.

    Attributes:
        problems: Fields that cannot be undone.
        restores_any_field: Whether a field has its former value, or will have it by the body.
        present_values: Present values of the fields of the body.
    """

    deletes: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    restores_any_field: bool = False
    present_values: Mapping[str, Any] = field(default_factory=dict)


def plan_undo(row: WrittenRow, now: Mapping[str, Any], *, has_server_time: bool = True) -> UndoStep:
    """Return what undoes a row, by comparing it with its record as it is now.

    If the row cannot have written to that record, nothing is changed. Unless `has_server_time`, the
    API does not send its time, and times of the journal may be those of our own clock.
    """
    if (reason := _mismatch_reason(row, now, has_server_time=has_server_time)) is not None:
        return UndoStep(problems=(Problem("not_ours", reason, fix=_BY_HAND),))
    return (
        _plan_undo_of_create(row, now)
        if row.operation == "create"
        else _plan_undo_of_update(row, now)
    )


def _mismatch_reason(
    row: WrittenRow, now: Mapping[str, Any], *, has_server_time: bool
) -> str | None:
    """Return why the row cannot have written to the record; None if it can."""
    if now.get("id") != row.record_id or row.before.get("id", row.record_id) != row.record_id:
        return "the journal contains another record id than the changed record"
    if row.operation == "update":
        return None
    slack = EARLIER_SECONDS if has_server_time else LATENESS_UNTIMED_SECONDS
    assert row.sent_after is not None, "the row also sent a create"
    if _was_created_before(row.resource, now, row.sent_after - timedelta(seconds=slack)):
        return "the record is older than this push, so the row did not create it"
    return None


def is_unchanged_by_others(row: WrittenRow, now: Mapping[str, Any]) -> bool:
    """Return True if the record is unchanged since the row, except for undone updates."""
    stamp, moment = row.resource.field("updated_at"), now.get("updated_at")
    # A record that was never updated may show its creation as the last change.
    left = row.updated_at or (now.get("created_at") if row.operation == "create" else None)
    if left is None or moment is None:
        return row.operation == "create" and left is moment
    ours, others = [left], list(row.undone_updates)
    while found := [
        each for each in others if any(is_same_value(stamp, at, each[0]) for at in ours)
    ]:
        ours += [became for _, became in found]
        others = [each for each in others if each not in found]
    return any(is_same_value(stamp, at, moment) for at in ours)


def _plan_undo_of_create(row: WrittenRow, now: Mapping[str, Any]) -> UndoStep:
    """Delete the record if it is unchanged; otherwise return the problems."""
    resource = row.resource
    others = contradicting_fields(resource, row.written, now)
    changed = [
        name
        for name in unapplied_fields(resource, row.written, now)
        if name in others or not _is_as_shown(row, name, now.get(name))
    ]
    if changed:
        return UndoStep(
            problems=tuple(
                _changed_problem(
                    name, row.written[name], now.get(name), "so the record is not deleted"
                )
                for name in changed
            )
        )
    if not is_unchanged_by_others(row, now):
        message = "another field of the record was changed after the push"
        problem = Problem(
            "changed_since",
            message,
            field="updated_at",
            received=shorten(row.updated_at or now.get("created_at")),
            found=shorten(now.get("updated_at")),
            fix="Check the record on the platform, and delete it there if necessary.",
        )
        return UndoStep(problems=(problem,))
    return UndoStep(deletes=True)


def _plan_undo_of_update(row: WrittenRow, now: Mapping[str, Any]) -> UndoStep:
    """Restore each field that still has the row's value, and return problems of the others."""
    body: dict[str, Any] = {}
    problems: list[Problem] = []
    is_any_back = False
    for name, written in row.written.items():
        declared = row.resource.field(name)
        former, present = row.before.get(name), now.get(name)
        if declared.write_only:
            message = f"the API never returns {name}, so its former value is unknown"
            problems.append(Problem("never_shown", message, field=name, fix=_BY_HAND))
        elif name not in row.before:
            message = f"the former value of {name} is unknown"
            problems.append(Problem("never_shown", message, field=name, fix=_BY_HAND))
        elif declared.kind is Kind.OBJECT:
            back, taken = _plan_content_values(declared, written, former, present)
            problems += taken
            if back:
                body[name] = {**_as_mapping(present), **back}
            is_any_back |= bool(back) or not taken
        elif is_same_value(declared, former, present):
            is_any_back = True
        elif not (is_same_value(declared, written, present) or _is_as_shown(row, name, present)):
            problems.append(_changed_problem(name, written, present, "so it is not restored"))
        elif not _is_accepted(declared, former):
            message = f"{name} cannot be restored: an update does not accept its former value"
            allowed = ", ".join(declared.update.values or ()) or None
            shown = shorten(former)
            problems.append(
                Problem("not_accepted", message, None, shown, allowed, _BY_HAND, field=name)
            )
        else:
            body[name] = former
    return UndoStep(
        body=body,
        problems=tuple(problems),
        restores_any_field=is_any_back or bool(body),
        present_values={name: now.get(name) for name in body},
    )


def _plan_content_values(
    declared: Field, written: Any, former: Any, present: Any
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the content values to restore by key, and the problems of the other keys."""
    back: dict[str, Any] = {}
    taken: list[Problem] = []
    for key, value in _as_mapping(written).items():
        before = _as_mapping(former).get(key)
        if is_same_value(declared, {key: before}, present):
            continue
        if is_same_value(declared, {key: value}, present):
            back[key] = before
        else:
            name = f"{declared.name}.{key}"
            taken.append(
                _changed_problem(
                    name, value, _as_mapping(present).get(key), "so it is not restored"
                )
            )
    return back, taken


def _changed_problem(name: str, written: Any, present: Any, consequence: str) -> Problem:
    """Return the problem of a field that was changed after the push. `consequence` ends its
    sentence.
    """
    return Problem(
        "changed_since",
        f"{name} was changed after the push, {consequence}",
        field=name,
        received=shorten(written),
        found=shorten(present),
        fix=_BY_HAND,
    )


def _is_as_shown(row: WrittenRow, name: str, present: Any) -> bool:
    """Return True if the field has the value that the API returned. False if that text was cut."""
    shown = row.altered_values.get(name)
    return shown is not None and len(shown) < SHOWN_CHARACTERS_MAX and shorten(present) == shown


def _was_created_before(resource: Declaration, now: Mapping[str, Any], earliest: datetime) -> bool:
    """Return True if the record was created before this time, or has no valid time of creation."""
    created_at, _ = resource.field("created_at").parse(now.get("created_at"))
    return not isinstance(created_at, datetime) or created_at < earliest


def _is_accepted(declared: Field, value: Any) -> bool:
    """Return True if an update of the field accepts the value."""
    allowed = declared.update.values
    return declared.update.accepted and (value is None or allowed is None or value in allowed)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}
