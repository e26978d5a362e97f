"""The published file, as the last asset: what landed and what the models made of it, or the reason
why analysts keep what they have.
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import dagster as dg

from connector import ConnectorError, Published, PublishingRefused, explain, publish
from pipelines import freshness, landing, models
from pipelines.accounts import Accounts, account_of
from pipelines.connections import Account, failure_of

KEY = freshness.PUBLISHED

MODEL_KEYS = [models.key_of(models.PROJECT, name) for name in models.PROJECT.order]


def published_of(accounts: Accounts) -> dg.AssetsDefinition:
    """The published file of each of the accounts."""

    @dg.asset(
        key=KEY,
        group_name="publishing",
        deps=[*landing.KEYS.values(), *MODEL_KEYS],
        kinds={"duckdb"},
        description="`recruitment.duckdb`, the file that analysts open: replaced whole and at"
        " once, and only where no check that blocks has failed.",
        partitions_def=accounts.partitions,
        freshness_policy=freshness.policy_of(accounts),
        retry_policy=dg.RetryPolicy(max_retries=1, delay=60),
    )
    def published(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> dg.MaterializeResult[None]:
        """Publish the draft that this run's models were built in; without one, build it first.

        Raises `dagster.Failure`, which names the checks that failed.
        """
        # As the run is now: the tag was written by a step before this one.
        run = context.instance.get_run_by_id(context.run.run_id)
        draft = run.tags.get(models.DRAFT_TAG) if run is not None else None
        try:
            done = publish(account.settings(account_of(context)), prepared=draft)
        except PublishingRefused as error:
            failure = failure_of(error)
            raise dg.Failure(
                description=explain(error),
                metadata={**failure.metadata, "failed_checks": list(error.failed)},
                allow_retries=False,
            ) from None
        except ConnectorError as error:
            raise failure_of(error) from None
        if done.unshared is not None:
            context.log.warning(f"Not in the lakehouse: {explain(done.unshared)}")
        return dg.MaterializeResult(metadata=of_publication(done))

    return published


def of_publication(done: Published) -> dict[str, dg.MetadataValue]:
    """What Dagster shows of a publication."""
    row = done.publication
    told: dict[str, dg.MetadataValue] = {
        "file": dg.MetadataValue.path(done.file),
        "bytes": dg.MetadataValue.int(row.bytes or 0),
        "models": dg.MetadataValue.int(row.models),
        "checks": dg.MetadataValue.int(row.checks),
        "warnings": dg.MetadataValue.text(", ".join(row.failed_checks) or "none"),
        "personal": dg.MetadataValue.text(row.personal),
        "seconds": dg.MetadataValue.float(round(row.seconds or 0.0, 3)),
    }
    if row.true_of is not None:
        told["true_of"] = dg.MetadataValue.timestamp(row.true_of)
    if done.shared is not None:
        told["lakehouse"] = dg.MetadataValue.text(done.shared.outcome)
    return told
