"""Steps of the push of one row. Pure: times, answers and the journal's rows are arguments.

    create   record the attempt, and send it. Unconfirmed: look it up, wait until it can no longer
             take effect, look it up again; then hold the row for a person.
    update   read the record first; send only what differs; refuse if another user changed it.
             Unconfirmed: read it again, and send what is still missing.
    convert  read the lead first; send once. Unconfirmed: read it; never send again.

Fields that a create refuses and an update accepts are sent as an update after the create. Every
transition is in the table of `push_states.py`, and is on the disk before the next step. An attempt
is on the disk before its first byte is sent. A row that cannot be finished now is left in a state
from which a later push continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.catalog.field import Kind
from connector.catalog.field_comparison import (
    differing_content_keys,
    differing_fields,
    is_same_value,
    unapplied_fields,
    values_by_key,
)
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Declaration, Resource
from connector.ledger.journal_records import RowStatus, Transition
from connector.ledger.push_plan import Problem, PushPolicy, shorten
from connector.ledger.push_states import Operation, RowEvent, Task
from connector.pushes.create_lookup import (
    LookupResult,
    SoughtRecord,
    find_created_record,
    find_ids_on_newest_page,
)
from connector.pushes.push_row import (
    ATTEMPTS_MAX,
    Accepted,
    ClaimedRecords,
    Declined,
    Lost,
    OpenCreates,
    PushRow,
    PushSteps,
    ReadOne,
    WaitUntil,
    conflict_problems,
    declined_problems,
)
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, UnreadableDetail

# -- Push create -----------------------------------------------------------------------------------
# Before the first attempt, the newest records are compared with the row. A row with an unconfirmed
# attempt was compared before that attempt.


_NEVER = datetime.min.replace(tzinfo=UTC)


def create(row: PushRow) -> PushSteps[bool]:
    """Send the create, and record its result. Return True if the row can continue now."""
    if not row.is_in_doubt and not (yield from _check_is_new(row)):
        return False
    answer = yield from row.send_attempt("create", row.task.fields)
    if isinstance(answer, Accepted):
        misfit = yield from _reason_not_ours(row, answer.record)
        if misfit is not None:
            yield from row.record_lost(Lost(f"the row was {misfit}", misfit))
            return True
    match answer:
        case None:
            return False
        case Accepted(record):
            problems = altered_problems(row.resource, row.task.fields, record.raw)
            move = Transition("accepted", "", problems, fate="accepted")
            yield from _record_created(row, move, record)
        case Declined():
            problems = declined_problems(row.resource, answer, row.task.fields)
            move = Transition(
                "refused", answer.code, problems, fate="refused", reason=answer.message
            )
            if row.is_in_doubt:
                # The record of an earlier attempt may be the reason of the refusal.
                move = replace(move, event="refused_in_doubt", code="refused_in_doubt")
            yield from row.record_transition(move)
    return row.can_retry


def _reason_not_ours(row: PushRow, record: Resource) -> PushSteps[str | None]:
    """Return why the record of an answer cannot be the row's; None if it can be.

    The client has compared the record with the request. It does not know which records exist, and
    without the server's clock it could not compare the record's age.
    """
    if (yield ClaimedRecords((record.id,))):
        return f"answered with {record.id}, which existed before the request"
    # Without the server's clock, the attempt may be dated by our own.
    earliest = row.attempts[-1].sent_after - timedelta(seconds=LATENESS_UNTIMED_SECONDS)
    if record.served_at is None and record.created_at < earliest:
        return f"answered with {record.id}, which was created before the request"
    if not row.task.identity:
        # Another row that is being sent may have made a record that has all values of this one.
        rivals: Iterable[Mapping[str, Any]] = yield OpenCreates()
        if any(not unapplied_fields(row.resource, sent, record.raw) for sent in rivals):
            return f"answered with {record.id}, which may belong to another row"
    return None


def _check_is_new(row: PushRow) -> PushSteps[bool]:
    """Return True unless the record of the row is among the newest records.

    A row whose record exists ends here as a duplicate. If the newest records cannot be read, the
    row stays planned, and the result is False.
    """
    if not row.task.identity:
        return True
    there = yield from find_ids_on_newest_page(row.resource, row.task.identity)
    if there is None:
        return False
    if there:
        problem = Problem(
            "already_there",
            "someone else has created the same record since the last pull",
            found=", ".join(there),
            fix="Check the record. Then remove the row, or push it with --mode upsert.",
        )
        id = there[0] if len(there) == 1 else None
        yield from row.record_transition(
            Transition("repeated", "already_there", (problem,), record_id=id)
        )
    return not there


def look_up_create(row: PushRow) -> PushSteps[bool]:
    """Search for the record that an unconfirmed create may have made, and record the result.

    Waits first if the create was looked up before. Returns False if the list or a record could not
    be read, and then records nothing.
    """
    if row.state == "settling":
        yield WaitUntil(row.settled_at)
    sighting = yield from find_created_record(_sought_record(row))
    if sighting is None:
        return False
    if len(sighting.matches) == 1:
        record = sighting.matches[0].record
        move = Transition("found", "found_after_doubt", is_detail=True)
        yield from _record_created(row, move, record)
    elif sighting.matches:
        ids = tuple(each.record.id for each in sighting.matches)
        problems = row.unconfirmed_problems("several_matches", ids)
        yield from row.record_transition(Transition("several", "several_matches", problems))
    else:
        if row.state == "unknown":
            yield from row.record_transition(Transition("absent", "in_doubt"))
        if sighting.started_at >= row.settled_at:
            yield from row.record_transition(_transition_if_not_found(row, sighting))
    return True


def _record_created(row: PushRow, move: Transition, record: Resource) -> PushSteps[None]:
    """Record that the record is created: the row has ended, or the update after it is next."""
    if not row.task.afterwards:
        yield from row.record_applied(move, record)
        return
    row.is_altered |= any(each.code == "values_differ" for each in move.problems)
    shown = dict(record.raw)
    yield from row.record_transition(replace(move, event="begun", before=shown), record)
    row.record_id, row.before = record.id, shown
    row.is_begun, row.is_in_doubt, row.attempts = True, False, []
    if all(name in shown for name in row.task.afterwards):
        row.fresh_record = FoundDetail(record, record.served_at or _NEVER)


def _transition_if_not_found(row: PushRow, sighting: LookupResult) -> Transition:
    """Return the transition of a row whose record was not found and can no longer appear."""
    if sighting.similar_ids:
        return Transition(
            "several", "look_alike", row.unconfirmed_problems("look_alike", sighting.similar_ids)
        )
    if row.attempts[-1].fate == "refused":
        # The problems that the API returned stay.
        return Transition("kept", "refused_in_doubt")
    code = "not_found" if sighting.is_complete else "look_incomplete"
    return Transition("kept", code, row.unconfirmed_problems(code))


def _sought_record(row: PushRow) -> SoughtRecord:
    """Return the record that the row's unconfirmed create may have made."""
    return SoughtRecord(
        row.resource,
        row.task.fields,
        row.task.identity,
        next(each for each in row.attempts if each.fate in (None, "lost")),
        row.policy.lateness_seconds,
    )


