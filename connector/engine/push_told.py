"""What is told of a row that did not go as asked: the problems, each with what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.engine.push_asks import Claimant, Declined
from connector.engine.push_plan import RowProblem
from connector.engine.sameness import as_text
from connector.resource import Declaration
from connector.value import VALUE_ERASED, is_redacted

_RESOLVE = "Look for the record in the application, then say with 'connector resolve' what it is."

DOUBTS: Mapping[str, str] = {
    "not_found": "it was sent and not answered, and no record of it is found",
    "not_converted": "the conversion was sent and not answered, and the lead looks as before",
    "attempts_spent": "it was sent several times and never answered",
    "look_incomplete": "it was sent and not answered, and the list could not be seen whole",
    "several_matches": "it was sent and not answered, and several records are as it was sent",
    "look_alike": "it was sent and not answered, and a record is like it without being the same",
    "created_twice": "it was sent again after it was not answered, and both have made a record",
    "twins_unknown": "it was sent again after it was not answered, and whether the first made a "
    "record as well could not be read",
}
"""What a person is told of a row in doubt, by code."""


def doubtful(code: str, ids: tuple[str, ...] = ()) -> tuple[RowProblem, ...]:
    """The problem of a row that a person must look at, with the records that it may be."""
    found = ", ".join(ids) or None
    return (RowProblem(code, DOUBTS[code], found=found, fix=_RESOLVE),)


def declined_problems(
    resource: Declaration, declined: Declined, sent: Mapping[str, Any]
) -> tuple[RowProblem, ...]:
    """The API's own messages, each beside its field, or beside the row where none is named."""
    problems = []
    for name, messages in declined.errors.items():
        is_field = name in resource.fields
        said = "; ".join(messages)
        problems.append(
            RowProblem(
                declined.code,
                said if is_field or not name else f"{name}: {said}",
                field=name if is_field else None,
                received=as_text(sent[name]) if name in sent else None,
                fix="Correct the value and push the row again.",
            )
        )
    if not problems:
        fix = "Correct the row and push it again."
        problems.append(RowProblem(declined.code, declined.message, fix=fix))
    return tuple(problems)


def conflict_problems(
    names: tuple[str, ...],
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    now: Mapping[str, Any],
) -> tuple[RowProblem, ...]:
    """A problem for every field that somebody else has changed, with the other value. Where an
    erasure has redacted the landed value, the other one is not shown: it may name the person.
    """
    problems = []
    for name in names:
        was_redacted = is_redacted(base[name])
        if was_redacted:
            told = f"{name} was changed here by an erasure, so that others' changes are not seen"
        else:
            known = repr(as_text(base[name]))
            told = f"{name} was changed by somebody else since it was landed as {known}"
        problem = RowProblem(
            VALUE_ERASED if was_redacted else "changed_elsewhere",
            told,
            field=name,
            received=as_text(wanted[name]),
            found=None if was_redacted else as_text(now.get(name)),
            fix="Look which value is right; --overwrite writes the file's.",
        )
        problems.append(problem)
    return tuple(problems)


def gone_problem(id: str) -> RowProblem:
    """The record to be written is not there any more."""
    return RowProblem(
        "record_gone",
        "the API has no such record any more",
        received=id,
        fix="Pull, and look why it is gone; then create it anew, or leave the row out.",
    )


def already_there_problem(ids: tuple[str, ...]) -> RowProblem:
    """A record of the row's identity is among the newest, and nothing here knew of it."""
    return RowProblem(
        "already_there",
        "a record like this was created by somebody else since the last pull",
        found=", ".join(ids),
        fix="Look at the record: take the row out, or push it with --mode upsert.",
    )


def claimed_problem(claimant: Claimant) -> RowProblem:
    """Another folder that shares the journal has claimed the create."""
    fix = "Wait until the push there has ended, or go on with it there; then push this row again."
    if claimant.record_id is not None:
        fix = "Pull, and take the row out. If that record was deleted since, push with --again."
    return RowProblem(
        "claimed_elsewhere",
        f"{claimant.holder} has claimed this row at {claimant.since:%Y-%m-%d %H:%M:%S} UTC",
        found=claimant.record_id,
        fix=fix,
    )


def unfit_problem(reason: str) -> RowProblem:
    """What was to be sent is no request."""
    return RowProblem("unfit", reason, fix="Correct the row's values.")
