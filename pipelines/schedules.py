"""When runs begin by themselves: every night, during the day, once a week; all of it switched off.

Times come from the settings as they were when the definitions were loaded. Accounts whose times
are the common ones share a schedule; one with times of its own has its own, with its name in it. A
run is never asked for while another one of the account is under way: that is a skip with its
reason, and no queue of runs that come too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dagster as dg

from connector import OFF, Settings
from pipelines.accounts import PARTITION_TAG, Accounts, plain_name
from pipelines.jobs import FRESHNESS, INTRADAY, PULL, PULLING, SCRUB, UNDER_WAY
from pipelines.landing import KEYS

FRESHNESS_CRON = "5 * * * *"
"""Every hour: what is looked at is as old as a day or more."""

_Evaluated = dg.RunRequest | dg.SkipReason | list[dg.RunRequest]


@dataclass(frozen=True, slots=True)
class Kind:
    """A schedule of each account: its name, the setting of its time, its job, and what it does."""

    name: str
    setting: str
    job: str
    about: str

    def times(self, settings: Settings) -> tuple[str, str]:
        """When, and by the clock of which time zone."""
        return getattr(settings, self.setting).value, settings.time_zone.value


KINDS = (
    Kind("nightly_pull", "nightly_cron", PULL, "Pull, build the models and publish"),
    Kind("intraday_pull", "intraday_cron", INTRADAY, "Pull and publish"),
    Kind("weekly_scrub", "scrub_cron", SCRUB, "Look again at what seemed unchanged, and publish"),
)


def schedules_of(accounts: Accounts) -> Iterator[dg.ScheduleDefinition]:
    """The schedules of the accounts, all of them off until somebody switches them on."""
    for kind in KINDS:
        common = kind.times(accounts.common)
        own = {
            each.name: kind.times(each.settings)
            for each in accounts.named
            if each.name and each.settings and kind.times(each.settings) != common
        }
        shared = tuple(name for name in accounts.names if name not in own)
        if shared or not accounts.names:
            yield from _scheduled(kind, kind.name, common, accounts, shared)
        for name, times in own.items():
            title = f"{kind.name}_{plain_name(name)}"
            yield from _scheduled(kind, title, times, accounts, (name,))
    yield _freshness(accounts)


def _scheduled(
    kind: Kind, title: str, times: tuple[str, str], accounts: Accounts, names: tuple[str, ...]
) -> Iterator[dg.ScheduleDefinition]:
    """The schedule, unless its time is off."""
    cron, zone = times
    if cron == OFF:
        return
    whose = f" of {', '.join(names)}" if names else ""

    @dg.schedule(
        name=title,
        job_name=kind.job,
        cron_schedule=cron,
        execution_timezone=zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{kind.about}{whose}: '{cron}' by the clock of {zone}, unless a pull is"
        " already under way.",
    )
    def scheduled(context: dg.ScheduleEvaluationContext) -> _Evaluated:
        if accounts.problem is not None:
            return dg.SkipReason(accounts.problem)
        for sentence in accounts.nameless:
            context.log.warning(sentence)
        return asked_for(context, names)

    yield scheduled


def asked_for(context: dg.ScheduleEvaluationContext, names: Sequence[str]) -> _Evaluated:
    """A run for each account that has none under way, or which runs are; without accounts, one."""
    if not names:
        busy = pull_under_way(context.instance)
        return dg.SkipReason(_said(busy)) if busy else dg.RunRequest()
    reasons = {name: pull_under_way(context.instance, name) for name in names}
    skipped = [f"{name}: {_said(run)}" for name, run in reasons.items() if run]
    # Dagster asks for a key where there are several; one that was used is never asked for again.
    at = f"{context.scheduled_execution_time:%Y-%m-%dT%H:%M%z}"
    free = [
        dg.RunRequest(run_key=f"{name} {at}", partition_key=name)
        for name, run in reasons.items()
        if run is None
    ]
    if not free:
        return dg.SkipReason(" ".join(skipped))
    for reason in skipped:
        context.log.info(reason)
    return free


def pull_under_way(instance: dg.DagsterInstance, name: str | None = None) -> str | None:
    """The run that pulls for the account (None: whatever runs have no account), by its id."""
    tags = {} if name is None else {PARTITION_TAG: name}
    for run in instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY, tags=tags)):
        picked = (run.asset_selection or frozenset()) & set(KEYS.values())
        if run.job_name in PULLING or picked:
            return run.run_id
    return None


def _said(run_id: str) -> str:
    return f"Run {run_id} is already under way."


def _freshness(accounts: Accounts) -> dg.ScheduleDefinition:
    """The schedule of the check of the data's age."""

    @dg.schedule(
        name="hourly_freshness",
        job_name=FRESHNESS,
        cron_schedule=FRESHNESS_CRON,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Check how old the proven data of each account is; no request is sent.",
    )
    def hourly_freshness(context: dg.ScheduleEvaluationContext) -> _Evaluated:
        if accounts.problem is not None:
            return dg.SkipReason(accounts.problem)
        return dg.RunRequest()

    return hourly_freshness