# -- Push update -----------------------------------------------------------------------------------
# An update reads the record first, and sends only values that differ. After an unconfirmed attempt,
# the same comparison shows what was applied, and missing values are sent again: a PUT may be
# repeated.


def update(row: PushRow) -> PushSteps[bool]:
    """Read the record, and send the values that differ.

    Ends the row as `changed_elsewhere` if another user changed one of them, unless the policy
    overwrites. For an unconfirmed update, records its result. Returns False if this run must leave
    the row; otherwise the row's state shows the next step, if any.
    """
    found, row.fresh_record = row.fresh_record, None
    outcome: Outcome = found or (yield ReadOne(row.id))
    if isinstance(outcome, UnreadableDetail):
        return False
    if isinstance(outcome, DeletionProof):
        yield from row.record_transition(_transition_if_deleted(row))
        return False
    record = outcome.record
    base = row.task.base if row.before is None else row.before
    overwrite = row.policy.overwrite
    left = plan_update(row.resource, _wanted_fields(row), base, record.raw, overwrite=overwrite)
    if left.conflicts:
        problems = conflict_problems(left.conflicts, _wanted_fields(row), base, record.raw)
        move = Transition("changed_elsewhere", "changed_elsewhere", problems, is_detail=True)
        yield from row.record_transition(move, record)
    elif not left.body or (not left.has_readable_field and _attempt_wrote_readable_field(row)):
        yield from _finish_unchanged(row, record)
    elif row.state == "planned":
        return (yield from _send_update(row, left.body, dict(record.raw)))
    elif row.unknown_attempts >= ATTEMPTS_MAX:
        yield from row.record_transition(
            Transition("kept", "attempts_spent", row.unconfirmed_problems("attempts_spent"))
        )
    else:
        yield from row.record_transition(Transition("unapplied"))
        row.is_in_doubt, row.fresh_record = False, outcome
    return True


