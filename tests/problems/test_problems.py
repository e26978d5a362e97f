"""Nights of an account as facts of its files, each with the problems that a person would list."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from connector.errors import SettingsError, WarehouseError
from connector.operations.problems import AccountState, find_problems, settings_problem
from connector.settings.values import parse_age
from connector.state.lock import Holder
from connector.state.quota import BillingPeriod, MonthUse, QuotaExhaustion, QuotaStatus
from connector.state.row import Row
from connector.state.runs import Backup, Publication, ResourceRun, Run, RunHealth

NOW = datetime(2026, 12, 10, 9, 0, tzinfo=UTC)
NIGHT = datetime(2026, 12, 10, 2, 15, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JOBS = ResourceRun(
    "jobs", "done", proven=True, requests=2, lists=1, details=1, new=0, changed=0, unchanged=1,
    deleted=0, live=6, total=6, pending=0, bookmark_before=None, bookmark_after=None,
)  # fmt: skip


def pulls(*ends: str | None) -> tuple[Run, ...]:
    """Return pulls of the last nights, newest first, by outcome or by the code of their failure."""
    outcomes = (None, "done", "partial", "stopped", "interrupted")
    return tuple(
        Run(f"run-{days}", "pull", NIGHT - days * DAY, NIGHT - days * DAY,
            end if end in outcomes else "failed", 1.0, error_code=None if end in outcomes else end)
        for days, end in enumerate(ends)
    )  # fmt: skip


def publications(*ends: str | None, **more: Any) -> tuple[Publication, ...]:
    """Return publications of the last nights, newest first, by outcome."""
    return tuple(
        Publication(f"p-{days}", at, f"run-{days}", at, at, end, **(more if days == 0 else {}))
        for days, end in enumerate(ends)
        for at in [NIGHT - days * DAY]
    )


def partial(error_code: str | None, **more: Any) -> dict[str, Any]:
    """Return the facts of a pull that did not verify the jobs."""
    job = replace(JOBS, proven=False, outcome="partial", error_code=error_code, **more)
    return {"runs": pulls("partial", "done"), "results": [job]}


def backups(*days: int, last: Backup | None = None) -> dict[str, Any]:
    """Return the facts of complete backups this number of days ago, and of a later one."""
    made = [Backup(NIGHT - each * DAY, NIGHT, "/b", 1) for each in days]
    return {"backups": [*([last] if last else []), *made]}


def quota(used: int, limit: int | None, **more: Any) -> dict[str, Any]:
    """Return the facts of a month's requests."""
    month = MonthUse(BillingPeriod(date(2026, 12, 1), date(2027, 1, 1)), used, limit, 5)
    values = {"usual_day": None, "forecast": None, "exhaustion": None, "limit_per_minute": None}
    return {"quota": QuotaStatus(month, **{**values, **more})}


def night(
    runs: tuple[Run, ...] = pulls("done"),
    published: tuple[Publication, ...] = publications("published"),
    results: tuple[ResourceRun, ...] = (JOBS,),
    hours: float = 6.75,
    **facts: Any,
) -> AccountState:
    """Return the state of an account; its published file is verified up to some hours ago."""
    resources = {each.resource: (runs[0].run_id, each) for each in results if runs}
    first = runs[-1].started_at if runs else None
    health = RunHealth(runs, first, resources, published)
    known = {"verified": {"jobs": NOW - hours * HOUR}, **facts}
    return AccountState(NOW, parse_age("26h"), health, **known)


def rows(held: int = 0, sent: int = 0) -> dict[str, Any]:
    """Return the facts of rows whose answer was lost: held since the night, or sent now."""
    found = [Row(n, "jobs", state="held", moved_at=NIGHT) for n in range(held)]
    return {
        "unconfirmed": [*found, *(Row(n, "jobs", state="sent", moved_at=NOW) for n in range(sent))]
    }


