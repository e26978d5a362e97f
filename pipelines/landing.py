"""The loaded table of each resource: one asset each, pulled by one step.

It is one step because all requests of an API key share its rate limit.
"""

# Dagster reads the annotations of an asset at import, so they are not postponed here.
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from connector.catalog import CATALOG
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
from connector.settings import Settings
from connector.state.runs import ResourceRun
from connector.warehouse.schema import landing_columns
from connector.warehouse.warehouse import Warehouse
from pipelines.accounts import API, LANDING, Account, Accounts, account_of, retry, run, to_failure
from pipelines.models import PUBLISHED, publish_and_describe, table_schema

PUSHING = frozenset(("push", "resolve", "undo"))
"""Holders of an account's lock for which a pull is skipped: they send rows."""

LOADED = frozenset(("done", "partial"))
"""Outcomes of a resource whose rows are up to date."""

CHECK = "matches_api_total"
"""The check of each resource: the table has as many live rows as the API reports."""

_SECONDS_BETWEEN = 5.0
"""Minimum number of seconds between two progress lines of a resource."""


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
        return PullOptions(
            sweeps=self.verify_unchanged,
            accepts_deletes=self.accept_deletes,
            verification_requests=settings.verification_requests if self.verify_unchanged else 0,
        )


class ProgressLog:
    """Callback that writes the progress of a pull or push to a run's log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._logged_at = log, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Write a line when a resource or batch ends, and every few seconds in between."""
        name, done = progress.batch or progress.resource, progress.ended
        waits = progress.until or progress.waits_until
        if done is not None:
            self._log.info(
                f"{name}: {done.outcome}; {done.requests} requests, {done.new} new,"
                f" {done.changed} changed, {done.deleted} deleted, {done.live} live"
            )
        elif progress.until or time.monotonic() - self._logged_at >= _SECONDS_BETWEEN:
            self._logged_at = time.monotonic()
            self._log.info(
                f"{name}: {progress.read} read, {progress.pending} pending,"
                f" {progress.requests} requests"
                + (f"; waiting until {waits:%H:%M:%S} UTC" if waits else "")
            )


