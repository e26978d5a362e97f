"""The inbox, watched: a settled file becomes a run of the push job, once somebody switches it on.

Files are pushed one after another, since an account has one pusher; those first that others refer
to.
"""

# Annotations stay as they are, and not text: Dagster reads those of a sensor at import.
import time
from collections.abc import Iterable

import dagster as dg

from connector import Inbox, Waiting
from pipelines.connections import Account
from pipelines.pushes import PushConfig, push_file, push_job

LOOK_SECONDS = 30
"""The least time between two looks, both of which must find a file the same."""

RETRY_SECONDS = 900
"""How long a file waits whose last run did not put it away."""

FILE_TAG = "connector/inbox_file"
"""The tag of a run that says which file it is for, by a digest of its path and contents."""

_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_UNDER_WAY = [each for each in dg.DagsterRunStatus if each not in _ENDED]


@dg.sensor(
    # By name: given the job itself, Dagster 1.13 warns of a parameter that it fills in itself.
    job_name=push_job.name,
    minimum_interval_seconds=LOOK_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Push what is put into inbox/RESOURCE/ of the data folder, as its push.toml says;"
    " without one, preview it.",
)
def inbox_sensor(
    context: dg.SensorEvaluationContext, account: dg.ResourceParam[Account]
) -> dg.SensorResult:
    """Ask for a run for the next file that has settled, or say why there is none."""
    try:
        look = Inbox(account.settings().folder).look(context.cursor)
    except dg.Failure as failure:
        return dg.SensorResult(skip_reason=failure.description)
    for reason in look.refused:
        context.log.warning(reason)
    asked = _next(context.instance, look.waiting)
    if isinstance(asked, dg.RunRequest):
        return dg.SensorResult(run_requests=[asked], cursor=look.seen)
    return dg.SensorResult(skip_reason=" ".join((asked, *look.refused)), cursor=look.seen)


def _next(instance: dg.DagsterInstance, waiting: Iterable[Waiting]) -> dg.RunRequest | str:
    """A run for the first file whose turn it is, or why there is none."""
    filters = dg.RunsFilter(job_name=push_job.name, statuses=_UNDER_WAY)
    for run in instance.get_runs(filters, limit=1):
        return f"Run {run.run_id} is already under way."
    resting = 0
    for each in waiting:
        before = instance.get_run_records(dg.RunsFilter(tags={FILE_TAG: each.key}))
        # A file that a run put away may come back, and then it is as any other.
        failed = [run for run in before if not run.dagster_run.is_success]
        if any((run.end_time or 0.0) > time.time() - RETRY_SECONDS for run in failed):
            resting += 1
            continue
        return _request(each, len(before))
    rests = f" {resting} rest after a run that failed." if resting else ""
    return f"No file has settled.{rests}"


def _request(file: Waiting, attempt: int) -> dg.RunRequest:
    orders = file.orders
    config = PushConfig(
        resource=file.resource,
        file=file.name,
        mode=orders.mode,
        match=list(orders.match),
        apply=orders.applies,
        map_file=str(orders.mapping) if orders.mapping is not None else None,
        content_type=orders.content_type,
        inbox_digest=file.digest,
    )
    return dg.RunRequest(
        # Dagster starts one run for a key, ever; the file may need another after one that failed.
        run_key=f"{file.resource}/{file.name}:{file.digest}:{attempt}",
        run_config=dg.RunConfig(ops={push_file.name: config}),
        tags={FILE_TAG: file.key, "connector/resource": file.resource},
    )
