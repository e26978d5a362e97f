"""The loaded table of each resource: one asset each, pulled by one step.

It is one step because all requests of an API key share its rate limit. If some resources cannot be
loaded, the step publishes the others before it fails.
"""

# Dagster reads the annotations of an asset at import, so they are not postponed here.
import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
from pydantic import Field

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.errors import AccountBusy, ConnectorError, TryAgain
from connector.pulls.ports import PullOptions
from connector.pulls.report import (
    Progress,
    PullReport,
    can_retry,
    describe_row_difference,
    explain,
    explain_together,
)
from connector.pulls.run import pull
from connector.pushes.run import look_up_unconfirmed
from connector.settings import Settings
from connector.state.runs import ResourceRun
from connector.warehouse.schema import Column, landing_columns
from connector.warehouse.warehouse import Warehouse
from pipelines import freshness
from pipelines.accounts import (
    Account,
    Accounts,
    account_of,
    asset_check_spec,
    is_last_try,
    selected_keys,
    to_failure,
)
from pipelines.graph import API_KEYS, DATA_TEAM, KEYS, LANDING, source_metadata
from pipelines.models import Event
from pipelines.publishing import LOADED, publish_and_record

RETRIES = dg.RetryPolicy(max_retries=2, delay=60, backoff=dg.Backoff.EXPONENTIAL)
"""For temporary errors: the network, 5xx responses, the rate limit. Others are not retried."""

PUSHING = frozenset(("push", "resolve", "undo"))
"""Holders of an account's lock for which a pull is skipped: they send rows."""

CHECK = "matches_api_total"
"""The check of each resource: the table has as many live rows as the API reports."""


class PullConfig(dg.Config):
    """Options of the pull."""

    verify_unchanged: bool = Field(
        default=False,
        description="Compare every page of the API's lists, and re-read the least recently verified"
        " records. The setting verification_requests limits the extra requests.",
    )
    accept_deletes: bool = Field(
        default=False, description="Accept all deletions, even a suspiciously large number."
    )

    def options(self, settings: Settings) -> PullOptions:
        """Return the options of the pull, with limits from the settings."""
        scrubs = settings.verification_requests if self.verify_unchanged else 0
        return PullOptions(
            sweeps=self.verify_unchanged,
            accepts_deletes=self.accept_deletes,
            verification_requests=scrubs,
        )


SECONDS_BETWEEN = 5.0
"""Minimum number of seconds between two progress lines, and before the first one."""


class ThrottledLog:
    """Writes progress lines to a run's log, at most one in `SECONDS_BETWEEN` seconds."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log, self._now = log, now
        self._told_at = now()

    def log_line(self, line: str, level: int = logging.DEBUG) -> None:
        """Write the line, unless another line was written within `SECONDS_BETWEEN`."""
        if self._now() - self._told_at >= SECONDS_BETWEEN:
            self._log.log(level, line)
            self._told_at = self._now()


class ProgressLog:
    """Callback that writes the progress of a pull or push to a run's log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._progress = log, ThrottledLog(log)

    def __call__(self, progress: Progress) -> None:
        """Write a line when a resource or batch starts or ends, and occasionally in between."""
        name, done, rows = progress.batch or progress.resource, progress.ended, progress.pending
        if progress.waits_until is not None:
            moment = f"{progress.waits_until:%H:%M:%S} UTC"
            self._progress.log_line(f"Waiting until {moment}", logging.INFO)
        elif progress.until is not None:
            moment = f"{progress.until:%H:%M:%S} UTC"
            self._log.info(f"{name}: {rows} rows are unconfirmed; next search at {moment}")
        elif done is not None:
            self._log.info(
                f"{name}: {done.outcome}; {done.requests} requests, {done.new} new,"
                f" {done.changed} changed, {done.deleted} deleted, {done.live} live"
            )
        elif not (progress.requests or progress.read):
            self._log.info(f"{name}: started")
        else:
            self._progress.log_line(
                f"{name}: {progress.read} read, {progress.pending} pending,"
                f" {progress.requests} requests"
            )


