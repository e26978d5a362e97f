"""Freshness: by the time of the last run, and by the age of the published file.

Dagster's freshness policy compares the last materialization of any account, so it shows that the
schedule works. The check `data_is_fresh` compares the time up to which each account was verified.
"""

# Dagster reads the annotations of a check at import, so they are not postponed here.
from datetime import UTC, datetime, timedelta

import dagster as dg

from connector.errors import ConnectorError
from connector.operations.problems import find_problems, read_state
from connector.pulls.report import explain
from connector.settings import configured_accounts
from pipelines.accounts import Account, Accounts, to_failure
from pipelines.graph import PUBLISHED

NAME = "data_is_fresh"
_POLICY_LEAST = timedelta(minutes=1)
"""Minimum interval that Dagster accepts."""


def freshness_policy(accounts: Accounts) -> dg.FreshnessPolicy:
    """Return the freshness policy: the shortest `max_age` of any account."""
    settings = [each.settings for each in accounts.named if each.settings is not None]
    ages = [each.max_age.length for each in settings or [accounts.common]]
    return dg.FreshnessPolicy.time_window(fail_window=max(_POLICY_LEAST, min(ages)))


@dg.asset_check(
    asset=PUBLISHED,
    name=NAME,
    description="Every resource of every account was verified within the account's"
    " `max_age`. A run that succeeded without verifying a resource does not count.",
)
def data_is_fresh(
    context: dg.AssetCheckExecutionContext, account: dg.ResourceParam[Account]
) -> dg.AssetCheckResult:
    """Check the files of all accounts, without requests to the API.

    Raises `dagster.Failure` if the project file cannot be read.
    """
    return check_freshness(account, datetime.now(UTC))


def check_freshness(account: Account, now: datetime) -> dg.AssetCheckResult:
    """Return the result of the check at the time `now`, with a sentence for each failed account.

    Raises `dagster.Failure` if the project file cannot be read.
    """
    try:
        accounts = configured_accounts(account.environ, account.folder)
    except ConnectorError as error:
        raise to_failure(error) from None
    metadata: dict[str, dg.MetadataValue] = {}
    sentences = []
    for each in accounts:
        whose = "" if len(accounts) == 1 else f"{each.name or 'the unnamed account'}: "
        if each.settings is None:
            assert each.error is not None
            sentences.append(f"{whose}{explain(each.error)}")
            continue
        state = read_state(each.settings, now)
        if state.error is not None:
            sentences.append(f"{whose}{explain(state.error)}")
        sentences += [
            f"{whose}{problem.title}. {problem.happened}"
            for problem in find_problems(state)
            if problem.code == "data_old"
        ]
        known = [at for at in (state.verified or {}).values() if at is not None]
        if known:
            name = "verified_until" if len(accounts) == 1 else f"verified_until/{each.name}"
            metadata[name] = dg.MetadataValue.timestamp(min(known))
    return dg.AssetCheckResult(
        passed=not sentences,
        severity=dg.AssetCheckSeverity.WARN,
        description=" ".join(sentences) or None,
        metadata=metadata,
    )
