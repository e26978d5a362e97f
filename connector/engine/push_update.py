"""An update: compared first, so that only what differs is sent and nobody else's change is lost.

It costs a detail and, where something differs, a PUT. In doubt the same comparison tells what
became of the attempt, and what is still missing is sent again: a PUT may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connector.engine.ask import Gone, Outcome, Unread
from connector.engine.push_asks import Accepted, Declined, Move, Steps, read_one
from connector.engine.push_row import ATTEMPTS_MAX, Row
from connector.engine.push_told import (
    conflict_problems,
    declined_problems,
    doubtful,
    gone_problem,
)
from connector.engine.sameness import altered, compare
from connector.resource import Resource


def update(row: Row) -> Steps[bool]:
    """Compare, and send what is missing. Says whether to go on."""
    found, row.seen = row.seen, None
    outcome: Outcome = found or (yield from read_one(row.id))
    if isinstance(outcome, Unread):
        return False
    if isinstance(outcome, Gone):
        yield from row.move(_gone(row))
        return False
    record = outcome.record
    base = row.task.base if row.before is None else row.before
    overwrite = row.terms.overwrite
    left = compare(row.resource, _wanted(row), base, record.raw, overwrite=overwrite)
    if left.conflicts:
        problems = conflict_problems(left.conflicts, _wanted(row), base, record.raw)
        move = Move("changed_elsewhere", "changed_elsewhere", problems, is_detail=True)
        yield from row.move(move, record)
    elif not left.body or (not left.is_shown and _has_shown(row)):
        yield from _nothing_left(row, record)
    elif row.state == "planned":
        return (yield from _send(row, left.body, dict(record.raw)))
    elif row.doubts >= ATTEMPTS_MAX:
        yield from row.move(Move("kept", "attempts_spent", doubtful("attempts_spent")))
    else:
        yield from row.move(Move("unapplied"))
        row.is_in_doubt, row.seen = False, outcome
    return True


def gone(row: Row) -> Move:
    """The record is not there: nothing was or will be written to it."""
    return Move("missing", "record_gone", (gone_problem(row.id),))


def _gone(row: Row) -> Move:
    if row.is_begun:
        return replace(gone(row), event="refused_afterwards")
    return gone(row) if row.state == "planned" else replace(gone(row), event="changed_elsewhere")


def _send(row: Row, body: Mapping[str, Any], now: Mapping[str, Any]) -> Steps[bool]:
    answer = yield from row.attempt("update", body, now if row.before is None else None)
    match answer:
        case None:
            return False
        case Accepted(record):
            problems = altered(row.resource, _wanted(row), record.raw)
            yield from row.applied(Move("accepted", "", problems, fate="accepted"), record)
        case Declined():
            problems = declined_problems(row.resource, answer, body)
            move = Move("refused", answer.code, problems, fate="refused", reason=answer.message)
            if row.is_begun:
                move = replace(move, event="refused_afterwards", code="afterwards_refused")
            yield from row.move(replace(move, record_id=row.id))
    return row.can_repeat


def _wanted(row: Row) -> Mapping[str, Any]:
    return row.task.afterwards if row.is_begun else row.task.fields


def _has_shown(row: Row) -> bool:
    """Whether the attempt in doubt wrote something that answers show, so that they tell of it."""
    if row.state != "unknown" or row.before is None:
        return False
    whole = compare(row.resource, _wanted(row), {}, row.before, overwrite=True)
    return whole.is_shown


def _nothing_left(row: Row, record: Resource) -> Steps[None]:
    """The record has all that is wanted: by an attempt of ours, or it had it before."""
    if row.is_begun or row.doubts:
        code = "found_after_doubt" if row.doubts else ""
        yield from row.applied(Move("found", code, is_detail=True), record)
    else:
        yield from row.move(Move("up_to_date", "up_to_date", is_detail=True), record)
