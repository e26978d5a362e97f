"""What takes back one row of a push, held against its record as it is now. Pure.

A field goes back where it still has the value that the row gave it; a record that the row made is
deleted where nothing of it has changed since. Whatever another user has changed stays as it is. A
value that an erasure has redacted proves nothing and is never put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from connector.catalog.field import Field
from connector.catalog.field_comparison import is_same, missing_fields
from connector.catalog.page import LATENESS_UNTIMED_SECONDS
from connector.catalog.resource import Declaration
from connector.catalog.value import VALUE_ERASED, Kind, is_redacted
from connector.client.answer_fit import EARLIER_SECONDS, contradicting_fields
from connector.ledger.push_plan import SHOWN_CHARACTERS_MAX, Problem, as_text

_BY_HAND = "Check the record in the application, and change it there if necessary."


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row's write to one record.

    `written` are the values that were sent and applied, `before` the record before an update.
    `updated_at` is as the API showed it after the row's last write, None where no answer did.
    `shown_as` are the fields that the API took otherwise than sent, as it showed them.
    `sent_after` is the server's time before a create was first sent, None for an update.
    `taken_back` are later writes of ours to the record that were undone, each as `updated_at`
    before it and after its undo.
    """

    resource: Declaration
    operation: Literal["create", "update"]
    record_id: str
    written: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    updated_at: str | None = None
    shown_as: Mapping[str, str] = field(default_factory=dict)
    sent_after: datetime | None = None
    taken_back: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class UndoStep:
    """The step that undoes a row: delete the record, send a body, or nothing.

    `problems` say what cannot be taken back. `is_any_back` says that a field has its former value
    again, or will have it once the body is sent. `left` has of each field that is sent the value
    it has now.
    """

    deletes: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    is_any_back: bool = False
    left: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_redacted(self) -> bool:
        """Whether an erasure is the only reason why nothing goes back."""
        codes = {each.code for each in self.problems}
        return codes == {VALUE_ERASED} and not self.is_any_back


def plan_undo(deed: WrittenRow, now: Mapping[str, Any], *, is_timed: bool = True) -> UndoStep:
    """Plan the step that undoes a row, by the record's present detail.

    A record that the row cannot have written to is left alone, whatever the journal says. Without
    the server's time (`is_timed`) the journal's times may be those of our own clock.
    """
    if (reason := _mismatch_reason(deed, now, is_timed=is_timed)) is not None:
        return UndoStep(problems=(Problem("not_ours", reason, fix=_BY_HAND),))
    return (
        _plan_undo_of_create(deed, now)
        if deed.operation == "create"
        else _plan_undo_of_update(deed, now)
    )


def _mismatch_reason(deed: WrittenRow, now: Mapping[str, Any], *, is_timed: bool) -> str | None:
    """Return why the record is not the one that the row wrote to; None if it can be."""
    if now.get("id") != deed.record_id or deed.before.get("id", deed.record_id) != deed.record_id:
        return "the journal contains another record id than the changed record"
    if deed.operation == "update":
        return None
    slack = EARLIER_SECONDS if is_timed else LATENESS_UNTIMED_SECONDS
    assert deed.sent_after is not None, "the row also sent a create"
    if _is_older(deed.resource, now, deed.sent_after - timedelta(seconds=slack)):
        return "the record is older than this push, so the row did not create it"
    return None


def is_unchanged_by_others(deed: WrittenRow, now: Mapping[str, Any]) -> bool:
    """Whether only writes of ours, since taken back, followed the row's."""
    stamp, moment = deed.resource.field("updated_at"), now.get("updated_at")
    # A record that was never changed has been changed last when it was made.
    left = deed.updated_at or (now.get("created_at") if deed.operation == "create" else None)
    if left is None or moment is None:
        return deed.operation == "create" and left is moment
    ours, others = [left], list(deed.taken_back)
    while found := [each for each in others if any(is_same(stamp, at, each[0]) for at in ours)]:
        ours += [became for _, became in found]
        others = [each for each in others if each not in found]
    return any(is_same(stamp, at, moment) for at in ours)


