"""What pulls and publications have come to: failed, not proven, odd, refused, or dear.

Pure: records in, findings out. What could not be looked at is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import takewhile
from statistics import median

from connector.advice import action_of
from connector.alerts.deciding import Finding, Seen, Subject
from connector.alerts.declared import DECLARED
from connector.alerts.words import sentence, told
from connector.warehouse import ResourceRun, Run
from connector.warehouse.health import Health
from connector.warehouse.publications import Publication
from connector.warehouse.shared import SharedPublication
from connector.words import counted

COST_PULLS_MIN = 5
"""So many earlier pulls say what is usual."""

COST_PULLS_MAX = 20
COST_FACTOR = 3
COST_REQUESTS_MIN = 100
"""A pull is dear that takes more than so many times the median of those before it, and at least so
many requests more."""

_QUIET = frozenset(("unproven", "mass_deletion", "late"))
"""Kinds of event that have an alert of their own, or, as lateness, are allowed for already."""

_REFUSED = frozenset(("refused", "failed"))


def of_pulls(health: Health, under_way: Collection[str]) -> Seen:
    """How pulls and publications have ended; `under_way` are the runs that go on."""
    ended = [run for run in health.runs if run.outcome is not None or run.run_id not in under_way]
    published = [each for each in health.publications if each.outcome in (*_REFUSED, "published")]
    if ended:
        yield from _of_last(ended, published)
    if published:
        yield from _of_published(published)
    for resource, (run_id, done) in health.resources.items():
        run = next((each for each in ended if each.run_id == run_id), None)
        yield from _of_resource(resource, done, run)
    yield from _of_cost(health, ended)


def _of_last(ended: Sequence[Run], published: Sequence[Publication]) -> Seen:
    last = ended[0]
    subject = Subject("pull_failed")
    refused = {each.run_id for each in published if each.outcome in _REFUSED}
    if _has_failed(last) and last.run_id not in refused:
        failed = list(takewhile(_has_failed, ended))
        since = failed[-1].ended_at or failed[-1].started_at
        cut_off = last.outcome in (None, "interrupted")
        said = f"The last pull {'was cut off' if cut_off else 'failed'}"
        if len(failed) > 1:
            said = f"The last {counted(len(failed), 'pull')} failed, or were cut off"
        action = "Run 'connector pull': it goes on where it stopped."
        if not cut_off:
            action = action_of(last.error_code)
        reason = told(last.message, last.error_code)
        yield subject, Finding(since, sentence(said, reason), action)
    elif last.outcome != "stopped" or last.requests:
        # A pull that was stopped before its first request has not asked the API anything.
        yield subject, None


def _has_failed(run: Run) -> bool:
    return run.outcome in (None, "failed", "interrupted")


def _of_published(published: Sequence[Publication]) -> Seen:
    last = published[0]
    subject = Subject("publication_failed")
    if last.outcome == "published":
        yield subject, None
        found = None
        if last.failed_checks:
            names = ", ".join(last.failed_checks)
            said = f"{counted(len(last.failed_checks), 'check')} found something: {names}."
            found = Finding(last.ended_at, said, DECLARED["checks_warn"].action)
        yield Subject("checks_warn"), found
        return
    failed = list(takewhile(lambda each: each.outcome in _REFUSED, published))
    since = failed[-1].ended_at or failed[-1].started_at
    verb = "was refused" if last.outcome == "refused" else "failed"
    said = sentence(f"The publication {verb}", told(last.message, last.error_code))
    yield subject, Finding(since, said, action_of(last.error_code))


def of_shared(last: SharedPublication | None) -> Seen:
    """How the latest attempt to bring what was published to the lakehouse has ended; None where
    there was none, or where there is no lakehouse any more.
    """
    found = None
    if last is not None and last.outcome == "failed":
        reason = told(last.message, last.error_code)
        said = sentence("What was published is not in the lakehouse", reason)
        found = Finding(last.ended_at, said, action_of(last.error_code))
    yield Subject("lakehouse_behind"), found


def _of_resource(resource: str, done: ResourceRun, run: Run | None) -> Seen:
    subject = Subject("not_proven", resource)
    is_told = (
        run is not None
        and run.outcome == "failed"
        and run.error_code is not None
        and run.error_code == done.error_code
    )
    if done.proven:
        yield subject, None
    elif done.outcome not in ("done", "stopped") and not is_told:
        reason = told(done.message, done.error_code)
        said = sentence(f"{resource} is {done.outcome}", reason)
        yield subject, Finding(_moment(run), said, action_of(done))
    refused = done.anomalies.get("mass_deletion")
    if refused or done.proven:
        found = None
        if refused:
            reason = told(done.message, done.error_code)
            said = sentence(f"{resource}: deletions were not believed", reason)
            found = Finding(_moment(run), said, action_of(done.error_code or "deletions_refused"))
        yield Subject("deletions_refused", resource), found
    odd = {kind: count for kind, count in done.anomalies.items() if kind not in _QUIET}
    if odd or done.proven:
        found = None
        if odd:
            shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(odd.items()))
            said = f"{resource}: the last pull met {shown}."
            found = Finding(_moment(run), said, DECLARED["anomalies"].action)
        yield Subject("anomalies", resource), found


def _moment(run: Run | None) -> datetime | None:
    return None if run is None else run.ended_at or run.started_at


def _of_cost(health: Health, ended: Sequence[Run]) -> Seen:
    """The last pull against those of the same command before it, without what was spent on
    looking again, and none of them held to a budget.
    """
    whole = [run for run in ended if run.outcome in ("done", "partial") and run.budget is None]
    if not ended or not whole or whole[0] is not ended[0]:
        return
    last = whole[0]
    costs = [
        (run.requests or 0) - health.scrubs.get(run.run_id, 0)
        for run in whole
        if run.command == last.command
    ]
    before = costs[1 : COST_PULLS_MAX + 1]
    usual = median(before) if len(before) >= COST_PULLS_MIN else None
    found = None
    if usual is not None and costs[0] > max(COST_FACTOR * usual, usual + COST_REQUESTS_MIN - 1):
        said = f"The last pull took {costs[0]:,} requests; the median of {len(before)} before it"
        found = Finding(last.started_at, f"{said} is {usual:,.0f}.", DECLARED["cost_rising"].action)
    yield Subject("cost_rising"), found
