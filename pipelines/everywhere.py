"""All accounts in one run, spread over the worker processes of a Dask cluster.

Each account is a step, and what a step does is the very run that the account's partition has
otherwise: same assets, same retries, and a record of its own. Where a worker is lost, Dask gives
its step to another one, which takes over the dead process's lease and goes on from what has landed.

Needs the extra `distributed`, so the other definitions do not import it: Dagster loads this module
in place of `pipelines.definitions` (docs/DISTRIBUTED.md).
"""

# Annotations stay as they are, and not text: Dagster reads those of an op at import.
import os
import sys
from collections.abc import Iterator, Sequence

import dagster as dg
from dask.sizeof import sizeof

from connector import OFF
from pipelines.accounts import PARTITION_TAG, Account, Accounts, plain_name
from pipelines.cluster import ClusterExecutor
from pipelines.definitions import define, reasons_of
from pipelines.jobs import INTRADAY, PULL, PULLING, UNDER_WAY
from pipelines.landing import RETRY_TAG
from pipelines.schedules import KINDS, Kind, pull_under_way

ADDRESS = "DASK_SCHEDULER_ADDRESS"
"""The variable that says where Dask's scheduler is, in Dask's own words."""

EVERYWHERE_TAG = "connector/everywhere"
"""The tag of an account's run that names the run of all accounts which it belongs to."""


@dg.executor(
    name="cluster",
    config_schema={
        "address": dg.Field(
            str, is_required=False, description=f"Dask's scheduler; without it, that of {ADDRESS}."
        )
    },
    requirements=dg.multiple_process_executor_requirements(),
)
def existing_cluster(context: dg.InitExecutorContext) -> dg.Executor:
    """The cluster that is there already. Workers read this as well, and need no address."""
    address = context.executor_config.get("address") or os.environ.get(ADDRESS)
    return ClusterExecutor(str(address or f"{ADDRESS}-is-not-set:0"), _give_up_for_good)


# Dask weighs what a step gives back by going through it, which Dagster's values refuse: a worker
# would warn of it three times for each account.
sizeof.register(dg.MetadataValue, sys.getsizeof)  # type: ignore[no-untyped-call]  # Dask's

LOST_TAG = "connector/lost"
"""The tag of an account's run whose worker was lost."""

# A worker writes to its own log what is worth a look; Dagster keeps the rest anyway.
_QUIETLY = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}


def everywhere_of(single: dg.JobDefinition) -> dg.JobDefinition:
    """The job of all accounts, each of which runs the single one.

    It must be one that a worker can load by itself, as Dagster says of any executor that leaves
    its process.
    """
    job = single.name
    names = single.partitions_def.get_partition_keys() if single.partitions_def else ()
    steps = [_step_of(name, single) for name in names]

    @dg.job(
        name=_name(job),
        executor_def=existing_cluster,
        description=f"The job `{job}` for every account, spread over the workers of a Dask"
        " cluster.",
    )
    def everywhere() -> None:
        for step in steps:
            step()

    return everywhere


def _step_of(name: str, job: dg.JobDefinition) -> dg.OpDefinition:
    """The step of an account."""

    @dg.op(name=_step(job.name, name), description=f"The run of {name}.", out=dg.Out(dg.Nothing))
    def run_account(context: dg.OpExecutionContext) -> None:
        """Run the job for the account, here. Raises `dagster.Failure` with the run's reasons."""
        before = context.instance.get_runs(
            dg.RunsFilter(tags={EVERYWHERE_TAG: context.run.run_id, PARTITION_TAG: name})
        )
        # Dask forgets what a lost worker had finished, and asks for it again: it stays as it was.
        for run in before:
            if run.is_failure and LOST_TAG not in run.tags:
                raise dg.Failure(
                    description=f"Run {run.run_id} has failed; its log says why.",
                    allow_retries=False,
                )
            if run.is_success:
                context.add_output_metadata({"run": dg.MetadataValue.dagster_run(run.run_id)})
                return
        lost = _give_up_on_the_lost(context.instance, before)
        busy = pull_under_way(context.instance, name)
        if busy is not None:
            raise dg.Failure(description=f"Run {busy} is under way already.", allow_retries=False)
        tags = {EVERYWHERE_TAG: context.run.run_id}
        result = job.execute_in_process(
            instance=context.instance,
            partition_key=name,
            # A run in place of one that was lost waits for its lease, where it cannot be seen here
            # that the process is dead.
            tags=tags | ({RETRY_TAG: str(lost)} if lost else {}),
            run_config=_QUIETLY,
            raise_on_error=False,
        )
        told = {"run": dg.MetadataValue.dagster_run(result.run_id)}
        if not result.success:
            raise dg.Failure(description=reasons_of(result), metadata=told, allow_retries=False)
        context.add_output_metadata(told)

    return run_account


def _give_up_on_the_lost(instance: dg.DagsterInstance, before: Sequence[dg.DagsterRun]) -> int:
    """Record that the account's earlier runs have ended, where their workers were lost; says how
    many runs there were.
    """
    for run in before:
        if run.status in UNDER_WAY:
            instance.add_run_tags(run.run_id, {LOST_TAG: "true"})
            instance.report_run_failed(run, "The worker that ran it was lost.")
    return len(before)


def _give_up_for_good(instance: dg.DagsterInstance, run_id: str, step: str) -> None:
    """Record that an account's run has ended whose step no worker could carry out: it would else
    be under way for ever, and no other could begin.
    """
    runs = instance.get_runs(dg.RunsFilter(tags={EVERYWHERE_TAG: run_id}))
    _give_up_on_the_lost(
        instance, [run for run in runs if step == _step(run.job_name, run.tags[PARTITION_TAG])]
    )


def pull_everywhere() -> dg.JobDefinition:
    """The night's job, for the accounts of the folder that this process works in."""
    return everywhere_of(define(Account()).resolve_job_def(PULL))


def intraday_everywhere() -> dg.JobDefinition:
    """The day's job, for the accounts of the folder that this process works in."""
    return everywhere_of(define(Account()).resolve_job_def(INTRADAY))


def _step(job: str, account: str) -> str:
    return f"{job}_{plain_name(account)}"


def _name(job: str) -> str:
    return f"{job}_everywhere"


def _scheduled(kind: Kind, accounts: Accounts) -> Iterator[dg.ScheduleDefinition]:
    """The schedule of all accounts at once, at the common time."""
    cron, zone = kind.times(accounts.common)
    if cron == OFF:
        return

    @dg.schedule(
        name=_name(kind.name),
        job_name=_name(kind.job),
        cron_schedule=cron,
        execution_timezone=zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{kind.about} of every account, on Dask: '{cron}' by the clock of {zone},"
        " unless a run of all accounts is already under way.",
    )
    def scheduled(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        names = {_name(job) for job in PULLING}
        for run in context.instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY)):
            if run.job_name in names:
                return dg.SkipReason(f"Run {run.run_id} is already under way.")
        return dg.RunRequest()

    yield scheduled


def define_everywhere(account: Account) -> dg.Definitions:
    """The definitions, and the jobs and schedules of all accounts where any are named."""
    accounts = Accounts.of(account)
    single = define(account)
    if not accounts.names:
        return single
    jobs = [everywhere_of(single.resolve_job_def(each)) for each in PULLING]
    schedules = [each for kind in KINDS for each in _scheduled(kind, accounts)]
    return dg.Definitions.merge(single, dg.Definitions(jobs=jobs, schedules=schedules))


definitions = define_everywhere(Account())
