"""Sensors: one starts a push for each new file of an inbox, and one sends notifications.

The files of an account are pushed one after another, and resources that others refer to first.
"""

# Dagster reads the annotations of a sensor at import, so they are not postponed here.
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import dagster as dg

from connector.errors import ConnectorError, count_noun
from connector.operations.notify import notify
from connector.operations.problems import find_problems, read_state, settings_problem
from connector.pulls.report import explain
from connector.pushes.inbox import WaitingFile
from connector.pushes.inbox import scan_inbox as scan_folder
from connector.settings import configured_accounts
from pipelines import pushes
from pipelines.accounts import ACCOUNT_TAG, PARTITION_TAG, UNNAMED, Account, Accounts
from pipelines.pushes import PushConfig
from pipelines.schedules import UNDER_WAY

LOOK_SECONDS = 30
"""Seconds between two checks. A file is pushed if two checks find it unchanged."""

RETRY_SECONDS = 900
"""Seconds from a run that failed to the next run for the same file."""

FILE_TAG = "connector/inbox_file"
"""Tag of a run with the digest of its file's path and contents."""


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
        before = json.loads(context.cursor or "{}")
        states, requests, reasons = {}, [], []
        for name in accounts.names or (None,):
            title = name or UNNAMED
            whose = f"{name}: " if name else ""
            try:
                found = scan_folder(account.settings(name).folder, before.get(title))
            except dg.Failure as failure:
                reasons.append(f"{whose}{failure.description}")
                continue
            states[title] = found.state
            for refused in found.refused:
                context.log.warning(refused)
            request = _next_request(context.instance, found.waiting, name)
            if isinstance(request, dg.RunRequest):
                requests.append(request)
            else:
                reasons.append(" ".join((f"{whose}{request}", *found.refused)))
        cursor = json.dumps(states)
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        return dg.SensorResult(skip_reason=" ".join(reasons), cursor=cursor)

    return inbox_sensor


def _next_request(
    instance: dg.DagsterInstance, waiting: Iterable[WaitingFile], name: str | None
) -> dg.RunRequest | str:
    """Return a run request for the next file, or the reason why there is none."""
    tags = {} if name is None else {PARTITION_TAG: name}
    filters = dg.RunsFilter(job_name=pushes.NAME, statuses=UNDER_WAY, tags=tags)
    for run in instance.get_runs(filters, limit=1):
        return f"Run {run.run_id} is already queued or running."
    resting = 0
    since = datetime.now(UTC) - timedelta(seconds=RETRY_SECONDS)
    for each in waiting:
        # A pushed file is moved away, so the last run of one that is still there failed.
        if instance.get_runs_count(dg.RunsFilter(tags={FILE_TAG: each.key}, created_after=since)):
            resting += 1
            continue
        config = PushConfig(
            resource=each.resource, file=each.name, inbox_digest=each.digest, **each.options
        )
        return dg.RunRequest(
            run_config=dg.RunConfig(ops={pushes.OP: config}),
            tags={FILE_TAG: each.key, ACCOUNT_TAG: name or UNNAMED},
            partition_key=name,
        )
    failed_files = f" Files that wait for another attempt after a failed run: {resting}."
    return f"No new files.{failed_files if resting else ''}"


@dg.sensor(
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Send a message to the addresses of notify_urls if the problems of an account"
    " changed since the last message.",
)
def notify_sensor(
    context: dg.SensorEvaluationContext, account: dg.ResourceParam[Account]
) -> dg.SkipReason:
    """Check the accounts as `connector status --notify` does; this sensor never starts a run.

    The problems are found in the files of each account and not in Dagster, so that a pull that
    never ran is noticed. An account that cannot be checked does not affect the others.
    """
    results = []
    try:
        configured = configured_accounts(account.environ, account.folder)
    except ConnectorError as error:
        return dg.SkipReason(f"The accounts were not checked: {explain(error)}")
    for each in configured:
        try:
            if each.settings is not None:
                problems = find_problems(read_state(each.settings, datetime.now(UTC)))
            else:
                assert each.error is not None
                problems = [settings_problem(each.error)]
            if settings := each.settings or each.settings_for_alerts:
                sent = ", message sent" if notify(settings, problems) else ""
                results.append(f"{each.title}: {count_noun(len(problems), 'problem')}{sent}.")
        except ConnectorError as error:
            context.log.warning(f"{each.title}: {explain(error)}")
            results.append(f"{each.title}: {explain(error)}")
    return dg.SkipReason(" ".join(results))
