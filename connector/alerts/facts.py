"""Looking at an account: what its work file and its ledger say of it, read once.

Reads alone; what it means is the affair of the files beside this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connector.advice import action_of
from connector.alert_settings import Age
from connector.alerts.deciding import Finding, Seen, Sight, Subject
from connector.alerts.declared import DECLARED
from connector.alerts.month import of_month
from connector.alerts.pulls import of_pulls, of_shared
from connector.alerts.pushes import of_pushes
from connector.alerts.silence import of_silence
from connector.alerts.words import sentence, told
from connector.errors import WarehouseError
from connector.ledger import Ledger, Standing, terms_of
from connector.ledger.journal import PUSH_LEASE
from connector.ledger.push_health import PushHealth, read_push_health
from connector.settings import Settings
from connector.warehouse import Warehouse
from connector.warehouse.health import Health


@dataclass(frozen=True, slots=True)
class JobRun:
    """The last run of a job of Dagster that has ended; `failed` says how."""

    job: str
    run_id: str
    started_at: datetime
    failed: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What the files say. `health` is None where nothing was ever landed, or where the work file
    is `unusable`; `standing` and `pushes` are None where there is no ledger.
    """

    now: datetime
    max_age: Age
    health: Health | None
    unusable: WarehouseError | None
    standing: Standing | None
    pushes: PushHealth | None


def look(settings: Settings, now: datetime) -> Facts:
    """Look at the account's files; none is made. Raises a `WarehouseError` of the ledger."""
    warehouse = Warehouse(settings.folder)
    health, unusable = None, None
    try:
        if warehouse.exists:
            health = warehouse.health()
            if settings.lakehouse.value is None:
                # What was not brought there while there was a lakehouse is nobody's concern now.
                health = replace(health, shared=None)
    except WarehouseError as error:
        unusable = error
    standing, pushes = None, None
    with Ledger(settings.folder) as ledger:
        if ledger.exists:
            standing = ledger.standing(terms_of(settings), now)
            pushes = read_push_health(ledger)
    return Facts(now, settings.alert_max_age.value, health, unusable, standing, pushes)


def sight_of(facts: Facts, jobs: Sequence[JobRun] = ()) -> Sight:
    """What the facts, and the jobs of whoever runs them, come to."""
    return dict(_seen(facts, jobs))


def _seen(facts: Facts, jobs: Sequence[JobRun]) -> Seen:
    leases = facts.standing.leases if facts.standing is not None else ()
    under_way = [each for each in leases if not each.is_over(facts.now)]
    yield Subject("files_unusable"), _unusable(facts.unusable)
    if facts.unusable is None:
        yield from of_silence(facts.health, facts.now, facts.max_age)
    if facts.health is not None:
        yield from of_pulls(facts.health, {each.owner.run_id for each in under_way})
        yield from of_shared(facts.health.shared)
    if facts.pushes is not None:
        is_pushing = any(each.name == PUSH_LEASE for each in under_way)
        yield from of_pushes(facts.pushes, is_under_way=is_pushing)
    if facts.standing is not None:
        yield from of_month(facts.standing)
    yield from _of_jobs(facts, jobs)


def _unusable(error: WarehouseError | None) -> Finding | None:
    if error is None:
        return None
    said = sentence("The work file cannot be read", told(str(error), error.code))
    return Finding(None, said, error.action or action_of(error.code))


def _of_jobs(facts: Facts, jobs: Sequence[JobRun]) -> Seen:
    """Jobs that failed and left no trace: where the connector wrote something down since, that
    says more.
    """
    for each in jobs:
        found = None
        if each.failed and not _was_recorded(facts, each.started_at):
            said = f"The job {each.job!r} failed in Dagster (run {each.run_id})."
            found = Finding(each.started_at, said, DECLARED["job_failed"].action)
        yield Subject("job_failed", each.job), found


def _was_recorded(facts: Facts, since: datetime) -> bool:
    moments: list[datetime] = []
    if facts.health is not None:
        moments += [each.started_at for each in facts.health.runs[:1]]
        moments += [each.started_at for each in facts.health.publications[:1]]
    if facts.pushes is not None:
        moments += [each.ended_at or each.begun_at for each in facts.pushes.runs[:1]]
    return any(each >= since for each in moments)