def _plan_undo_of_create(deed: WrittenRow, now: Mapping[str, Any]) -> UndoStep:
    resource = deed.resource
    known = {name: value for name, value in deed.written.items() if not is_redacted(value)}
    others = contradicting_fields(resource, known, now)
    changed = [
        name
        for name in missing_fields(resource, known, now)
        if name in others or not _is_as_shown(deed, name, now.get(name))
    ]
    if changed:
        return UndoStep(
            problems=tuple(
                _changed_problem(
                    name, deed.written[name], now.get(name), "so the record is not deleted"
                )
                for name in changed
            )
        )
    if not is_unchanged_by_others(deed, now):
        told = "another field of the record was changed after the push"
        problem = Problem(
            "changed_since",
            told,
            field="updated_at",
            received=as_text(deed.updated_at or now.get("created_at")),
            found=as_text(now.get("updated_at")),
            fix="Check the record in the application, and delete it there if necessary.",
        )
        return UndoStep(problems=(problem,))
    if len(known) < len(deed.written) and now.get("updated_at") is None:
        # Only the values themselves could prove that no one has changed the record.
        names = (name for name in deed.written if name not in known)
        return UndoStep(problems=tuple(_redacted_problem(name) for name in names))
    return UndoStep(deletes=True)


def _plan_undo_of_update(deed: WrittenRow, now: Mapping[str, Any]) -> UndoStep:
    body: dict[str, Any] = {}
    problems: list[Problem] = []
    is_any_back = False
    for name, written in deed.written.items():
        declared = deed.resource.field(name)
        former, present = deed.before.get(name), now.get(name)
        if declared.write_only:
            told = f"the API never returns {name}, so its former value is unknown"
            problems.append(Problem("never_shown", told, field=name, fix=_BY_HAND))
        elif name not in deed.before:
            told = f"the former value of {name} is unknown"
            problems.append(Problem("never_shown", told, field=name, fix=_BY_HAND))
        elif declared.kind is Kind.VALUES:
            back, taken = _plan_content_values(declared, written, former, present)
            problems += taken
            if back:
                body[name] = {**_values(present), **back}
            is_any_back |= bool(back) or not taken
        elif is_redacted(written) or is_redacted(former):
            problems.append(_redacted_problem(name))
        elif is_same(declared, former, present):
            is_any_back = True
        elif not (is_same(declared, written, present) or _is_as_shown(deed, name, present)):
            problems.append(_changed_problem(name, written, present, "so it is not restored"))
        elif not _is_accepted(declared, former):
            told = f"{name} cannot be restored: an update does not accept its former value"
            allowed = ", ".join(declared.update.values or ()) or None
            shown = as_text(former)
            problems.append(
                Problem("not_accepted", told, None, shown, allowed, _BY_HAND, field=name)
            )
        else:
            body[name] = former
    return UndoStep(
        body=body,
        problems=tuple(problems),
        is_any_back=is_any_back or bool(body),
        left={name: now.get(name) for name in body},
    )


def _plan_content_values(
    declared: Field, written: Any, former: Any, present: Any
) -> tuple[dict[str, Any], list[Problem]]:
    """Content values that go back, and those that another user has changed."""
    back: dict[str, Any] = {}
    taken: list[Problem] = []
    for key, value in _values(written).items():
        before = _values(former).get(key)
        if is_redacted([key, value, before, present]):
            # Values are sent whole, so that a mark beside this one would be sent with it.
            taken.append(_redacted_problem(f"{declared.name}.{key}"))
            continue
        if is_same(declared, {key: before}, present):
            continue
        if is_same(declared, {key: value}, present):
            back[key] = before
        else:
            name = f"{declared.name}.{key}"
            taken.append(
                _changed_problem(name, value, _values(present).get(key), "so it is not restored")
            )
    return back, taken


def _redacted_problem(name: str) -> Problem:
    told = f"{name} was changed by an erasure and is not restored"
    return Problem(VALUE_ERASED, told, field=name, fix=_BY_HAND)


def _changed_problem(name: str, written: Any, present: Any, so: str) -> Problem:
    return Problem(
        "changed_since",
        f"{name} was changed after the push, {so}",
        field=name,
        received=as_text(written),
        found=as_text(present),
        fix=_BY_HAND,
    )


def _is_as_shown(deed: WrittenRow, name: str, present: Any) -> bool:
    """Whether the field is as the API made it; a text cut short proves nothing."""
    shown = deed.shown_as.get(name)
    return shown is not None and len(shown) < SHOWN_CHARACTERS_MAX and as_text(present) == shown


def _is_older(resource: Declaration, now: Mapping[str, Any], earliest: datetime) -> bool:
    created_at, _ = resource.field("created_at").read(now.get("created_at"))
    return not isinstance(created_at, datetime) or created_at < earliest


def _is_accepted(declared: Field, value: Any) -> bool:
    """Whether an update takes the value, as far as is declared."""
    allowed = declared.update.values
    return declared.update.accepted and (value is None or allowed is None or value in allowed)


def _values(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
