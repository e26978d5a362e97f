"""The landed resources: one asset each, all of them pulled by one step that can be subset.

One step, since one key has one pace. What a pull does is the connector's affair; what landed is
published when the models stand (`publishing.py`).
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import asyncio
import logging
from collections.abc import Iterator, Sequence

import dagster as dg

from connector import (
    CATALOG,
    ConnectorError,
    PullReport,
    ResourceRun,
    Settings,
    Stopped,
    Warehouse,
    explain,
    may_repeat,
    publish,
    pull,
)
from pipelines import checks, metadata
from pipelines.connections import Account, failure_of

GROUP = "landing"
LANDED = frozenset(("done", "partial"))
"""Outcomes after which a resource's rows are those that the pull meant to land."""

KEYS = {name: dg.AssetKey([GROUP, name]) for name in CATALOG}
"""Each resource's asset."""


class Narrator:
    """Tells a run's log how a pull goes on."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def began(self, resource: str) -> None:
        """The resource's turn has come."""
        self._log.info(f"{resource}: begins")

    def moved(self, resource: str, read: int, pending: int, requests: int) -> None:
        """Something was committed."""
        self._log.debug(f"{resource}: {read} read, {pending} pending, {requests} requests")

    def ended(self, done: ResourceRun) -> None:
        """The resource has ended."""
        self._log.info(
            f"{done.resource}: {done.outcome}; {done.requests} requests, {done.new} new,"
            f" {done.changed} changed, {done.deleted} deleted, {done.live} live"
        )


@dg.multi_asset(
    name="pull_landing",
    description="Pull the selected resources from the API.",
    specs=[
        dg.AssetSpec(
            KEYS[name],
            description=resource.about,
            skippable=True,
            group_name=GROUP,
            kinds={"duckdb"},
            metadata=metadata.of_table(resource),
        )
        for name, resource in CATALOG.items()
    ],
    check_specs=[checks.spec_of(resource, KEYS[name]) for name, resource in CATALOG.items()],
    can_subset=True,
    pool="api",
    # A pull of what is landed costs two requests, so repeating all of it is cheap.
    retry_policy=dg.RetryPolicy(max_retries=2, delay=60, backoff=dg.Backoff.EXPONENTIAL),
)
def landing(
    context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Pull the selected resources; those that landed are materialized, whatever became of others.

    Raises `dagster.Failure` with the names and reasons of those that did not land.
    """
    settings = account.settings()
    watch = account.watch or Narrator(context.log)
    try:
        pulling = pull(
            settings, _selected(context), publishes=False, watch=watch, command="dagster"
        )
        report = asyncio.run(pulling)
    except ConnectorError as error:
        raise failure_of(error) from None
    warehouse = Warehouse(settings.folder)
    for name, done in report.resources.items():
        if done.outcome in LANDED:
            told = metadata.of_pull(CATALOG[name], done, report, warehouse)
            yield from _results(context, done, told)
    refuse_the_rest(report, settings)


def _selected(context: dg.AssetExecutionContext) -> Sequence[str]:
    """The resources whose assets or checks were asked for."""
    checked = {each.asset_key for each in context.selected_asset_check_keys}
    wanted = context.selected_asset_keys | checked
    return [name for name, key in KEYS.items() if key in wanted]


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


def refuse_the_rest(report: PullReport, settings: Settings) -> None:
    """Raise `dagster.Failure` for the resources that did not land, if there are any.

    Dagster then goes no further, so what landed of the others is published here: a key without one
    scope must not keep analysts from all the rest. It is worth a retry only where nobody need do
    anything first.
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
    if report.outcome != "failed":
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
        allow_retries=bool(missing) and all(may_repeat(each) for each in missing if each.message),
    )
