"""The landed resources: one asset each, all of them pulled by one step that can be subset.

One step, since one key has one pace. What a pull does is the connector's affair; what landed is
published when the models stand (`publishing.py`).
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from connector import (
    CATALOG,
    Column,
    ConnectorError,
    Declaration,
    Progress,
    PullOptions,
    PullReport,
    ResourceRun,
    Settings,
    Stopped,
    TryAgain,
    Warehouse,
    columns,
    difference,
    explain,
    may_repeat,
    publish,
    pull,
    settle,
)
from pipelines import freshness
from pipelines.accounts import (
    Account,
    Accounts,
    account_of,
    by_account,
    check_of,
    failure_of,
    keys_asked,
)

GROUP = "landing"
LANDED = frozenset(("done", "partial"))
"""Outcomes after which a resource's rows are those that the pull meant to land."""

KEYS = {name: dg.AssetKey([GROUP, name]) for name in CATALOG}
"""Each resource's asset."""

RETRIES = dg.RetryPolicy(max_retries=2, delay=60, backoff=dg.Backoff.EXPONENTIAL)
"""For what passes by itself: the network, an answer of 5xx, a limit of the minute. After what a
person has to mend, and after another run's lease, nothing is repeated.
"""

CHECK = "matches_api_total"
"""The check of each resource: the landing holds as many live rows as the API counts."""

RETRY_TAG = "dagster/retry_number"
"""The tag of a run that Dagster began by itself in the place of one that was cut off."""


class PullConfig(dg.Config):
    """What is asked of a pull beyond the fewest requests that prove it."""

    verify_unchanged: bool = Field(
        default=False,
        description="Compare every page of the lists, and spend scrub_requests on looking again at"
        " what was verified longest ago.",
    )
    accept_deletes: bool = Field(
        default=False,
        description="A person's word that deletions are meant, however many they are.",
    )

    def options(self, settings: Settings) -> PullOptions:
        """Options of the pull."""
        scrubs = settings.scrub_requests.value if self.verify_unchanged else 0
        return PullOptions(
            sweeps=self.verify_unchanged, accepts_deletes=self.accept_deletes, scrub_requests=scrubs
        )


SECONDS_BETWEEN = 5.0
"""So much time is between a line and the next, at least, and before the first one."""


class NowAndThen:
    """Tells a run's log how far something is, on the clock that `now` reads in seconds."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log, self._now = log, now
        self._told_at = now()

    def tell(self, line: str) -> None:
        """Tell it, if nothing was told for a while."""
        if self._now() - self._told_at >= SECONDS_BETWEEN:
            self._log.debug(line)
            self._told_at = self._now()


class Narrator:
    """Tells a run's log how a pull or a push goes on."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._progress = log, NowAndThen(log)

    def __call__(self, progress: Progress) -> None:
        """A resource or a batch begins or ends, or goes on, which is told now and then."""
        name, done, rows = progress.batch or progress.resource, progress.ended, progress.pending
        if progress.waits_until is not None:
            self._progress.tell(f"waiting until {progress.waits_until:%H:%M:%S} UTC")
        elif progress.until is not None:
            moment = f"{progress.until:%H:%M:%S} UTC"
            self._log.info(f"{name}: {rows} rows are in doubt; looking again at {moment}")
        elif done is not None:
            self._log.info(
                f"{name}: {done.outcome}; {done.requests} requests, {done.new} new,"
                f" {done.changed} changed, {done.deleted} deleted, {done.live} live"
            )
        elif not (progress.requests or progress.read):
            self._log.info(f"{name}: begins")
        else:
            self._progress.tell(
                f"{name}: {progress.read} done, {progress.pending} pending,"
                f" {progress.requests} requests"
            )


