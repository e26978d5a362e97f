"""Dagster's steps on the workers of a Dask cluster that is there already.

dagster-dask does the same, for steps that are short. Here a step may be the whole run of an
account, for minutes. It gives each to some worker at once, so that one waits behind a busy worker
while another has nothing to do; a worker that is lost takes along what it had finished; and a step
that has killed its workers ends all the others. Here

-   steps have a name in common, so that Dask keeps them until a worker is free (as far as its
    setting `worker-saturation` says: docs/DISTRIBUTED.md has it),
-   what a step gave back is let go of as soon as it is here, and no worker is asked for it again,
-   a step that Dask gives up fails by itself, with the reason.

Steps must not wait for one another: none is held back until another one has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.execution.api import create_execution_plan, execute_plan
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.plan.state import KnownExecutionState
from dagster._core.execution.plan.step import ExecutionStep
from dagster._core.execution.retries import RetryMode
from dagster._core.instance.ref import InstanceRef
from dagster._utils.error import serializable_error_info_from_exc_info
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
            _carry_out,
            instance_ref=plan_context.instance.get_ref(),
            job=plan_context.reconstructable_job,
            run=run,
            known_state=execution_plan.known_state,
        )
        # Dask takes what is before the first hyphen for the name that they have in common. The run
        # tells them from those of another run of the same job.
        steps = {
            f"{plan_context.job_name}-{run.run_id}-{step.key}": step
            for level in execution_plan.get_steps_to_execute_by_level()
            for step in level
        }
        keys = [step.key for step in steps.values()]
        with Client(self._address) as client:  # type: ignore[no-untyped-call] # Dask's
            futures = client.map(work, keys, key=list(steps))
            ended = as_completed(futures)  # type: ignore[no-untyped-call] # Dask's
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


def _carry_out(
    key: str,
    *,
    instance_ref: InstanceRef,
    job: ReconstructableJob,
    run: dg.DagsterRun,
    known_state: KnownExecutionState | None,
) -> Sequence[dg.DagsterEvent]:
    """Carry out one step of the run, on a worker; gives its events."""
    picked = job.get_subset(op_selection=run.resolved_op_selection)
    plan = create_execution_plan(
        picked, run_config=run.run_config, step_keys_to_execute=[key], known_state=known_state
    )
    instance = _instance(dg.serialize_value(instance_ref))
    return execute_plan(plan, picked, instance, run, run_config=run.run_config)


@cache
def _instance(ref: str) -> dg.DagsterInstance:
    """The instance that is meant, made once in each worker, since that takes as long as several
    requests. What it holds open of its storages it holds for as long as a process of Dagster does.
    """
    return dg.DagsterInstance.from_ref(dg.deserialize_value(ref, InstanceRef))