def _transition_if_deleted(row: PushRow) -> Transition:
    """Return the transition of a row whose record does not exist, by the row's state."""
    event: RowEvent = "missing" if row.state == "planned" else "changed_elsewhere"
    problem = Problem(
        "record_gone",
        "the record no longer exists",
        received=row.id,
        fix="Run 'connector pull'. Then create the record again, or remove the row.",
    )
    return Transition("refused_afterwards" if row.is_begun else event, "record_gone", (problem,))


def _send_update(row: PushRow, body: Mapping[str, Any], now: Mapping[str, Any]) -> PushSteps[bool]:
    """Send an update with this body, and record its result. Return True if the row can continue
    now.
    """
    answer = yield from row.send_attempt("update", body, now if row.before is None else None)
    match answer:
        case None:
            return False
        case Accepted(record):
            problems = altered_problems(row.resource, _wanted_fields(row), record.raw)
            yield from row.record_applied(
                Transition("accepted", "", problems, fate="accepted"), record
            )
        case Declined():
            problems = declined_problems(row.resource, answer, body)
            move = Transition(
                "refused", answer.code, problems, fate="refused", reason=answer.message
            )
            if row.is_begun:
                move = replace(move, event="refused_afterwards", code="afterwards_refused")
            yield from row.record_transition(replace(move, record_id=row.id))
    return row.can_retry


def _wanted_fields(row: PushRow) -> Mapping[str, Any]:
    """Return the values of the row's present step: of its update, or of the update after its
    create.
    """
    return row.task.afterwards if row.is_begun else row.task.fields


def _attempt_wrote_readable_field(row: PushRow) -> bool:
    """Return True if the unconfirmed attempt wrote a field that the API returns."""
    if row.state != "unknown" or row.before is None:
        return False
    whole = plan_update(row.resource, _wanted_fields(row), {}, row.before, overwrite=True)
    return whole.has_readable_field


def _finish_unchanged(row: PushRow, record: Resource) -> PushSteps[None]:
    """End the row, since its record has all values: from an attempt, or before any."""
    if row.is_begun or row.unknown_attempts:
        code = "found_after_doubt" if row.unknown_attempts else ""
        yield from row.record_applied(Transition("found", code, is_detail=True), record)
    else:
        yield from row.record_transition(
            Transition("up_to_date", "up_to_date", is_detail=True), record
        )


# -- Push convert ----------------------------------------------------------------------------------
# A conversion cannot be undone (API 4.6) and is never repeated automatically. After it, the stored
# lead may be gone, active, or unchanged (API 3.5). An unchanged lead proves nothing, so that the
# user has to decide.


CONVERTED_STATUS = "active"
"""Status in the answer to a conversion (API 3.5)."""


def convert(row: PushRow) -> PushSteps[bool]:
    """Read the lead and, unless it is converted, convert it. Return True if the row can continue
    now.
    """
    outcome: Outcome = yield ReadOne(row.id)
    if isinstance(outcome, UnreadableDetail):
        return False
    if isinstance(outcome, FoundDetail) and not _is_converted(outcome.record):
        before = dict(outcome.record.raw) if row.before is None else None
        answer = yield from row.send_attempt("convert", None, before)
        match answer:
            case None:
                return False
            case Accepted():
                # The answer may lack fields, so the record is not loaded from it.
                yield from row.record_transition(
                    Transition("accepted", record_id=row.id, fate="accepted")
                )
            case Declined():
                yield from row.record_transition(_transition_if_declined(row, answer))
        return row.can_retry
    if row.is_in_doubt:
        yield from row.record_transition(_transition_if_converted(row))
    elif isinstance(outcome, DeletionProof):
        yield from row.record_transition(_transition_if_deleted(row))
    else:
        move = Transition("up_to_date", "already_converted", is_detail=True)
        yield from row.record_transition(move, outcome.record)
    return True


def check_conversion(row: PushRow) -> PushSteps[bool]:
    """Read the lead, and record whether an unconfirmed conversion has happened.

    Waits first if the lead was read before. Returns True if the row can continue now.
    """
    if row.state == "settling":
        yield WaitUntil(row.settled_at)
    outcome: Outcome = yield ReadOne(row.id)
    if isinstance(outcome, UnreadableDetail):
        return False
    if isinstance(outcome, DeletionProof) or _is_converted(outcome.record):
        yield from row.record_transition(_transition_if_converted(row))
    elif row.state == "unknown":
        yield from row.record_transition(Transition("absent", "in_doubt"))
    else:
        yield from row.record_transition(
            Transition("kept", "not_converted", row.unconfirmed_problems("not_converted"))
        )
    return True


