"""The landed resources: one asset each, all of them pulled by one step that can be subset.

One step, since one key has one pace. What a pull does is the connector's affair; what landed is
published when the models stand (`publishing.py`).
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import asyncio
import logging
from collections.abc import Iterator, Sequence

import dagster as dg
from pydantic import Field

from connector import (
    CATALOG,
    ConnectorError,
    PullManner,
    PullReport,
    ResourceRun,
    Settings,
    Stopped,
    TryAgain,
    Warehouse,
    explain,
    may_repeat,
    publish,
    pull,
)
from connector import (
    Progress as PullProgress,
)
from pipelines import checks, freshness, metadata
from pipelines.accounts import Accounts, account_of
from pipelines.connections import Account, failure_of
from pipelines.progress import Progress

GROUP = "landing"
LANDED = frozenset(("done", "partial"))
"""Outcomes after which a resource's rows are those that the pull meant to land."""

KEYS = {name: dg.AssetKey([GROUP, name]) for name in CATALOG}
"""Each resource's asset."""

RETRIES = dg.RetryPolicy(max_retries=2, delay=60, backoff=dg.Backoff.EXPONENTIAL)
"""For what passes by itself: the network, an answer of 5xx, a limit of the minute. After what a
person has to mend, and after another run's lease, nothing is repeated.
"""

RETRY_TAG = "dagster/retry_number"
"""The tag of a run that Dagster began by itself in the place of one that was cut off."""


class PullConfig(dg.Config):
    """What is asked of a pull beyond the fewest requests that prove it."""

    deep: bool = Field(
        default=False,
        description="Compare every page of the lists, and spend scrub_requests on looking again at"
        " what was verified longest ago.",
    )
    accept_deletes: bool = Field(
        default=False,
        description="A person's word that deletions are meant, however many they are.",
    )

    def manner(self, settings: Settings) -> PullManner:
        """What was said, as a pull takes it."""
        scrubs = settings.scrub_requests.value if self.deep else 0
        return PullManner(
            sweeps=self.deep, accepts_deletes=self.accept_deletes, scrub_requests=scrubs
        )


class Narrator:
    """Tells a run's log how a pull goes on."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._progress = log, Progress(log)

    def __call__(self, progress: PullProgress) -> None:
        """A resource begins or ends, or something was committed, which is told now and then."""
        name, done = progress.resource, progress.ended
        if done is not None:
            self._log.info(
                f"{name}: {done.outcome}; {done.requests} requests, {done.new} new,"
                f" {done.changed} changed, {done.deleted} deleted, {done.live} live"
            )
        elif not progress.requests:
            self._log.info(f"{name}: begins")
        else:
            self._progress.tell(
                f"{name}: {progress.read} read, {progress.pending} pending,"
                f" {progress.requests} requests"
            )


def landing_of(accounts: Accounts) -> dg.AssetsDefinition:
    """The landed resources of the accounts."""

    @dg.multi_asset(
        name="pull_landing",
        description="Pull the selected resources from the API.",
        specs=list(_specs(accounts)),
        check_specs=[checks.spec_of(resource, KEYS[name]) for name, resource in CATALOG.items()],
        can_subset=True,
        pool=accounts.pool,
        retry_policy=RETRIES,
    )
    def landing(
        context: dg.AssetExecutionContext, config: PullConfig, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        """Pull the selected resources; those that landed are materialized, whatever became of
        others, and a repeat pulls the others alone.

        Raises `dagster.Failure` with the names and reasons of those that did not land.
        """
        settings = account.settings(account_of(context))
        watch = account.watch or Narrator(context.log)
        try:
            pulling = pull(
                settings,
                _selected(context),
                manner=config.manner(settings),
                publishes=False,
                watch=watch,
                command="dagster",
            )
            report = asyncio.run(pulling)
        except ConnectorError as error:
            raise failure_of(error, waits=RETRY_TAG in context.run.tags) from None
        warehouse = Warehouse(settings.folder)
        for name, done in report.resources.items():
            if done.outcome in LANDED:
                told = metadata.of_pull(CATALOG[name], done, report, warehouse)
                yield from _results(context, done, told)
        refuse_the_rest(
            report,
            settings,
            is_last=context.retry_number >= RETRIES.max_retries,
            has_landed=bool(_landed_in(context.run.run_id, context.instance)),
        )

    return landing


def _specs(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """The asset of each resource."""
    for name, resource in CATALOG.items():
        yield dg.AssetSpec(
            KEYS[name],
            description=resource.about,
            skippable=True,
            group_name=GROUP,
            kinds={"duckdb"},
            metadata=metadata.of_table(resource),
            partitions_def=accounts.partitions,
            freshness_policy=freshness.policy_of(accounts),
        )


def _selected(context: dg.AssetExecutionContext) -> Sequence[str]:
    """The resources whose assets or checks were asked for, without those that landed before this
    step was repeated.
    """
    checked = {each.asset_key for each in context.selected_asset_check_keys}
    wanted = context.selected_asset_keys | checked
    if context.retry_number:
        wanted = wanted - _landed_in(context.run.run_id, context.instance)
    return [name for name, key in KEYS.items() if key in wanted]


def _landed_in(run_id: str, instance: dg.DagsterInstance) -> set[dg.AssetKey]:
    """The assets that the run has materialized so far."""
    kind = {dg.DagsterEventType.ASSET_MATERIALIZATION}
    logged = (each.asset_materialization for each in instance.all_logs(run_id, of_type=kind))
    return {each.asset_key for each in logged if each is not None}


def _results(
    context: dg.AssetExecutionContext,
    done: ResourceRun,
    told: dict[str, dg.MetadataValue],
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """The asset and its check, each if it was asked for."""
    key = KEYS[done.resource]
    is_checked = dg.AssetCheckKey(key, checks.NAME) in context.selected_asset_check_keys
    if key in context.selected_asset_keys:
        yield dg.MaterializeResult(asset_key=key, metadata=told)
    if is_checked:
        yield checks.result_of(done, key)


def refuse_the_rest(
    report: PullReport, settings: Settings, *, is_last: bool, has_landed: bool
) -> None:
    """Raise `dagster.Failure` for the resources that did not land, if there are any.

    It is worth a retry only where nobody need do anything first. Where there is none, or this was
    the last, Dagster goes no further, so what landed of the others, now or before a repeat, is
    published here: a key without one scope must not keep analysts from all the rest.
    """
    missing = [each for each in report.resources.values() if each.outcome not in LANDED]
    if not missing and report.error is None:
        return
    reasons = {
        each.resource: f"{each.outcome}: {explain(each)}"
        for each in missing
        if each.message is not None
    }
    if report.error is not None:
        reasons["run"] = explain(report.error)
    is_worth_it = (
        bool(missing)
        and (report.error is None or isinstance(report.error, TryAgain))
        and all(may_repeat(each) for each in missing if each.message)
    )
    if (has_landed or report.outcome != "failed") and (is_last or not is_worth_it):
        try:
            publish(settings, run_id=report.run_id)
        except ConnectorError as error:
            reasons["publishing"] = explain(error)
    verb = "stopped before" if isinstance(report.error, Stopped) else "did not land"
    names = ", ".join(each.resource for each in missing) or "everything"
    raise dg.Failure(
        description=f"The pull {verb} {names}. "
        + " ".join(f"{name}: {reason}" for name, reason in reasons.items()),
        metadata={
            "not_landed": [each.resource for each in missing],
            **{f"reason/{name}": reason for name, reason in reasons.items()},
        },
        allow_retries=is_worth_it,
    )
