"""How old what analysts see may become: by the time of the run, and by that of the data.

Dagster's own policy asks when an asset was last materialized, whatever that run proved, and, where
accounts are partitions, of whichever account. So it tells that the schedule lives. Whether each
account's data is young enough is a check of `published`, from what is proven by its files.
"""

# Annotations stay as they are, and not text: Dagster reads those of a check at import.
from datetime import UTC, datetime, timedelta

import dagster as dg

from connector import (
    Configured,
    ConnectorError,
    Proof,
    Warehouse,
    configured_accounts,
    explain,
    proof_of,
)
from pipelines.accounts import Account, Accounts, failure_of

NAME = "data_is_fresh"
PUBLISHED = dg.AssetKey(["published"])
"""The asset that analysts open."""

_POLICY_LEAST = timedelta(minutes=1)
"""Dagster takes no shorter time."""


def policy_of(accounts: Accounts) -> dg.FreshnessPolicy:
    """That an asset is materialized within `alert_max_age`, the shortest of any account."""
    settings = [each.settings for each in accounts.named if each.settings is not None]
    ages = [each.alert_max_age.value.length for each in settings or [accounts.common]]
    return dg.FreshnessPolicy.time_window(fail_window=max(_POLICY_LEAST, min(ages)))


@dg.asset_check(
    asset=PUBLISHED,
    name=NAME,
    description="Every resource of every account was proven within the account's alert_max_age,"
    " whenever a run last ended.",
)
def data_is_fresh(
    context: dg.AssetCheckExecutionContext, account: dg.ResourceParam[Account]
) -> dg.AssetCheckResult:
    """Look at the files of all accounts; nothing is asked of the API. Raises `dagster.Failure`
    where the project file cannot be read.
    """
    return result_of(account, datetime.now(UTC))


def result_of(account: Account, now: datetime) -> dg.AssetCheckResult:
    """How the check comes out at a moment: a sentence for each account that is behind, or that
    cannot be looked at. Raises `dagster.Failure`.
    """
    try:
        accounts = configured_accounts(account.environ, account.folder)
    except ConnectorError as error:
        raise failure_of(error) from None
    told: dict[str, dg.MetadataValue] = {}
    sentences = []
    for each in accounts:
        proof = _proof(each, now)
        whose = "" if len(accounts) == 1 else f"{each.name or 'the unnamed account'}: "
        if isinstance(proof, ConnectorError):
            sentences.append(f"{whose}{explain(proof)}")
            continue
        if proof.sentence is not None:
            sentences.append(f"{whose}{proof.sentence}")
        if proof.oldest is not None:
            name = "proven_up_to" if len(accounts) == 1 else f"proven_up_to/{each.name}"
            told[name] = dg.MetadataValue.timestamp(proof.oldest)
    return dg.AssetCheckResult(
        passed=not sentences,
        severity=dg.AssetCheckSeverity.WARN,
        description=" ".join(sentences) or None,
        metadata=told,
    )


def _proof(account: Configured, now: datetime) -> Proof | ConnectorError:
    """How old the proof of an account is, or why that cannot be told."""
    if account.settings is None:
        assert account.error is not None
        return account.error
    warehouse = Warehouse(account.settings.folder)
    try:
        proven_at = warehouse.health().proven_at if warehouse.exists else {}
    except ConnectorError as error:
        return error
    return proof_of(proven_at, now, account.settings.alert_max_age.value)