def _transition_if_converted(row: PushRow) -> Transition:
    """Return the transition of an unconfirmed conversion that has happened."""
    return Transition("found", "found_after_doubt", record_id=row.id)


def _transition_if_declined(row: PushRow, answer: Declined) -> Transition:
    """Return the transition of a refused conversion: applied if an earlier attempt explains the
    refusal.
    """
    if row.is_in_doubt and (answer.is_validation or answer.is_missing):
        # The lead is not as it was: the attempt before this one has converted it.
        reason = answer.message
        return Transition(
            "confirmed", "found_after_doubt", record_id=row.id, fate="refused", reason=reason
        )
    problems = declined_problems(row.resource, answer, {})
    return Transition("refused", answer.code, problems, fate="refused", reason=answer.message)


def _is_converted(lead: Resource) -> bool:
    """Return True if the lead has the status or the time of a conversion."""
    return bool(lead.raw.get("converted_at")) or lead.raw.get("status") == CONVERTED_STATUS


# -- Push ------------------------------------------------------------------------------------------


_Act = Callable[[PushRow], PushSteps[bool]]

_CARRIES_OUT: Mapping[Operation, _Act] = {"create": create, "update": update, "convert": convert}
_CLEARS_UP: Mapping[Operation, _Act] = {
    "create": look_up_create,
    "update": update,
    "convert": check_conversion,
}


def run_row(
    resource: Declaration, task: Task, policy: PushPolicy, status: RowStatus
) -> PushSteps[bool]:
    """Carry out the steps of a row as far as possible now.

    Returns True if the row is open: its write may have been applied, or was applied in part.
    """
    row = PushRow(resource, task, policy, status)
    is_going = True
    while is_going:
        operation: Operation = "update" if row.is_begun else task.operation
        if row.state == "planned":
            is_going = yield from _CARRIES_OUT[operation](row)
        elif row.state in ("unknown", "settling"):
            is_going = yield from _CLEARS_UP[operation](row)
        else:
            break
    return row.is_open


# -- Comparison with the record as it is now -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UpdateComparison:
    """What is left to send of an update.

    Attributes:
        body: Values to send.
        conflicts: Names of fields that another user changed.
        has_readable_field: Whether the API returns any field of the body.
    """

    body: Mapping[str, Any]
    conflicts: tuple[str, ...]
    has_readable_field: bool


def plan_update(
    resource: Declaration,
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    detail: Mapping[str, Any],
    *,
    overwrite: bool,
) -> UpdateComparison:
    """Compare the wanted values with the record as it is now, and with the values as last loaded
    (`base`).

    A field that has the wanted value is not sent. A field with neither the wanted nor the former
    value is a conflict, unless `overwrite`. Content values are compared by key and sent together,
    since the API does not say whether it merges them (API 4.7).
    """
    body: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in wanted:
        field = resource.field(name)
        if field.write_only:
            body[name] = wanted[name]
            continue
        now, former = detail.get(name), base.get(name)
        is_known = name in base
        if field.kind is Kind.OBJECT:
            keys = differing_content_keys(wanted[name], now)
            taken = [
                key
                for key in keys
                if is_known and differing_content_keys({key: values_by_key(former).get(key)}, now)
            ]
            if keys:
                body[name] = {**values_by_key(now), **wanted[name]}
            is_taken = bool(taken)
        elif is_same_value(field, wanted[name], now):
            continue
        else:
            body[name] = wanted[name]
            is_taken = is_known and not is_same_value(field, former, now)
        if is_taken and not overwrite:
            conflicts.append(name)
    is_shown = any(not resource.field(name).write_only for name in body)
    return UpdateComparison(body, tuple(conflicts), is_shown)


def altered_problems(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[Problem, ...]:
    """Return the problems of fields that the API accepted and returned with another value."""
    return tuple(
        Problem(
            "values_differ",
            f"{name} was accepted, but the API now shows another value",
            field=name,
            received=shorten(sent[name]),
            found=shorten(shown[name]),
            fix=("Check the record on the platform. The API may change this value when saving."),
        )
        for name in differing_fields(resource, sent, shown)
    )
