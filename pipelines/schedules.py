"""When pulls happen by themselves: every night, once somebody has switched that on."""

from __future__ import annotations

import dagster as dg

from pipelines.landing import KEYS

pull_job = dg.define_asset_job(
    "pull",
    # Everything there is: what lands, what is made of it, and the file in the end.
    selection=dg.AssetSelection.all(),
    description="Pull every resource, build and check the models, and publish.",
)

_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dg.schedule(
    job=pull_job,
    cron_schedule="15 2 * * *",
    # UTC has every hour of every night; a zone with summer time lacks one and repeats one.
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Pull, build and publish at 02:15 UTC, unless a pull is already under way.",
)
def nightly_pull(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Ask for a pull, or say which run is under way."""
    for run in context.instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
        if run.asset_selection is None or run.asset_selection & set(KEYS.values()):
            return dg.SkipReason(f"Run {run.run_id} is already under way.")
    return dg.RunRequest()