RUNNING: dict[str, Any] = {"holder": Holder("pull", 1, NIGHT)}
BACKING_UP: dict[str, Any] = {"holder": Holder("backup", 1, NIGHT)}
REFUSED = QuotaExhaustion(NIGHT, NIGHT + 20 * HOUR)
UNPUBLISHED: dict[str, Any] = {"published": (), "verified": None, "results": ()}

NIGHTS: list[tuple[str, AccountState, str]] = [
    ("no pull yet", AccountState(NOW, parse_age("26h")), ""),
    ("a quiet night", night(), ""),
    ("the first load runs", night(pulls(None), **UNPUBLISHED, **RUNNING), ""),
    ("the first pull is stopped, a day ago", night(pulls("stopped"), **UNPUBLISHED), ""),
    ("stopped at each of two days", night(pulls("stopped", "stopped"), **UNPUBLISHED), "data_old"),
    ("the machine stops the pull", night(pulls("stopped", "done")), ""),
    ("unreachable", night(pulls("unreachable", "done")), "pull_failed:unreachable"),
    ("reachable again", night(pulls("done", "unreachable", "unreachable")), ""),
    ("503", night(pulls("server_failed", "done")), "pull_failed:server_failed"),
    ("the key is revoked", night(pulls("unauthorized", "done")), "pull_failed:unauthorized"),
    ("a page of a proxy", night(pulls("unreadable_answer")), "pull_failed:unreadable_answer"),
    ("the API has moved", night(pulls("redirected", "done")), "pull_failed:redirected"),
    ("the certificate has expired", night(pulls("certificate_expired")),
     "pull_failed:certificate_expired"),
    ("of another host", night(pulls("certificate_of_another_host")),
     "pull_failed:certificate_of_another_host"),
    ("429 all night", night(pulls("rate_limited", "done")), "pull_failed:rate_limited"),
    ("six 429", night(**partial("rate_limited")), "pull_failed:jobs-try_again"),
    ("503 for the jobs", night(**partial("server_failed")), "pull_failed:jobs-try_again"),
    ("22 of 57 deleted", night(**partial("deletions_held")), "pull_failed:jobs-deletions_held"),
    ("deletions are held", night(results=(replace(JOBS, anomalies={"mass_deletion": 1}),)),
     "pull_failed:jobs-unverified"),
    ("the scope is lost", night(**partial("forbidden")), "pull_failed:jobs-forbidden"),
    ("jobs are no JSON", night(**partial("answer_broken")), "pull_failed:jobs-answer_broken"),
    ("a record is broken", night(**partial("record_unreadable")),
     "pull_failed:jobs-record_unreadable"),
    ("never a right total", night(**partial(None)), "pull_failed:jobs-unverified"),
    ("a field is unknown", night(results=(replace(JOBS, anomalies={"unknown_field": 3}),)), ""),
    ("the pull is killed", night(pulls(None, "done")), "pull_failed:killed"),
    ("it is killed three times", night(pulls(None, "interrupted", "interrupted", "done"), hours=80),
     "pull_failed:killed data_old"),
    ("a pull runs", night(pulls(None, "done"), publications("published"), **RUNNING), ""),
    ("it runs for days", night(pulls(None, "done"), hours=80, **RUNNING), "data_old"),
    ("the budget is spent", night(**partial("budget_spent")), ""),
    ("no scheduler runs", night(pulls("done"), hours=30.75), "data_old"),
    ("26 hours", night(hours=26), ""),
    ("the clock is three days ahead", night(hours=78), "data_old"),
    ("the clock is two days behind", night(hours=-42), ""),
    ("a failure explains the age", night(pulls("unauthorized", "done"), hours=30.75),
     "pull_failed:unauthorized"),
    ("and not for ever", night(pulls(*["unauthorized"] * 9), hours=222),
     "pull_failed:unauthorized data_old"),
    ("without the schema sync", night(published=publications("published"), verified={}), ""),
    ("... and old", night(published=publications(*["published"] * 4)[3:], verified={}), "data_old"),
    ("the publication is killed", night(published=publications(None, "published")),
     "publication_failed:killed"),
    ("killed for 40 nights",
     night(pulls(*["done"] * 40), publications(None, *["interrupted"] * 9), hours=966),
     "publication_failed:killed data_old"),
    ("a publication runs", night(pulls(None), publications(None, "published"), **RUNNING), ""),
    ("a check refuses it", night(published=publications("refused", failed_checks=("not_null",))),
     "publication_failed:refused not_null"),
    ("a seed has wrong headings",
     night(pulls("seed_invalid"), publications("failed", error_code="seed_invalid")),
     "publication_failed:seed_invalid"),
    ("the seed is corrected", night(published=publications("published", "failed")), ""),
    ("the published file is gone", night(verified=None), "unusable:published_missing"),
    ("the work file is gone", night(error=WarehouseError("", code="work_lost"), verified=None),
     "unusable:work_lost"),
    ("the state is overwritten", night((), (), error=WarehouseError("", code="not_a_state")),
     "unusable:not_a_state"),
    ("another address", night(error=SettingsError("", code="other_workspace")),
     "unusable:other_workspace"),
    ("the disk is full", night(error=WarehouseError("", code="disk_full")), "unusable:disk_full"),
    ("the disk is read-only", night(error=WarehouseError("")), "unusable:warehouse"),
    ("a lead is not answered", night(**rows(held=1)), "rows_unconfirmed"),
    ("a push is interrupted", night(**rows(sent=2)), "rows_unconfirmed"),
    ("a push runs", night(**rows(sent=2), **RUNNING), ""),
    ("the plan's requests are used up", night(**quota(96, 100)), "quota:spent"),
    ("the API says so", night(**quota(9, None, exhaustion=REFUSED)), "quota:spent"),
    ("the plan is too small", night(**quota(50, 100, forecast=106)), "quota:forecast"),
    ("the plan is larger", night(**quota(50, 100, forecast=105)), ""),
    ("no plan is set", night(**quota(5_000, None, forecast=9_000)), ""),
    ("a spent quota explains the age", night(hours=30.75, **quota(96, 100)), "quota:spent"),
    ("the disk of the backups is full", night(**backups(1, 2, last=Backup(NIGHT, NIGHT))),
     "backup_failed:failed"),
    ("the backup is killed", night(**backups(1, 2, last=Backup(NIGHT))), "backup_failed:failed"),
    ("the backup runs", night(**backups(1, 2, last=Backup(NIGHT)), **BACKING_UP), ""),
    ("the backup is complete", night(**backups(0, 1, 2)), ""),
    ("a backup was left out", night(**backups(1, 2, 3)), ""),
    ("two were left out", night(**backups(3, 4, 5)), "backup_failed:old"),
    ("weekly, 10 days ago", night(**backups(10, 17, 24)), ""),
    ("weekly, 15 days ago", night(**backups(15, 22, 29)), "backup_failed:old"),
    ("two causes", night(pulls("unauthorized"), **rows(held=1)),
     "pull_failed:unauthorized rows_unconfirmed"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "keys"), [n[1:] for n in NIGHTS], ids=[n[0] for n in NIGHTS])
def test_a_night_has_the_problems_that_a_person_would_list(state: AccountState, keys: str) -> None:
    found = find_problems(state)

    assert keys == " ".join(each.key for each in found)
    assert all(each.title and each.action.endswith(".") for each in found)


def test_failures_in_a_row_are_one_problem_since_the_first() -> None:
    (failed,) = find_problems(night(pulls(*["unreachable"] * 3, "done")))
    (killed,) = find_problems(night(pulls(None, "interrupted", "interrupted", "done")))
    (lost,) = find_problems(night(**rows(held=2, sent=1)))

    assert ("the last 3 pulls failed", NIGHT - 2 * DAY) == (failed.title, failed.since)
    assert ("the last 3 pulls did not end", NIGHT - 2 * DAY) == (killed.title, killed.since)
    assert ("3 pushed rows are unconfirmed", NIGHT) == (lost.title, lost.since)


def test_invalid_settings_are_a_problem() -> None:
    assert "unusable:settings" == settings_problem(SettingsError("billing_dai", action="-")).key
