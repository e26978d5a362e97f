"""All accounts in one run, spread over the workers of a Dask cluster by dagster-dask.

Each account is a step. The step runs the account's own job on a worker: the same assets and
retries, in a separate run. Dask gives the step of a lost worker to another worker, whose pull
continues from what was loaded.

Needs the extra `distributed`, so no other module imports this one. Load it instead of
`pipelines.definitions` (docs/SCALE.md).
"""

# Annotations are not postponed here: Dagster reads those of an op at import.
import dagster as dg
from dagster_dask import dask_executor

from connector.settings.values import OFF
from pipelines.accounts import ACCOUNT_TAG, PARTITION_TAG, Account, Accounts, as_identifier
from pipelines.definitions import define, failure_reasons
from pipelines.schedules import KINDS, UNDER_WAY

ADDRESS = "DASK_SCHEDULER_ADDRESS"
"""Environment variable with the address of Dask's scheduler, as Dask itself names it."""

RUN_TAG = "connector/everywhere"
"""Tag of an account's run: the id of the run of all accounts that started it."""


def job_everywhere(single: dg.JobDefinition) -> dg.JobDefinition:
    """Return a job with one step per account; each step runs the account's job."""
    partitions = single.partitions_def.get_partition_keys() if single.partitions_def else ()
    steps = [_account_step(account, single) for account in partitions]

    @dg.job(
        name=f"{single.name}_everywhere",
        description=f"`{single.name}` for every account, spread over a Dask cluster.",
        # A second run of all accounts waits for the first one.
        tags={ACCOUNT_TAG: "*"},
        executor_def=dask_executor,
        config={"execution": {"config": {"cluster": {"existing": {"address": {"env": ADDRESS}}}}}},
    )
    def everywhere() -> None:
        for step in steps:
            step()

    return everywhere


def _account_step(account: str, job: dg.JobDefinition) -> dg.OpDefinition:
    """Return a step that runs the job for the account."""

    @dg.op(
        name=f"{job.name}_{as_identifier(account)}",
        description=f"Run `{job.name}` for {account}.",
        out=dg.Out(dg.Nothing),
    )
    def run_account(context: dg.OpExecutionContext) -> None:
        """Run the job for the account. Raises `dagster.Failure` with the run's errors."""
        tags = {RUN_TAG: context.run.run_id, PARTITION_TAG: account}
        for earlier in context.instance.get_runs(dg.RunsFilter(tags=tags)):
            # Dask repeats a step of a lost worker, even one whose run had already succeeded.
            if earlier.is_success:
                return
            if earlier.status in UNDER_WAY:
                context.instance.report_run_failed(earlier, "The worker of this run was lost.")
        result = job.execute_in_process(
            instance=context.instance,
            partition_key=account,
            tags={RUN_TAG: context.run.run_id},
            raise_on_error=False,
        )
        if not result.success:
            raise dg.Failure(f"Run {result.run_id}: {failure_reasons(result)}", allow_retries=False)

    return run_account


def define_everywhere(account: Account) -> dg.Definitions:
    """Return the definitions, with the jobs and schedules of all accounts if any are named."""
    accounts, single = Accounts.read(account), define(account)
    if not accounts.names:
        return single
    common = accounts.common
    jobs = {name: job_everywhere(single.resolve_job_def(name)) for name in KINDS}
    schedules = [
        dg.ScheduleDefinition(
            job=jobs[name], cron_schedule=cron, execution_timezone=common.time_zone
        )
        for name, (setting, _) in KINDS.items()
        if (cron := getattr(common, setting)) != OFF
    ]
    return dg.Definitions.merge(single, dg.Definitions(jobs=jobs.values(), schedules=schedules))


definitions = define_everywhere(Account())
