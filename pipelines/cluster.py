"""Dagster's steps on the workers of a Dask cluster that is there already.

What a worker is sent is dagster-dask's. How the steps are given out is not, since a step may be the
whole run of an account, for minutes. dagster-dask gives each to some worker at once, so that one
waits behind a busy worker while another has nothing to do; a worker that is lost takes along what
it had finished; and a step that has killed its workers ends all the others. Here

-   steps have a name in common, so that Dask keeps them until a worker is free (as far as its
    setting `worker-saturation` says: docs/DISTRIBUTED.md has it),
-   what a step gave back is let go of as soon as it is here, and no worker is asked for it again,
-   a step that Dask gives up fails by itself, with the reason.

Steps must not wait for one another: none is held back until another one has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import dagster as dg
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.plan.step import ExecutionStep
from dagster._core.execution.retries import RetryMode
from dagster._utils.error import serializable_error_info_from_exc_info
from dagster_dask.executor import query_on_dask_worker
from distributed import Client, Future, KilledWorker, as_completed

GivenUp = Callable[[dg.DagsterInstance, str, str], None]
"""Told of a step that has lost too many workers, by the run's id and the step's key."""


class ClusterExecutor(dg.Executor):
    """Runs a job's steps on the cluster at this address, each once, and on another worker where
    its worker was lost. `given_up` is called for each step that has lost too many.
    """

    def __init__(self, address: str, given_up: GivenUp) -> None:
        self._address, self._given_up = address, given_up

    @property
    def retries(self) -> RetryMode:
        """Dagster repeats no step; Dask repeats those whose workers are lost."""
        return RetryMode.DISABLED

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """The events of all steps, as the steps end. Whatever was not begun when this is
        interrupted will not be.
        """
        run = plan_context.dagster_run
        work = partial(
            query_on_dask_worker,
            (),
            plan_context.reconstructable_job,
            run,
            plan_context.run_config,
            instance_ref=plan_context.instance.get_ref(),
            known_state=execution_plan.known_state,
        )
        # Dask takes what is before the first hyphen for the name that they have in common. The run
        # tells them from those of another run of the same job.
        steps = {
            f"{plan_context.job_name}-{run.run_id}-{step.key}": step
            for level in execution_plan.get_steps_to_execute_by_level()
            for step in level
        }
        keys = [[step.key] for step in steps.values()]
        with Client(self._address) as client:  # type: ignore[no-untyped-call] # Dask's
            ended = as_completed(client.map(work, keys, key=list(steps)))  # type: ignore[no-untyped-call]
            while steps:
                with dg.raise_execution_interrupts():
                    future = next(ended)
                yield from self._events(plan_context, steps.pop(future.key), future)
                future.release()

    def _events(
        self,
        plan_context: PlanOrchestrationContext,
        step: ExecutionStep,
        future: Future[Sequence[dg.DagsterEvent]],
    ) -> Sequence[dg.DagsterEvent]:
        """What a step's worker did, or that it failed where no worker could do it."""
        try:
            return future.result()
        except Exception as error:  # Whatever a worker met is that step's own.
            if isinstance(error, KilledWorker):
                self._given_up(plan_context.instance, plan_context.run_id, step.key)
            told = serializable_error_info_from_exc_info(sys.exc_info())
            failed = dg.DagsterEvent.step_failure_event(
                plan_context.for_step(step),
                StepFailureData(told, None),  # type: ignore[no-untyped-call] # Dagster's
                f"No worker could carry out {step.key}. Mend the cause, and re-execute the run "
                f"from failure. {error}",
            )
            return (failed,)
