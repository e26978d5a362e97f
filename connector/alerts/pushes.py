"""What pushes have come to: failed, rows refused, rows in doubt.

Pure: records in, findings out. No file's name is repeated, since it may be a person's.
"""

from __future__ import annotations

from connector.advice import action_of
from connector.alerts.deciding import Finding, Seen, Subject
from connector.alerts.declared import DECLARED
from connector.alerts.words import sentence, told
from connector.ledger.push_health import Doubt, PushHealth, PushRun
from connector.words import counted


def of_pushes(health: PushHealth, *, is_under_way: bool) -> Seen:
    """How pushes have ended; `is_under_way` says whether one goes on."""
    # While one goes on, the batch that it works at has no outcome.
    ended = [each for each in health.runs if each.outcome is not None or not is_under_way]
    if ended:
        yield _last(ended[0])
    for resource in dict.fromkeys(each.resource for each in ended):
        last = next(each for each in ended if each.resource == resource)
        if last.outcome in ("done", "partial"):
            yield Subject("rows_rejected", resource), _refused(last)
    yield Subject("rows_in_doubt"), _doubt(health, is_under_way=is_under_way)


def _last(last: PushRun) -> tuple[Subject, Finding | None]:
    subject = Subject("push_failed")
    if last.outcome not in (None, "failed"):
        return subject, None
    said = f"The last push (batch {last.batch}, {last.resource})"
    if last.outcome is None:
        action = "Push the same file again: it goes on where it stopped."
        return subject, Finding(last.begun_at, f"{said} was cut off.", action)
    reason = told(last.message, last.error_code)
    return subject, Finding(
        last.ended_at, sentence(f"{said} failed", reason), action_of(last.error_code)
    )


def _refused(last: PushRun) -> Finding | None:
    if not last.refused:
        return None
    push = f"of the last push (batch {last.batch})"
    rows = counted(last.refused, f"row {push} was", f"rows {push} were")
    said = f"{last.resource}: {rows} not applied."
    return Finding(last.ended_at, said, DECLARED["rows_rejected"].action)


def _doubt(health: PushHealth, *, is_under_way: bool) -> Finding | None:
    found: list[Doubt] = [health.held] if health.held is not None else []
    if health.open is not None and not is_under_way:
        found.append(health.open)
    if not found:
        return None
    rows = counted(sum(each.rows for each in found), "row")
    return Finding(
        min(each.since for each in found),
        f"{rows} sent, and it is not known whether the API applied them.",
        DECLARED["rows_in_doubt"].action,
    )