def landing_assets(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the step that pulls, with one asset and one check per loaded table."""
    keys = {name: accounts.key(LANDING, name) for name in CATALOG}

    @dg.multi_asset(
        name="pull_landing",
        description="Pull the selected resources from the API. If some cannot be loaded, the step"
        " publishes the others and then fails.",
        specs=[
            accounts.asset_spec(
                LANDING,
                name,
                path=__file__,
                deps=[accounts.key(API, name)],
                description=resource.about,
                group_name=LANDING,
                kinds={"api", "python", "duckdb"},
                metadata={
                    "dagster/column_schema": table_schema(landing_columns(name)),
                    "dagster/table_name": f"landing.{name}",
                    "scope": resource.read_scope(),
                },
                freshness_policy=accounts.freshness_policy,
            )
            for name, resource in CATALOG.items()
        ],
        check_specs=[
            accounts.check_spec(
                key,
                CHECK,
                f"landing.{name} has as many live rows as the API reported in its last list. A"
                " difference does not stop publishing, because the next pull resolves it. If the"
                " resource was not loaded, the check fails with the reason.",
            )
            for name, key in keys.items()
        ],
        can_subset=True,
    )
    def landing(
        context: dg.AssetExecutionContext, config: PullConfig, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.AssetMaterialization]:
        """Pull the selected resources, and materialize those that were loaded.

        Loads nothing if a push is running. Raises `dagster.Failure` with the connector's error if a
        resource was not loaded.
        """
        settings = account.settings(account_of(context))
        checks = {each.asset_key for each in context.selected_asset_check_keys}
        try:
            report = run(
                pull(
                    settings,
                    [n for n, key in keys.items() if key in context.selected_asset_keys | checks],
                    options=config.options(settings),
                    publishes=False,
                    watch=account.watch or ProgressLog(context.log),
                    command="dagster",
                )
            )
        except AccountBusy as error:
            if error.holder not in PUSHING:
                raise to_failure(error, context) from None
            context.log.info(f"Skipped: {error}. The next run pulls these resources.")
            return
        except ConnectorError as error:
            raise to_failure(error, context) from None
        missing = [each for each in report.resources.values() if each.outcome not in LOADED]
        reasons = _failure_reasons(report, missing)
        if reasons and _is_temporary(report, missing):
            retry(context, dg.Failure(reasons))
        for name, result in report.resources.items():
            if result not in missing and keys[name] in context.selected_asset_keys:
                metadata = _pull_metadata(result, report, Warehouse(settings.folder))
                yield dg.MaterializeResult(asset_key=keys[name], metadata=metadata)
            if keys[name] in checks:
                yield _check_result(keys[name], result, report)
        if not reasons:
            return
        # Dagster runs no later step of a failed run, so this one publishes the loaded resources.
        if report.outcome != "failed":
            try:
                _, metadata = publish_and_describe(settings, report.run_id)
                yield dg.AssetMaterialization(
                    accounts.key(PUBLISHED), metadata=metadata, partition=account_of(context)
                )
            except ConnectorError as error:
                reasons += f" The loaded resources were not published: {explain(error)}"
        raise dg.Failure(
            description=reasons,
            metadata={"not_loaded": [each.resource for each in missing]},
            allow_retries=False,
        )

    return landing


def _is_temporary(report: PullReport, missing: Sequence[ResourceRun]) -> bool:
    """Return True if all errors may disappear without a change by the user."""
    return (
        bool(missing)
        and (report.error is None or isinstance(report.error, TryAgain))
        and all(can_retry(each) for each in missing if each.message)
    )


def _failure_reasons(report: PullReport, missing: Sequence[ResourceRun]) -> str:
    """Return sentences on the errors and on the resources that were not loaded, or nothing."""
    if report.error is not None:
        names = ", ".join(each.resource for each in missing)
        return explain(report.error) + (f" Not loaded: {names}." if names else "")
    return " ".join(explain_together(missing))


# -- What Dagster shows: counts and times, no personal data ----------------------------------------


def _check_result(key: dg.AssetKey, result: ResourceRun, report: PullReport) -> dg.AssetCheckResult:
    """Return the comparison of the number of rows; an unknown total fails the check.

    A difference is only a warning if the pull was verified: the API changed during the pull then.
    """
    is_loaded = result.outcome in LOADED
    not_loaded = f"Not loaded. {explain(report.error or result)}"
    total = {} if result.total is None else {"total": result.total}
    return dg.AssetCheckResult(
        passed=is_loaded and result.live == result.total,
        check_name=CHECK,
        asset_key=key,
        severity=dg.AssetCheckSeverity.WARN if result.proven else dg.AssetCheckSeverity.ERROR,
        description=describe_row_difference(result) if is_loaded else not_loaded,
        metadata={"live": result.live, "pending": result.pending, **total},
    )


def _pull_metadata(result: ResourceRun, report: PullReport, warehouse: Warehouse) -> dict[str, Any]:
    """Return counts and times of a resource's pull; `waited_seconds` covers the whole run."""
    counts = ("requests", "new", "changed", "unchanged", "deleted", "live", "total", "pending")
    metadata = {name: getattr(result, name) for name in (*counts, "outcome", "message")}
    metadata |= {
        "verified": result.proven,
        "waited_seconds": report.waited_seconds,
        "run_id": report.run_id,
        "dagster/row_count": result.live,
        "dagster/uri": warehouse.work.absolute().as_uri(),
    }
    if result.bookmark_after is not None:
        metadata["changes_read_until"] = dg.MetadataValue.timestamp(result.bookmark_after)
    return {name: value for name, value in metadata.items() if value is not None}