def landing_of(accounts: Accounts) -> dg.AssetsDefinition:
    """The landed resources of the accounts."""

    @dg.multi_asset(
        name="pull_landing",
        description="Pull the selected resources from the API.",
        specs=list(_specs(accounts)),
        check_specs=[_check_of(resource, accounts) for resource in CATALOG.values()],
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
        pulling = pull(
            settings,
            _selected(context),
            options=config.options(settings),
            publishes=False,
            watch=account.watch or Narrator(context.log),
            command="dagster",
        )
        try:
            report = asyncio.run(_settled(pulling, settings, context.log))
        except ConnectorError as error:
            raise failure_of(error, waits=RETRY_TAG in context.run.tags) from None
        warehouse = Warehouse(settings.folder)
        for name, done in report.resources.items():
            if done.outcome not in LANDED:
                continue
            key = KEYS[name]
            if key in context.selected_asset_keys:
                told = by_account(context, _of_pull(CATALOG[name], done, report, warehouse))
                yield dg.MaterializeResult(asset_key=key, metadata=told)
            if dg.AssetCheckKey(key, CHECK) in context.selected_asset_check_keys:
                yield _checked(done, context)
        refuse_the_rest(
            report,
            settings,
            is_last=context.retry_number >= RETRIES.max_retries,
            has_landed=bool(_landed_in(context.run.run_id, context.instance)),
        )

    return landing


async def _settled(
    pulling: Awaitable[PullReport], settings: Settings, log: logging.Logger
) -> PullReport:
    """The pull's report, once the rows of pushes in doubt are looked for as well."""
    report = await pulling
    if told := await settle(settings, publishes=False):
        log.info(told)
    return report


def _specs(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """The asset of each resource."""
    for name, resource in CATALOG.items():
        yield dg.AssetSpec(
            KEYS[name],
            description=resource.about,
            skippable=True,
            group_name=GROUP,
            kinds={"duckdb"},
            metadata=_of_table(resource),
            partitions_def=accounts.partitions,
            freshness_policy=freshness.policy_of(accounts),
        )


def _selected(context: dg.AssetExecutionContext) -> Sequence[str]:
    """The resources asked for, without those that landed before this step was repeated."""
    wanted = keys_asked(context)
    if context.retry_number:
        wanted = wanted - _landed_in(context.run.run_id, context.instance)
    return [name for name, key in KEYS.items() if key in wanted]


def _landed_in(run_id: str, instance: dg.DagsterInstance) -> set[dg.AssetKey]:
    """The assets that the run has materialized so far."""
    kind = {dg.DagsterEventType.ASSET_MATERIALIZATION}
    logged = (each.asset_materialization for each in instance.all_logs(run_id, of_type=kind))
    return {each.asset_key for each in logged if each is not None}


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
            publish(settings, if_changed=True, run_id=report.run_id)
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


# -- What Dagster shows ----------------------------------------------------------------------------
# Of a resource its check, its columns, and the counts, cost and preview of a pull. Nothing
# personal: counts, moments and the values of `status` alone.

_STATUS = "status"


def _check_of(resource: Declaration, accounts: Accounts) -> dg.AssetCheckSpec:
    """The check of one resource, of each of the accounts."""
    about = (
        f"The live rows of landing.{resource.name} are as many as the `total` of the last list that"
        " the API gave (API 4.1)."
    )
    return check_of(accounts, dg.AssetCheckKey(KEYS[resource.name], CHECK), about)


def _checked(done: ResourceRun, context: dg.AssetExecutionContext) -> dg.AssetCheckResult:
    """How the check came out; a total that is not known fails it.

    Where the pull is proven all the same, the API changed meanwhile, and failing is a warning.
    """
    total = {} if done.total is None else {"total": done.total}
    return dg.AssetCheckResult(
        passed=done.live == done.total,
        check_name=CHECK,
        asset_key=KEYS[done.resource],
        severity=dg.AssetCheckSeverity.WARN if done.proven else dg.AssetCheckSeverity.ERROR,
        description=difference(done),
        metadata=by_account(context, {"live": done.live, "pending": done.pending, **total}),
    )


def _of_table(resource: Declaration) -> dict[str, object]:
    """What is known of a resource's table before anything has landed."""
    return {
        "dagster/column_schema": dg.TableSchema([_column(each) for each in columns(resource)]),
        "dagster/table_name": f"landing.{resource.name}",
        "scope": resource.read_scope(),
    }


def _of_pull(
    resource: Declaration, done: ResourceRun, report: PullReport, warehouse: Warehouse
) -> dict[str, Any]:
    """What a pull did with the resource. `waited_seconds` is of the whole run."""
    counts = ("requests", "new", "changed", "unchanged", "deleted", "live", "total", "pending")
    told = {name: getattr(done, name) for name in (*counts, "outcome", "proven", "message")}
    told |= {"waited_seconds": report.waited_seconds, "run_id": report.run_id}
    told |= {"dagster/row_count": done.live, "preview": _preview(resource, warehouse)}
    if done.bookmark_after is not None:
        told["bookmark"] = dg.MetadataValue.timestamp(done.bookmark_after)
    return {name: value for name, value in told.items() if value is not None}


def _column(column: Column) -> dg.TableColumn:
    is_id = column.name == "id"
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=column.comment,
        # Any other column is null where a row was only listed, or where the API left it out.
        constraints=dg.TableColumnConstraints(nullable=not is_id, unique=is_id),
    )


def _preview(resource: Declaration, warehouse: Warehouse) -> dg.MetadataValue | None:
    """Landed live rows by status, as Markdown; None where there is nothing to count."""
    if _STATUS not in resource.fields:
        return None
    try:
        counts = warehouse.count_by(resource, _STATUS)
    except ConnectorError:
        # A preview is a courtesy: what landed has landed without it.
        return None
    rows = "\n".join(f"| {_code(status)} | {count:,} |" for status, count in counts.items())
    return dg.MetadataValue.md(f"| {_STATUS} | live rows |\n|---|---:|\n{rows}")


def _code(status: str | None) -> str:
    # A status is the API's word; one that it never documented may hold anything.
    if status is None:
        return "*none*"
    kept = "".join(c if c.isalnum() or c in "_- " else "?" for c in status)
    return f"`{kept}`"
