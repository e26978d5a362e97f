"""Sensors: the inbox sensor starts a push for each new file, and two sensors send notifications.

The files of an account are pushed one after another, and resources that others refer to first.
"""

# Dagster reads the annotations of a sensor at import, so they are not postponed here.
import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from connector.errors import ConnectorError
from connector.operations.notify import notify
from connector.operations.problems import find_problems, read_state, settings_problem
from connector.pulls.report import explain
from connector.pushes.inbox import WaitingFile
from connector.pushes.inbox import scan_inbox as scan_folder
from connector.settings import configured_accounts
from pipelines import pushes
from pipelines.accounts import PARTITION_TAG, Account, Accounts
from pipelines.jobs import UNDER_WAY
from pipelines.pushes import PushConfig

LOOK_SECONDS = 30
"""Seconds between two checks. A file is pushed if two checks find it unchanged."""

RETRY_SECONDS = 900
"""Seconds until a file is tried again whose last run failed."""

FILE_TAG = "connector/inbox_file"
"""Tag of a run with the digest of its file's path and contents."""


@dataclass(frozen=True, slots=True)
class SensorScan:
    """Result of a scan of one account's inbox.

    Attributes:
        request: Run request, or the reason why there is none.
        seen: Files and their state, for the next scan.
        refused: Sentences to log as warnings.
    """

    request: dg.RunRequest | str
    seen: str | None
    refused: tuple[str, ...] = ()


def create_inbox_sensor(accounts: Accounts) -> dg.SensorDefinition:
    """Return the sensor that watches the inboxes of the accounts."""

    @dg.sensor(
        # By name: with the job itself, Dagster 1.13 warns about a parameter that it sets itself.
        job_name=pushes.NAME,
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Push each new file in inbox/RESOURCE/ of the data folder, with the options in"
        " the push.toml of the same folder. Without a push.toml, only preview it.",
    )
    def inbox_sensor(
        context: dg.SensorEvaluationContext, account: dg.ResourceParam[Account]
    ) -> dg.SensorResult:
        """Return a run request for the next unchanged file of each account, or the reasons."""
        watched: tuple[str | None, ...] = accounts.names or (None,)
        before: Mapping[str | None, str | None]
        before = _parse_cursor(context.cursor) if accounts.names else {None: context.cursor}
        scans = {
            name: scan_inbox(account, name, before.get(name), context.instance) for name in watched
        }
        for each in scans.values():
            for reason in each.refused:
                context.log.warning(reason)
        requests = [
            each.request for each in scans.values() if isinstance(each.request, dg.RunRequest)
        ]
        states = {name: each.seen for name, each in scans.items()}
        cursor = json.dumps(states) if accounts.names else states[None]
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        return dg.SensorResult(skip_reason=_skip_reasons(scans), cursor=cursor)

    return inbox_sensor


def scan_inbox(
    account: Account, name: str | None, state: str | None, instance: dg.DagsterInstance
) -> SensorScan:
    """Scan the inbox of an account; `state` is the result of the last scan.

    Invalid settings are returned as the reason why there is no request.
    """
    try:
        found = scan_folder(account.settings(name).folder, state)
    except dg.Failure as failure:
        return SensorScan(str(failure.description), state)
    return SensorScan(
        _next_request(instance, found.waiting, name), found.state, tuple(found.refused)
    )


def _parse_cursor(cursor: str | None) -> Mapping[str | None, str | None]:
    """Return the state of each account in the sensor's cursor; empty if it is invalid."""
    try:
        read = json.loads(cursor) if cursor else {}
    except ValueError:
        return {}
    states = read if isinstance(read, dict) else {}
    return {name: each for name, each in states.items() if isinstance(each, str)}


def _skip_reasons(scans: dict[str | None, SensorScan]) -> str:
    """Return the reasons why no run is requested, by account, in one text."""
    reasons = {name: " ".join((str(each.request), *each.refused)) for name, each in scans.items()}
    return " ".join(each if name is None else f"{name}: {each}" for name, each in reasons.items())


