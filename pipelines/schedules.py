"""Jobs that pull, and their schedules: nightly, intraday and weekly.

Each job has one schedule for all accounts without times of their own, so that a new account runs
without another switch. All schedules are off until an operator switches them on.
"""

# Dagster reads the annotations of a schedule at import, so they are not postponed here.
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.settings.values import OFF
from connector.state.lock import holder_of
from pipelines.accounts import (
    ACCOUNT_TAG,
    LANDING,
    PARTITION_TAG,
    UNNAMED,
    Account,
    Accounts,
    as_identifier,
)
from pipelines.models import PUBLISHED, is_recorded

NIGHTLY, INTRADAY, WEEKLY = "nightly_pull", "intraday_pull", "weekly_verification"

KINDS = {
    NIGHTLY: (
        "nightly_cron",
        "Pull all resources, build and check the models, and publish the file that analysts open.",
    ),
    INTRADAY: (
        "intraday_cron",
        "Pull all resources, build the models and publish. Records only the loaded resources and"
        " the published file.",
    ),
    WEEKLY: (
        "verification_cron",
        "Do the same as nightly_pull, and also compare every page of the API's lists and re-read"
        " the least recently verified records. The setting `verification_requests` limits the extra"
        " requests.",
    ),
}
"""Jobs that pull: the setting with the cron expression, and a description."""

SILENT_SECONDS = 300
"""Seconds without an event after which a run that holds no lock is dead.

A run without a lock may wait up to 120 seconds for its next retry.
"""

_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
UNDER_WAY = [each for each in dg.DagsterRunStatus if each not in _ENDED]
"""Includes queued runs."""

_CONFIG: Mapping[str, Mapping[str, Any]] = {
    WEEKLY: {"ops": {"pull_landing": {"config": {"verify_unchanged": True}}}}
}


def pull_jobs(accounts: Accounts) -> Iterator[Any]:
    """Yield the jobs that pull. Each run has the tag `connector/account`."""
    landing = [accounts.key(LANDING, name) for name in CATALOG]
    models = [
        accounts.key(node.schema, node.name)
        for node in accounts.project.nodes.values()
        if is_recorded(node)
    ]
    for name, (_, description) in KINDS.items():
        keys = [*landing, *([] if name == INTRADAY else models), accounts.key(PUBLISHED)]
        yield dg.define_asset_job(
            name,
            selection=dg.AssetSelection.assets(*keys),
            config=_job_config(accounts, name),
            tags={
                # A retry of the run leaves out the resources that were loaded.
                "dagster/retry_strategy": "FROM_ASSET_FAILURE",
                **({} if accounts.names else {ACCOUNT_TAG: UNNAMED}),
            },
            description=description,
            # One process at a time can open the warehouse.
            executor_def=dg.in_process_executor,
        )


def _job_config(accounts: Accounts, job: str) -> Any:
    """Return the configuration of a job. Each partition's runs get the tag of their account."""
    config = _CONFIG.get(job, {})
    if not accounts.names:
        return config

    @dg.static_partitioned_config(
        [*accounts.names], tags_for_partition_key_fn=lambda name: {ACCOUNT_TAG: name}
    )
    def partitioned(partition_key: str) -> Mapping[str, Any]:
        return config

    return partitioned


def create_schedules(accounts: Accounts) -> Iterator[dg.ScheduleDefinition]:
    """Yield the schedules of each job: a common one, and one per account with its own times."""
    for job, (setting, _) in KINDS.items():
        groups: dict[str, list[str | None]] = defaultdict(list)
        for name, settings in accounts.settings.items():
            times = (getattr(settings, setting), settings.time_zone)
            is_common = times == (getattr(accounts.common, setting), accounts.common.time_zone)
            groups["" if is_common else f"_{as_identifier(str(name))}"].append(name)
        for suffix, names in groups.items():
            if getattr(accounts.settings[names[0]], setting) != OFF:
                yield _create_schedule(accounts, job, suffix, names)


def _create_schedule(
    accounts: Accounts, job: str, suffix: str, names: Sequence[str | None]
) -> dg.ScheduleDefinition:
    """Return the schedule of a job for these accounts, which have the same times."""
    setting, about = KINDS[job]
    settings = accounts.settings[names[0]]
    whose = ", ".join(each for each in names if each)

    @dg.schedule(
        name=f"{job}_schedule{suffix}",
        job_name=job,
        cron_schedule=getattr(settings, setting),
        execution_timezone=settings.time_zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{about} Skips an account that is in use."
        + (f" Accounts: {whose}." if whose else ""),
    )
    def scheduled(
        context: dg.ScheduleEvaluationContext, account: dg.ResourceParam[Account]
    ) -> list[dg.RunRequest] | dg.SkipReason:
        """Return a run request for each account that is not in use, or the reasons."""
        at, requests, reasons = context.scheduled_execution_time, [], []
        for each in names:
            if reason := reason_to_skip(context.instance, account, each):
                reasons.append(f"{each}: {reason}" if each else reason)
                continue
            requests.append(
                dg.RunRequest(
                    # Dagster starts at most one run per key, even if a time is evaluated twice.
                    run_key=f"{each or UNNAMED} {at:%Y-%m-%dT%H:%M%z}",
                    partition_key=each,
                    run_config=_CONFIG.get(job),
                    tags={ACCOUNT_TAG: each or UNNAMED},
                )
            )
        for reason in reasons if requests else ():
            context.log.info(reason)
        return requests or dg.SkipReason(" ".join(reasons))

    return scheduled


def reason_to_skip(instance: dg.DagsterInstance, account: Account, name: str | None) -> str | None:
    """Return why the account's pull cannot start now; None if it can.

    The account's lock decides, which the system releases when a process is killed. A run that
    Dagster believes to be running, although nobody holds the lock, is reported as failed.
    """
    try:
        holder = holder_of(account.settings(name).folder)
    except (dg.Failure, ConnectorError):
        holder = None  # the run reports the error
    if holder is not None:
        return f"The account is in use: {holder}."
    for record in instance.get_run_records(dg.RunsFilter(statuses=UNDER_WAY)):
        run = record.dagster_run
        picked = {key.path[-2] for key in run.asset_selection or () if len(key.path) > 1}
        is_pull = run.job_name in KINDS or LANDING in picked
        if not is_pull or run.tags.get(PARTITION_TAG) != name:
            continue
        events = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
        last = max([record.create_timestamp.timestamp(), *(each.timestamp for each in events)])
        is_silent = time.time() - last > SILENT_SECONDS
        if run.status is dg.DagsterRunStatus.QUEUED or not is_silent:
            return f"Run {run.run_id} is already queued or running."
        instance.report_run_failed(
            run, "The process of this run has ended: nobody holds the lock of the account."
        )
    return None
