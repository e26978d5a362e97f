"""A conversion: read first, sent once, never repeated by itself. It cannot be undone (API 4.6).

What the stored lead is after it is not shown (API 3.5): it may be gone, active, or as before. So
only the first two say that it happened; the third says nothing, and the row is a person's.
"""

from __future__ import annotations

from connector.engine.ask import Found, Gone, Unread
from connector.engine.push_asks import Accepted, Declined, Move, Steps, read_one, wait_until
from connector.engine.push_row import Row
from connector.engine.push_told import declined_problems, doubtful
from connector.engine.push_update import gone
from connector.resource import Resource

CONVERTED_STATUS = "active"
"""The status that a conversion is answered with (API 3.5)."""


def convert(row: Row) -> Steps[bool]:
    """Read the lead and convert it. Says whether to go on."""
    outcome = yield from read_one(row.id)
    if isinstance(outcome, Unread):
        return False
    if isinstance(outcome, Found) and not _is_converted(outcome.record):
        before = dict(outcome.record.raw) if row.before is None else None
        answer = yield from row.attempt("convert", None, before)
        match answer:
            case None:
                return False
            case Accepted():
                # The further fields of this answer are not shown, so that nothing of it is landed.
                yield from row.move(Move("accepted", record_id=row.id, fate="accepted"))
            case Declined():
                yield from row.move(_declined(row, answer))
        return row.can_repeat
    if row.is_in_doubt:
        yield from row.move(_found(row))
    elif isinstance(outcome, Gone):
        yield from row.move(gone(row))
    else:
        move = Move("up_to_date", "already_converted", is_detail=True)
        yield from row.move(move, outcome.record)
    return True


def look_at_lead(row: Row) -> Steps[bool]:
    """Whether a conversion in doubt has happened. Says whether to go on."""
    if row.state == "settling":
        yield from wait_until(row.settled_at)
    outcome = yield from read_one(row.id)
    if isinstance(outcome, Unread):
        return False
    if isinstance(outcome, Gone) or _is_converted(outcome.record):
        yield from row.move(_found(row))
    elif row.state == "unknown":
        yield from row.move(Move("absent", "in_doubt"))
    else:
        yield from row.move(Move("kept", "not_converted", doubtful("not_converted")))
    return True


def _found(row: Row) -> Move:
    return Move("found", "found_after_doubt", record_id=row.id)


def _declined(row: Row, answer: Declined) -> Move:
    if row.is_in_doubt and (answer.is_validation or answer.is_missing):
        # The lead is not as it was: the attempt before this one has converted it.
        reason = answer.message
        return Move(
            "confirmed", "found_after_doubt", record_id=row.id, fate="refused", reason=reason
        )
    problems = declined_problems(row.resource, answer, {})
    return Move("refused", answer.code, problems, fate="refused", reason=answer.message)


def _is_converted(lead: Resource) -> bool:
    return bool(lead.raw.get("converted_at")) or lead.raw.get("status") == CONVERTED_STATUS