def _next_request(
    instance: dg.DagsterInstance, waiting: Iterable[WaitingFile], name: str | None
) -> dg.RunRequest | str:
    """Return a run request for the next file, or the reason why there is none."""
    tags = {} if name is None else {PARTITION_TAG: name}
    filters = dg.RunsFilter(job_name=pushes.NAME, statuses=UNDER_WAY, tags=tags)
    for run in instance.get_runs(filters, limit=1):
        return f"Run {run.run_id} is already queued or running."
    resting = 0
    for each in waiting:
        before = instance.get_run_records(dg.RunsFilter(tags={FILE_TAG: each.key, **tags}))
        # A file that a run moved away may come back, and is then handled like any other.
        failed = [run for run in before if not run.dagster_run.is_success]
        if any((run.end_time or 0.0) > time.time() - RETRY_SECONDS for run in failed):
            resting += 1
            continue
        return _run_request(each, len(before), name)
    failed_files = f" Files that wait for another attempt after a failed run: {resting}."
    return f"No new files.{failed_files if resting else ''}"


def _run_request(file: WaitingFile, attempt: int, name: str | None) -> dg.RunRequest:
    """Return the request for a push of the file with the options of its push.toml."""
    config = PushConfig(
        resource=file.resource, file=file.name, inbox_digest=file.digest, **file.options
    )
    whose = "" if name is None else f"{name}/"
    return dg.RunRequest(
        # Dagster starts one run per key; after a failed run the file may need another.
        run_key=f"{whose}{file.resource}/{file.name}:{file.digest}:{attempt}",
        run_config=dg.RunConfig(ops={pushes.OP: config}),
        tags={FILE_TAG: file.key, "connector/resource": file.resource},
        partition_key=name,
    )


# -- Notifications ---------------------------------------------------------------------------------
# The connector finds the problems in the files of each account and not in Dagster, so that a pull
# that never ran is noticed.

CHECK_SECONDS = 300
"""Minimum number of seconds between two checks."""

SEND_SECONDS = 40.0
"""Time limit of one check of all accounts: Dagster gives a sensor a minute."""


@dg.sensor(
    minimum_interval_seconds=CHECK_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Send a message to the addresses of notify_urls if the problems of an account"
    " changed since the last message.",
)
def notify_sensor(
    context: dg.SensorEvaluationContext, account: dg.ResourceParam[Account]
) -> dg.SkipReason:
    """Check the accounts and return the result; this sensor never starts a run."""
    return dg.SkipReason(notify_all(account, context.log))


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Check the problems of every account immediately after a run fails.",
)
def failure_notify_sensor(
    context: dg.RunFailureSensorContext, account: dg.ResourceParam[Account]
) -> None:
    """Check the accounts after a run failed."""
    notify_all(account, context.log)


def notify_all(account: Account, log: logging.Logger) -> str:
    """Send a message for each configured account whose problems changed. Return a summary.

    An account that cannot be checked is logged as a warning and does not affect other accounts.
    """
    try:
        configured = configured_accounts(account.environ, account.folder)
    except ConnectorError as error:
        log.warning(f"the accounts were not checked: {explain(error)}")
        return f"The accounts were not checked: {explain(error)}"
    until, now, sent, found, failures = (
        time.monotonic() + SEND_SECONDS, datetime.now(UTC), 0, 0, list[str]()
    )  # fmt: skip
    for each in configured:
        name = each.name or "the unnamed account"
        settings = each.settings or each.settings_for_alerts
        if time.monotonic() >= until:
            failures.append(f"{name}: not checked in time; the next check continues.")
        elif settings is None:
            failures.append(f"{name}: {explain(each.error)}" if each.error else name)
        else:
            problems = (
                [settings_problem(each.error)]
                if each.error
                else find_problems(read_state(settings, now))
            )
            found += len(problems)
            try:
                sent += notify(settings, problems)
            except ConnectorError as error:
                failures.append(f"{name}: {explain(error)}")
    for failure in failures:
        log.warning(failure)
    return " ".join((f"Messages sent: {sent}; problems: {found}.", *failures))
