"""A create: sent once, looked for after silence, and adopted if it is found.

Before the first attempt the newest records are compared with the row, and the create is claimed
where folders share a journal. A row of which an attempt is in doubt is past both.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from connector.engine.ask import Found
from connector.engine.lookup import Sighting, Sought, already_there, look
from connector.engine.push_asks import Accepted, Declined, Move, Steps, claim, wait_until
from connector.engine.push_plan import RowProblem
from connector.engine.push_row import ATTEMPTS_MAX, Row
from connector.engine.push_told import (
    already_there_problem,
    claimed_problem,
    declined_problems,
    doubtful,
)
from connector.engine.sameness import altered
from connector.resource import Resource

_NEVER = datetime.min.replace(tzinfo=UTC)


def create(row: Row) -> Steps[bool]:
    """Send the create, and record what came of it. Says whether to go on."""
    if not row.is_in_doubt and not (yield from _may_be_sent(row)):
        return False
    answer = yield from row.attempt("create", body(row))
    match answer:
        case None:
            return False
        case Accepted(record):
            problems = altered(row.resource, body(row), record.raw)
            twins = (yield from _twins(row, record.id)) if row.is_in_doubt else ()
            code = twins[0].code if twins else ""
            move = Move("accepted", code, (*problems, *twins), fate="accepted")
            yield from _created(row, move, record)
        case Declined():
            problems = declined_problems(row.resource, answer, body(row))
            move = Move("refused", answer.code, problems, fate="refused", reason=answer.message)
            if row.is_in_doubt:
                # What refuses this one may be the record that the one before has made.
                move = replace(move, event="refused_in_doubt", code="refused_in_doubt")
            yield from row.move(move)
    return row.can_repeat


def _may_be_sent(row: Row) -> Steps[bool]:
    """Whether nobody else has made the record, as far as the newest records and the shared journal
    say. A row whose record is there ends here; one of which that could not be read stays planned.
    """
    if row.task.identity:
        there = yield from already_there(row.resource, row.task.identity)
        if there is None:
            return False
        if there:
            problems = (already_there_problem(there),)
            id = there[0] if len(there) == 1 else None
            yield from row.move(Move("repeated", "already_there", problems, record_id=id))
            return False
    claimant = yield from claim()
    if claimant is not None:
        problems = (claimed_problem(claimant),)
        id = claimant.record_id
        yield from row.move(Move("repeated", "claimed_elsewhere", problems, record_id=id))
    return claimant is None


def look_for_it(row: Row) -> Steps[bool]:
    """Look for the record that a create may have made. Says whether to go on."""
    if row.state == "settling":
        yield from wait_until(row.settled_at)
    sighting = yield from look(_sought(row))
    if sighting is None:
        return False
    if len(sighting.matches) == 1:
        record = sighting.matches[0].record
        # Only a mark can have told it, if anything differs.
        problems = altered(row.resource, body(row), record.raw)
        move = Move("found", "found_after_doubt", problems, is_detail=True)
        yield from _created(row, move, record)
    elif sighting.matches:
        ids = tuple(each.record.id for each in sighting.matches)
        yield from row.move(Move("several", "several_matches", doubtful("several_matches", ids)))
    else:
        if row.state == "unknown":
            yield from row.move(Move("absent", "in_doubt"))
        if sighting.looked_at >= row.settled_at:
            yield from row.move(_absent(row, sighting))
    return True


def body(row: Row) -> dict[str, Any]:
    """What is sent to create the row's record."""
    return {**row.task.fields, **row.marker}


def _created(row: Row, move: Move, record: Resource) -> Steps[None]:
    """The record exists: the row is done, or its update follows."""
    if not row.task.afterwards:
        yield from row.applied(move, record)
        return
    row.is_altered |= any(each.code == "values_differ" for each in move.problems)
    shown = dict(record.raw)
    yield from row.move(replace(move, event="begun", before=shown), record)
    row.record_id, row.before = record.id, shown
    row.is_begun, row.is_in_doubt, row.attempts = True, False, []
    if all(name in shown for name in row.task.afterwards):
        row.seen = Found(record, record.served_at or _NEVER)


def _absent(row: Row, sighting: Sighting) -> Move:
    """It is not there, and no late commit is to be expected any more."""
    if sighting.alike:
        return Move("several", "look_alike", doubtful("look_alike", sighting.alike))
    if row.attempts[-1].fate == "refused":
        # The problems that the API named stay.
        return Move("kept", "refused_in_doubt")
    if not sighting.is_complete:
        code = "look_incomplete"
    elif row.terms.policy == "hold":
        code = "not_found"
    elif row.doubts >= ATTEMPTS_MAX:
        code = "attempts_spent"
    else:
        return Move("retried")
    return Move("kept", code, doubtful(code))


def _twins(row: Row, id: str) -> Steps[tuple[RowProblem, ...]]:
    """What to tell of a repeat that was accepted: whether an attempt before it made one too."""
    sighting = yield from look(_sought(row))
    if sighting is None:
        return doubtful("twins_unknown", (id,))
    ids = tuple(each.record.id for each in sighting.matches if each.record.id != id)
    return doubtful("created_twice", (id, *ids)) if ids else ()


def _sought(row: Row) -> Sought:
    return Sought(
        row.resource,
        body(row),
        row.task.identity,
        row.marker,
        next(each for each in row.attempts if each.fate in (None, "lost")),
        row.terms.lateness_seconds,
    )