def landing_assets(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the step that pulls, with one asset and one check per loaded table."""

    @dg.multi_asset(
        name="pull_landing",
        description="Pull the selected resources from the API. If some cannot be loaded, the step"
        " publishes the others and then fails. Retries leave out the resources that were loaded.",
        specs=list(_asset_specs(accounts)),
        check_specs=[_count_check_spec(resource, accounts) for resource in CATALOG.values()],
        can_subset=True,
        pool=accounts.pool,
        retry_policy=RETRIES,
    )
    def landing(
        context: dg.AssetExecutionContext, config: PullConfig, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | Event]:
        """Pull the selected resources, and materialize those that were loaded.

        Loads nothing if a push is running. Raises `dagster.Failure` with the connector's error if a
        resource was not loaded.
        """
        settings = account.settings(account_of(context))
        pulling = pull(
            settings,
            _resources_to_pull(context),
            options=config.options(settings),
            publishes=False,
            watch=account.watch or ProgressLog(context.log),
            command="dagster",
        )
        try:
            report = asyncio.run(_pull_and_resolve(pulling, settings, context.log))
        except AccountBusy as error:
            if error.holder not in PUSHING:
                raise to_failure(error, context) from None
            context.log.info(f"Skipped: {error}. The next run pulls these resources.")
            return
        except ConnectorError as error:
            raise to_failure(error, context) from None
        warehouse = Warehouse(settings.folder)
        missing = [each for each in report.resources.values() if each.outcome not in LOADED]
        for name, result in report.resources.items():
            if result in missing:
                continue
            key = KEYS[name]
            if key in context.selected_asset_keys:
                metadata = _pull_metadata(CATALOG[name], result, report, warehouse)
                yield dg.MaterializeResult(asset_key=key, metadata=metadata)
            if dg.AssetCheckKey(key, CHECK) in context.selected_asset_check_keys:
                yield _check_result(result)
        if not missing and report.error is None:
            return
        yield from _record_failure(context, settings, report, missing)

    return landing


async def _pull_and_resolve(
    pulling: Awaitable[PullReport], settings: Settings, log: logging.Logger
) -> PullReport:
    """Await the pull, then search for the records of unconfirmed rows of pushes."""
    report = await pulling
    # A push that has started since then searches for the records of its rows.
    with suppress(AccountBusy):
        if settled := await look_up_unconfirmed(settings, publishes=False):
            log.info(settled)
    return report


def _asset_specs(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """Yield the asset of each resource's loaded table."""
    for name, resource in CATALOG.items():
        yield dg.AssetSpec(
            KEYS[name],
            deps=[API_KEYS[name]],
            description=resource.about,
            skippable=True,
            group_name=LANDING,
            kinds={"api", "python", "duckdb"},
            owners=DATA_TEAM,
            metadata={**_table_metadata(resource), **source_metadata(__file__)},
            partitions_def=accounts.partitions,
            freshness_policy=freshness.freshness_policy(accounts),
        )


def _resources_to_pull(context: dg.AssetExecutionContext) -> Sequence[str]:
    """Return the selected resources that no earlier try of this step has loaded."""
    selected = selected_keys(context)
    if context.retry_number:
        selected = selected - _materialized_in(context.run.run_id, context.instance)
    return [name for name, key in KEYS.items() if key in selected]


def _materialized_in(run_id: str, instance: dg.DagsterInstance) -> set[dg.AssetKey]:
    """Return the assets that the run has materialized so far."""
    kind = {dg.DagsterEventType.ASSET_MATERIALIZATION}
    logged = (each.asset_materialization for each in instance.all_logs(run_id, of_type=kind))
    return {each.asset_key for each in logged if each is not None}


# -- Failures --------------------------------------------------------------------------------------


def _record_failure(
    context: dg.AssetExecutionContext,
    settings: Settings,
    report: PullReport,
    missing: Sequence[ResourceRun],
) -> Iterator[dg.AssetCheckResult | Event]:
    """Raise `dagster.Failure` with the connector's errors.

    If Dagster does not try again, first record a failed check for each resource that was not
    loaded, and publish the others: Dagster runs no later step of the run.
    """
    is_worth_it = _is_temporary(report, missing) and not is_last_try(context)
    reasons = _failure_reasons(report, missing)
    if not is_worth_it:
        for result in missing:
            if dg.AssetCheckKey(KEYS[result.resource], CHECK) in context.selected_asset_check_keys:
                yield _failed_check(result, report)
        if _materialized_in(context.run.run_id, context.instance) or report.outcome != "failed":
            try:
                recorded = publish_and_record(context, settings, run_id=report.run_id)
                yield from recorded.events_of_failed_step(reasons, account_of(context))
            except ConnectorError as error:
                reasons += f" The loaded resources were not published: {explain(error)}"
    raise dg.Failure(
        description=reasons,
        metadata={"not_loaded": [each.resource for each in missing]},
        allow_retries=is_worth_it,
    )


def _is_temporary(report: PullReport, missing: Sequence[ResourceRun]) -> bool:
    """Return True if all errors may disappear without a change by the user."""
    return (
        bool(missing)
        and (report.error is None or isinstance(report.error, TryAgain))
        and all(can_retry(each) for each in missing if each.message)
    )


def _failure_reasons(report: PullReport, missing: Sequence[ResourceRun]) -> str:
    """Return sentences on the errors and on the resources that were not loaded."""
    if report.error is not None:
        names = ", ".join(each.resource for each in missing)
        return explain(report.error) + (f" Not loaded: {names}." if names else "")
    return " ".join(explain_together(missing))


def _failed_check(result: ResourceRun, report: PullReport) -> dg.AssetCheckResult:
    """Return the failed check of a resource that was not loaded."""
    return dg.AssetCheckResult(
        passed=False,
        check_name=CHECK,
        asset_key=KEYS[result.resource],
        description=f"Not loaded. {explain(report.error or result)}",
    )


# -- What Dagster shows ----------------------------------------------------------------------------
# The metadata has no personal data, only counts, timestamps and values of `status`.

_STATUS = "status"


def _count_check_spec(resource: Declaration, accounts: Accounts) -> dg.AssetCheckSpec:
    """Return the check that compares the number of rows with the API's total."""
    about = (
        f"landing.{resource.name} has as many live rows as the API reported in its last list. A"
        " difference does not stop publishing, because the next pull resolves it. If the resource"
        " was not loaded, the check fails with the reason."
    )
    return asset_check_spec(accounts, dg.AssetCheckKey(KEYS[resource.name], CHECK), about)


def _check_result(result: ResourceRun) -> dg.AssetCheckResult:
    """Return the result of comparing the number of rows; an unknown total fails the check.

    A difference is only a warning if the pull was verified: the API changed during the pull then.
    """
    total = {} if result.total is None else {"total": result.total}
    return dg.AssetCheckResult(
        passed=result.live == result.total,
        check_name=CHECK,
        asset_key=KEYS[result.resource],
        severity=dg.AssetCheckSeverity.WARN if result.proven else dg.AssetCheckSeverity.ERROR,
        description=describe_row_difference(result),
        metadata={"live": result.live, "pending": result.pending, **total},
    )


def _table_metadata(resource: Declaration) -> dict[str, object]:
    """Return the columns, name and scope of the loaded table."""
    return {
        "dagster/column_schema": dg.TableSchema(
            [_table_column(each) for each in landing_columns(resource.name)]
        ),
        "dagster/table_name": f"landing.{resource.name}",
        "scope": resource.read_scope(),
    }


def _pull_metadata(
    resource: Declaration, result: ResourceRun, report: PullReport, warehouse: Warehouse
) -> dict[str, Any]:
    """Return counts and times of a resource's pull; `waited_seconds` covers the whole run."""
    counts = ("requests", "new", "changed", "unchanged", "deleted", "live", "total", "pending")
    metadata = {name: getattr(result, name) for name in (*counts, "outcome", "message")}
    metadata |= {
        "verified": result.proven,
        "waited_seconds": report.waited_seconds,
        "run_id": report.run_id,
        "preview": _status_counts(resource, warehouse),
        "dagster/row_count": result.live,
        "dagster/uri": warehouse.work.absolute().as_uri(),
    }
    if result.bookmark_after is not None:
        metadata["changes_read_until"] = dg.MetadataValue.timestamp(result.bookmark_after)
    return {name: value for name, value in metadata.items() if value is not None}


def _table_column(column: Column) -> dg.TableColumn:
    """Return the column in Dagster's form."""
    is_id = column.name == "id"
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=column.comment,
        # Other columns are null if a row was only listed, or if the API omitted the field.
        constraints=dg.TableColumnConstraints(nullable=not is_id, unique=is_id),
    )


def _status_counts(resource: Declaration, warehouse: Warehouse) -> dg.MetadataValue | None:
    """Return a Markdown table with the number of live rows by status; None without statuses."""
    if _STATUS not in resource.fields:
        return None
    try:
        counts = warehouse.count_by(resource, _STATUS)
    except ConnectorError:
        # A missing preview must not fail the step.
        return None
    rows = "\n".join(
        f"| {_markdown_code(status)} | {count:,} |" for status, count in counts.items()
    )
    return dg.MetadataValue.md(f"| {_STATUS} | live rows |\n|---|---:|\n{rows}")


def _markdown_code(status: str | None) -> str:
    """Return the status as Markdown code, with unusual characters replaced."""
    # An undocumented status may contain any characters.
    if status is None:
        return "*none*"
    allowed = "".join(c if c.isalnum() or c in "_- " else "?" for c in status)
    return f"`{allowed}`"
