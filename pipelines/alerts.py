"""Alerts, checked and delivered beside the schedules: every few minutes, and when a run fails.

What an alert is, and whether it is due, is the connector's affair, which looks at the files of each
account and not at Dagster: a pull that never ran is noticed all the same. From Dagster comes only
what no file can tell: a run that failed before the connector could write anything down.
"""

# Annotations stay as they are, and not text: Dagster reads those of a sensor at import.
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from connector import ConnectorError, JobRun, check_alerts, configured_accounts, explain
from pipelines import jobs, pushes
from pipelines.accounts import PARTITION_TAG
from pipelines.connections import Account
from pipelines.states import ENDED

CHECK_SECONDS = 300
"""The least time between two checks."""

DELIVER_SECONDS = 40.0
"""For how long one check of all accounts sends: Dagster gives a sensor a minute."""

RUNS_LOOKED_AT = 25


@dg.sensor(
    minimum_interval_seconds=CHECK_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Check every account for what has failed, goes less well than it should or is"
    " silent, and send what is due to the webhook and by email.",
)
def alerts_sensor(
    context: dg.SensorEvaluationContext, account: dg.ResourceParam[Account]
) -> dg.SkipReason:
    """Check the accounts, and say what came of it; no run is ever asked for."""
    return dg.SkipReason(check(account, context.instance, context.log))


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Check every account as soon as a run has failed.",
)
def failure_alerts_sensor(
    context: dg.RunFailureSensorContext, account: dg.ResourceParam[Account]
) -> None:
    """Check the accounts."""
    check(account, context.instance, context.log)


def check(account: Account, instance: dg.DagsterInstance, log: logging.Logger) -> str:
    """Check every configured account, and say what came of it. One that cannot be checked is
    warned of, and keeps no other from being checked.
    """
    try:
        configured = configured_accounts(account.environ, account.cwd or Path.cwd())
    except ConnectorError as error:
        log.warning(f"alerts were not checked: {explain(error)}")
        return f"Alerts were not checked: {explain(error)}"
    until, sent, standing = time.monotonic() + DELIVER_SECONDS, 0, 0
    failures: list[str] = []
    for each in configured:
        name = each.name or "the unnamed account"
        if each.settings is None:
            failures += [f"{name}: {explain(each.error)}"] if each.error is not None else []
            continue
        is_untagged = len(configured) == 1 or each.name is None
        jobs = list(_jobs(instance, each.name, is_untagged=is_untagged))
        seconds = max(0.0, until - time.monotonic())
        try:
            done = check_alerts(each.settings, jobs=jobs, seconds=seconds)
        except ConnectorError as error:
            failures.append(f"{name}: {explain(error)}")
            continue
        failures += [f"{name}: {failure}" for failure in done.failures]
        sent, standing = sent + done.delivered, standing + len(done.standing)
    for failure in failures:
        log.warning(failure)
    return " ".join((f"Messages sent: {sent}; alerts that stand: {standing}.", *failures))


def _jobs(instance: dg.DagsterInstance, name: str | None, *, is_untagged: bool) -> Iterator[JobRun]:
    """The last run of each job that has ended, of those that belong to the account."""
    for job in (*jobs.PULLING, pushes.NAME):
        ended = dg.RunsFilter(job_name=job, statuses=ENDED)
        for record in instance.get_run_records(ended, limit=RUNS_LOOKED_AT):
            tagged = record.dagster_run.tags.get(PARTITION_TAG)
            if tagged != name and not (tagged is None and is_untagged):
                continue
            begun = record.start_time or record.create_timestamp.timestamp()
            yield JobRun(
                job,
                record.dagster_run.run_id,
                datetime.fromtimestamp(begun, UTC),
                failed=record.dagster_run.status == dg.DagsterRunStatus.FAILURE,
            )
            break
