"""Schedules: the nightly, intraday and weekly runs, and the hourly check of the data's age.

Each job has one schedule for the accounts of a time zone, so that a new account runs without
another switch. All schedules are off until an operator switches them on. A schedule skips an
account whose pull is still queued or running, so late runs never accumulate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg

from connector.settings import Settings
from connector.settings.values import OFF
from pipelines.accounts import PARTITION_TAG, Accounts
from pipelines.graph import KEYS
from pipelines.jobs import CONFIG, FRESHNESS, INTRADAY, NIGHTLY, PULLING, UNDER_WAY, WEEKLY

FRESHNESS_CRON = "5 * * * *"
"""Every hour, because the ages that the check compares are at least hours long."""

_TIME = "%Y-%m-%dT%H:%M%z"

_Evaluated = dg.RunRequest | dg.SkipReason | list[dg.RunRequest]


@dataclass(frozen=True, slots=True)
class ScheduleKind:
    """Schedule of a job: the setting with its cron expression, and a summary of the job."""

    job: str
    setting: str
    about: str

    @property
    def name(self) -> str:
        """Name of the schedule, as Dagster derives it from the job."""
        return f"{self.job}_schedule"

    def times(self, settings: Settings) -> tuple[str, str]:
        """Return the cron expression and the time zone in the settings."""
        return getattr(settings, self.setting), settings.time_zone


KINDS = (
    ScheduleKind(NIGHTLY, "nightly_cron", "Pull all resources, build the models and publish"),
    ScheduleKind(INTRADAY, "intraday_cron", "Pull all resources and publish if anything changed"),
    ScheduleKind(WEEKLY, "verification_cron", "Pull, verify unchanged records again and publish"),
)


def create_schedules(accounts: Accounts) -> Iterator[dg.ScheduleDefinition]:
    """Yield one schedule per job and time zone, and the hourly freshness check."""
    for kind in KINDS:
        crons = _crons(kind, accounts)
        common_zone = accounts.common.time_zone
        for zone in sorted(crons, key=lambda each: (each != common_zone, each)):
            suffix = "" if zone == common_zone else f"_{zone}"
            # Dagster allows letters, digits and underscores in a name.
            name = kind.name + "".join(c if c.isalnum() else "_" for c in suffix.lower())
            yield _create_schedule(kind, name, zone, crons[zone], accounts)
    yield _freshness_schedule(accounts)


def _crons(kind: ScheduleKind, accounts: Accounts) -> Mapping[str, Mapping[str | None, str]]:
    """Return cron expressions by time zone and account, without schedules that are off.

    An account whose settings are invalid has the common time, so that its runs report the error.
    Without named accounts, the only key is None.
    """
    settings = {each.name: each.settings or accounts.common for each in accounts.named}
    crons: dict[str, dict[str | None, str]] = defaultdict(dict)
    for name, each in (settings or {None: accounts.common}).items():
        cron, zone = kind.times(each)
        if cron != OFF:
            crons[zone][name] = cron
    return crons


def _create_schedule(
    kind: ScheduleKind, name: str, zone: str, crons: Mapping[str | None, str], accounts: Accounts
) -> dg.ScheduleDefinition:
    """Return the schedule of a job for the accounts in `crons`, which have the same time zone."""
    times = {cron: [n for n, each in crons.items() if each == cron] for cron in crons.values()}
    by_time = "; ".join(
        f"`{cron}` for {', '.join(n for n in names if n)}" if names != [None] else f"`{cron}`"
        for cron, names in times.items()
    )

    @dg.schedule(
        name=name,
        job_name=kind.job,
        cron_schedule=list(times),
        execution_timezone=zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{kind.about}. Times ({zone}): {by_time}. Skips an account whose pull is"
        " still queued or running.",
    )
    def scheduled(context: dg.ScheduleEvaluationContext) -> _Evaluated:
        if accounts.problem is not None:
            return dg.SkipReason(accounts.problem)
        for sentence in accounts.nameless:
            context.log.warning(sentence)
        if not accounts.names:
            busy = running_pull(context.instance)
            return (
                dg.SkipReason(_busy_reason(busy))
                if busy
                else dg.RunRequest(run_config=CONFIG.get(kind.job))
            )
        at = context.scheduled_execution_time
        due = [name for name, cron in crons.items() if name and _is_due(cron, zone, at)]
        return run_requests(context, due, CONFIG.get(kind.job))

    return scheduled


def _is_due(cron: str, zone: str, at: datetime) -> bool:
    """Return True if the cron expression includes this time, as Dagster interprets it."""
    times = dg.TimeWindowPartitionsDefinition(
        start=at, fmt=_TIME, cron_schedule=cron, timezone=zone
    )
    following = times.get_next_partition_window(at, respect_bounds=False)
    return following is not None and following.start == at


def run_requests(
    context: dg.ScheduleEvaluationContext,
    names: Sequence[str],
    config: Mapping[str, Any] | None = None,
) -> _Evaluated:
    """Return a run request for each account without a queued or running pull.

    Returns a skip reason if there is none.
    """
    runs = {name: running_pull(context.instance, name) for name in names}
    skipped = [f"{name}: {_busy_reason(run)}" for name, run in runs.items() if run]
    # Dagster starts at most one run per key, even if the same time is evaluated twice.
    at = context.scheduled_execution_time.strftime(_TIME)
    free = [
        dg.RunRequest(run_key=f"{name} {at}", partition_key=name, run_config=config)
        for name, run in runs.items()
        if run is None
    ]
    if not free:
        return dg.SkipReason(" ".join(skipped))
    for reason in skipped:
        context.log.info(reason)
    return free


def running_pull(instance: dg.DagsterInstance, name: str | None = None) -> str | None:
    """Return the id of the account's queued or running pull (None: of any pull)."""
    tags = {} if name is None else {PARTITION_TAG: name}
    for run in instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY, tags=tags)):
        picked = (run.asset_selection or frozenset()) & set(KEYS.values())
        if run.job_name in PULLING or picked:
            return run.run_id
    return None


def _busy_reason(run_id: str) -> str:
    """Return the sentence that the run is queued or running."""
    return f"Run {run_id} is already queued or running."


def _freshness_schedule(accounts: Accounts) -> dg.ScheduleDefinition:
    """Return the schedule that checks the age of the data."""

    @dg.schedule(
        name=f"{FRESHNESS}_schedule",
        job_name=FRESHNESS,
        cron_schedule=FRESHNESS_CRON,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Check the age of each account's data every hour. Sends no API requests.",
    )
    def hourly_freshness_check(context: dg.ScheduleEvaluationContext) -> _Evaluated:
        if accounts.problem is not None:
            return dg.SkipReason(accounts.problem)
        return dg.RunRequest()

    return hourly_freshness_check
