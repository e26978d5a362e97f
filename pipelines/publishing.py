"""Asset of the published file, and the recording of publications by any step."""

# Dagster reads the annotations of an asset at import, so they are not postponed here.
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from connector.errors import ConnectorError, PublishingRefused
from connector.models.publish import PublishResult, publish
from connector.pulls.account import check_account
from connector.pulls.report import explain, explain_together
from connector.settings import Settings
from connector.state.database import Database
from connector.state.runs import Runs
from pipelines import freshness
from pipelines.accounts import Account, Accounts, account_of, asset_check_spec, to_failure
from pipelines.graph import DATA_TEAM, KEYS, PUBLISHED, PUBLISHING, source_metadata
from pipelines.models import (
    CHECKS,
    LAST_KEYS,
    PROJECT,
    BuildLog,
    Event,
    asset_spec,
    build_events,
    check_events,
    check_spec,
)

COMPLETE = dg.AssetCheckKey(PUBLISHED, "latest_pull_is_complete")
"""It blocks so that Dagster's retry of a run with failed resources publishes again."""

LOADED = frozenset(("done", "partial"))
"""Outcomes of a resource whose rows are up to date."""


def published_asset(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the step that builds and publishes the file, with one asset per model and seed."""
    partitions = accounts.partitions

    @dg.multi_asset(
        name="publish",
        description="Build all models over the loaded rows, check them, and replace the published"
        " file. It is one step, because the file is published as a whole.",
        specs=[
            *(
                asset_spec(PROJECT, name).replace_attributes(partitions_def=partitions)
                for name in PROJECT.nodes
            ),
            dg.AssetSpec(
                PUBLISHED,
                group_name=PUBLISHING,
                deps=[*KEYS.values(), *LAST_KEYS],
                kinds={"python", "duckdb"},
                owners=DATA_TEAM,
                metadata=source_metadata(__file__),
                description="`recruitment.duckdb`, the file that analysts open. It is replaced as a"
                " whole, and only if no blocking check failed.",
                skippable=True,
                partitions_def=partitions,
                freshness_policy=freshness.freshness_policy(accounts),
            ),
        ],
        check_specs=[
            *(check_spec(accounts, each) for each in CHECKS.values()),
            asset_check_spec(
                accounts,
                COMPLETE,
                "The latest pull loaded every resource that it read. If it fails, the file has"
                " older rows of the named resources.",
                is_blocking=True,
            ),
        ],
        can_subset=True,
        retry_policy=dg.RetryPolicy(max_retries=1, delay=60),
    )
    def publish_file(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        """Publish, and record the selected models and checks.

        Raises `dagster.Failure` with the names of the failed checks, or with file and line of a
        model that cannot be built.
        """
        log = BuildLog(context.log)
        try:
            settings = account.settings(account_of(context))
            recorded = publish_and_record(context, settings, watch=log)
            passed, reason = _completeness(settings)
        except PublishingRefused as error:
            yield from _selected_results(context, check_events(log.checks, account_of(context)))
            raise dg.Failure(
                description=explain(error),
                metadata={"code": error.code, "failed_checks": list(error.failed)},
                allow_retries=False,
            ) from None
        except ConnectorError as error:
            raise to_failure(error, context) from None
        yield from _selected_results(
            context,
            [
                *recorded.events,
                dg.AssetMaterialization(PUBLISHED, metadata=recorded.metadata),
                dg.AssetCheckEvaluation(
                    PUBLISHED,
                    COMPLETE.name,
                    passed=passed,
                    # An error would fail the step, although the file is published.
                    severity=dg.AssetCheckSeverity.WARN,
                    description=reason,
                ),
            ],
        )

    return publish_file


def _selected_results(
    context: dg.AssetExecutionContext, events: Iterable[Event]
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Yield the events of assets and checks that the run selects, as results of the step."""
    for event in events:
        if isinstance(event, dg.AssetMaterialization):
            if event.asset_key in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=event.asset_key, metadata=event.metadata)
        elif event.asset_check_key in context.selected_asset_check_keys:
            yield dg.AssetCheckResult(
                passed=event.passed,
                asset_key=event.asset_key,
                check_name=event.check_name,
                metadata=event.metadata,
                severity=event.severity,
                description=event.description,
            )


@dataclass(frozen=True, slots=True)
class RecordedPublication:
    """Publication, with the events that Dagster records for it.

    Attributes:
        metadata: Metadata of the published file.
        events: Events of the models that were built for it.
    """

    metadata: Mapping[str, Any]
    events: Sequence[Event]

    def events_of_failed_step(self, reasons: str, account: str | None) -> Iterator[Event]:
        """Yield all events of a step that fails because some resources were not loaded."""
        yield from self.events
        yield dg.AssetMaterialization(PUBLISHED, metadata=self.metadata, partition=account)
        yield dg.AssetCheckEvaluation(
            PUBLISHED,
            COMPLETE.name,
            passed=False,
            description=reasons,
            blocking=True,
            partition=account,
        )


def publish_and_record(
    context: dg.AssetExecutionContext,
    settings: Settings,
    *,
    run_id: str | None = None,
    watch: BuildLog | None = None,
) -> RecordedPublication:
    """Publish, and return the events for Dagster. Raises as `publish`.

    `run_id` is the connector's run whose records are published.
    """
    check_account(settings)
    result = publish(settings, run_id=run_id, watch=watch or BuildLog(context.log))
    events = build_events(result.built, account_of(context))
    return RecordedPublication(_publication_metadata(result), tuple(events))


def _completeness(settings: Settings) -> tuple[bool, str | None]:
    """Return True if the latest run loaded all its resources, and sentences on the others."""
    with Database(settings.folder) as database:
        health = Runs(database).health()
    ended = tuple(health.resources.values())
    ids = {run_id for run_id, _ in ended}
    latest = next((run.run_id for run in health.runs if run.run_id in ids), None)
    failed = [each for run_id, each in ended if run_id == latest and each.outcome not in LOADED]
    return not failed, " ".join(explain_together(failed)) or None


def _publication_metadata(result: PublishResult) -> dict[str, Any]:
    """Return the path, size, age and counts of the published file."""
    row = result.publication
    metadata: dict[str, Any] = {
        "dagster/uri": result.file.absolute().as_uri(),
        "file": result.file,
        "outcome": row.outcome,
        "personal": row.personal,
        "seconds": round(row.seconds or 0.0, 3),
        "bytes": row.bytes or 0,
        "models": row.models,
        "checks": row.checks,
        "warnings": ", ".join(row.failed_checks) or "none",
    }
    if row.true_of is not None:
        metadata["data_as_of"] = dg.MetadataValue.timestamp(row.true_of)
    return metadata
