"""Maximum age of published data: by the time of the run, and by that of the data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from pipelines.accounts import Account
from pipelines.freshness import check_freshness, data_is_fresh
from tests.problems.agency import load_account_settings
from tests.support.recorded import record_verified_pull

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)

ACCOUNTS = """
max_age = "26h"
[accounts.acme]
[accounts.globex]
max_age = "2h"
[accounts.initech]
billing_day = 99
"""


def make_project(folder: Path, ages: dict[str, timedelta]) -> Account:
    """Create accounts with verifications of these ages; one account has invalid settings."""
    (folder / "connector.toml").write_text(ACCOUNTS, encoding="utf-8")
    for name, age in ages.items():
        record_verified_pull(load_account_settings(folder / "data", name), NOW - age)
    return Account(environ={}, cwd=folder)


def test_the_freshness_check_warns_of_accounts_verified_too_long_ago(tmp_path: Path) -> None:
    hours = {"acme": timedelta(hours=20), "globex": timedelta(hours=20)}
    found = check_freshness(make_project(tmp_path, hours), NOW)
    young = check_freshness(make_project(tmp_path, {"globex": timedelta(hours=1)}), NOW)

    assert not found.passed
    assert dg.AssetCheckSeverity.WARN == found.severity
    description = str(found.description)
    assert "globex: the published file is older than" in description
    assert "initech: billing_day is 99" in description
    assert "acme" not in description
    assert {"verified_until/acme", "verified_until/globex"} == set(found.metadata)
    assert "globex" not in str(young.description)


def test_the_freshness_check_passes_for_recent_data(tmp_path: Path) -> None:
    record_verified_pull(load_account_settings(tmp_path), datetime.now(UTC))
    account = Account(environ={"CONNECTOR_DATA_DIR": str(tmp_path)}, cwd=tmp_path)
    with dg.DagsterInstance.ephemeral() as instance:
        made = dg.Definitions(asset_checks=[data_is_fresh], resources={"account": account})
        result = made.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance)
        (check,) = result.get_asset_check_evaluations()

    assert check.passed
    assert {"verified_until"} == set(check.metadata)
