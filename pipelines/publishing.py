"""Asset of the published file, and the recording of publications by any step."""

# Dagster reads the annotations of an asset at import, so they are not postponed here.
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from connector import (
    ConnectorError,
    PublishingRefused,
    PublishResult,
    Settings,
    Warehouse,
    explain,
    explain_together,
    publish,
)
from pipelines import freshness
from pipelines.accounts import Account, Accounts, account_of, asset_check_spec, to_failure
from pipelines.graph import DATA_TEAM, KEYS, PUBLISHED, PUBLISHING, source_metadata
from pipelines.models import DRAFT_TAG, LAST_KEYS, BuildLog, Event, build_events

COMPLETE = dg.AssetCheckKey(PUBLISHED, "latest_pull_is_complete")
"""It blocks so that Dagster's retry of a run with failed resources publishes again."""

LOADED = frozenset(("done", "partial"))
"""Outcomes of a resource whose rows are up to date."""


def published_asset(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the asset of the published file."""

    @dg.asset(
        key=PUBLISHED,
        group_name=PUBLISHING,
        deps=[*KEYS.values(), *LAST_KEYS],
        kinds={"python", "duckdb"},
        owners=DATA_TEAM,
        metadata=source_metadata(__file__),
        description="`recruitment.duckdb`, the file that analysts open. It is replaced as a whole,"
        " and only if no blocking check failed. If nothing changed, the file stays as it is. Models"
        " that this step builds are recorded as materializations, too.",
        check_specs=[
            asset_check_spec(
                accounts,
                COMPLETE,
                "The latest pull loaded every resource that it read. If it fails, the file has"
                " older rows of the named resources.",
                is_blocking=True,
            )
        ],
        partitions_def=accounts.partitions,
        freshness_policy=freshness.freshness_policy(accounts),
        retry_policy=dg.RetryPolicy(max_retries=1, delay=60),
    )
    def published(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | Event]:
        """Publish the draft with this run's models, or build the models if there is no draft.

        Raises `dagster.Failure` with the names of the failed checks.
        """
        # The context has the run's tags from before its first step.
        run = context.instance.get_run_by_id(context.run.run_id)
        draft = run.tags.get(DRAFT_TAG) if run is not None else None
        try:
            settings = account.settings(account_of(context))
            recorded = publish_and_record(context, settings, draft=draft)
            passed, reason = _completeness(settings)
        except PublishingRefused as error:
            raise dg.Failure(
                description=explain(error),
                metadata={"code": error.code, "failed_checks": list(error.failed)},
                allow_retries=False,
            ) from None
        except ConnectorError as error:
            raise to_failure(error, context) from None
        yield from recorded.events
        yield dg.MaterializeResult(
            metadata=recorded.metadata,
            check_results=[
                dg.AssetCheckResult(
                    passed=passed,
                    check_name=COMPLETE.name,
                    # An error would fail the step, although the file is published.
                    severity=dg.AssetCheckSeverity.WARN,
                    description=reason,
                )
            ],
        )

    return published


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
    draft: str | None = None,
    run_id: str | None = None,
) -> RecordedPublication:
    """Publish if anything changed, and return the events for Dagster. Raises as `publish`.

    `draft` names the draft of an earlier step; without it, the models are built. `run_id` is the
    connector's run whose records are published.
    """
    result = publish(
        settings, prepared=draft, if_changed=True, run_id=run_id, watch=BuildLog(context.log)
    )
    account, events = account_of(context), list[Event]()
    if result.built is not None:
        events += build_events(result.built, result.file, account)
    return RecordedPublication(_publication_metadata(result), events)


def _completeness(settings: Settings) -> tuple[bool, str | None]:
    """Return True if the latest run loaded all its resources, and sentences on the others."""
    health = Warehouse(settings.folder).health()
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
    }
    if not result.is_unchanged:
        metadata |= {
            "bytes": row.bytes or 0,
            "models": row.models,
            "checks": row.checks,
            "warnings": ", ".join(row.failed_checks) or "none",
        }
    if row.true_of is not None:
        metadata["data_as_of"] = dg.MetadataValue.timestamp(row.true_of)
    return metadata
