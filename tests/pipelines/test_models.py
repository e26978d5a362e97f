"""Models as assets: their dependencies, and the metadata of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from connector.warehouse.file import open_file
from connector.warehouse.warehouse import Warehouse
from pipelines.accounts import Account
from pipelines.graph import KEYS, PUBLISHED
from pipelines.models import CHECKS, PROJECT, asset_key, check_spec
from pipelines.publishing import COMPLETE
from tests.cli.test_models import create_warehouse_with_lead
from tests.pipelines.running import UNNAMED, published

LINE = PROJECT.selected(["+fct_leads"])
"""A mart with all that it is made of: few enough to be recorded quickly."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data folder with one loaded lead."""
    create_warehouse_with_lead(tmp_path)
    return tmp_path


def make_account(folder: Path, models: str = "on") -> Account:
    """Return the account of the folder. It has no address, so it sends no API requests."""
    environ = {"CONNECTOR_DATA_DIR": str(folder), "CONNECTOR_MODELS": models}
    return Account(environ=environ, cwd=folder)


def find_asset(name: str) -> dg.AssetSpec:
    """Return the asset of a seed or model."""
    return published.get_asset_spec(asset_key(PROJECT, name))


def find_dependencies(name: str) -> set[dg.AssetKey]:
    """Return the assets that an asset depends on."""
    return {each.asset_key for each in find_asset(name).deps}


def test_each_model_is_an_asset_that_depends_on_its_refs() -> None:
    assert {asset_key(PROJECT, name) for name in PROJECT.nodes} == set(published.keys) - {PUBLISHED}
    assert {KEYS["jobs"]} == find_dependencies("stg_jobs") == find_dependencies("stg_job_versions")
    assert {KEYS["content_types"]} == find_dependencies("content_columns")
    assert set(KEYS.values()) == find_dependencies("as_of")
    assert set() == find_dependencies("people")
    assert {
        asset_key(PROJECT, name) for name in PROJECT.nodes["fct_placements"].parents
    } == find_dependencies("fct_placements")
    assert "marts" == find_asset("fct_placements").group_name
    description = find_asset("fct_placements").description or ""
    grain = "one row per permanent or contract booking that was agreed."
    assert f"\n\n**Grain:** {grain}\n\n**Excluded:** drafts, " in description
    assert "\n" not in description.replace("\n\n", "")


def test_each_dbt_test_is_an_asset_check_of_the_same_name() -> None:
    blocking = {each.name: each.severity == "error" for each in PROJECT.checks}

    specs = [check_spec(UNNAMED, each) for each in CHECKS.values()]

    assert blocking == {each.name: each.blocking for each in specs}
    assert {each.key for each in specs} == set(published.check_keys) - {COMPLETE}


def test_a_run_records_rows_columns_and_checks(folder: Path) -> None:
    result = dg.materialize(
        [published],
        selection=[asset_key(PROJECT, name) for name in LINE],
        resources={"account": make_account(folder)},
    )
    done: dict[dg.AssetKey, Any] = {
        event.asset_key: event.step_materialization_data.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    checks = {
        dg.AssetCheckKey(each.asset_key, each.check_name): each
        for each in result.get_asset_check_evaluations()
    }
    leads: Any = done[asset_key(PROJECT, "fct_leads")]

    assert {asset_key(PROJECT, name) for name in LINE} == set(done)
    assert 1 == leads["dagster/row_count"].value
    assert "lead_id" in [each.name for each in leads["dagster/column_schema"].value.columns]
    assert {dg.AssetCheckKey(asset_key(PROJECT, "stg_leads"), "unique_landing_leads_id")} < set(
        checks
    )
    assert ["seeds_are_complete"] == [k.name for k, each in checks.items() if not each.passed]


def test_a_failed_blocking_check_fails_the_step(folder: Path) -> None:
    with open_file(Warehouse(folder).work) as connection:
        connection.execute("INSERT INTO landing.leads FROM landing.leads")

    @dg.asset(deps=[asset_key(PROJECT, "stg_leads")])
    def afterwards() -> None:
        raise AssertionError("what is gated must not run")

    result = dg.materialize(
        [published, afterwards],
        selection=[asset_key(PROJECT, "stg_leads"), dg.AssetKey("afterwards")],
        resources={"account": make_account(folder)},
        raise_on_error=False,
    )
    failed = {e.check_name: e for e in result.get_asset_check_evaluations() if not e.passed}

    assert not result.success
    assert ["publish"] == [each.step_key for each in result.get_step_failure_events()]
    metadata = failed["unique_landing_leads_id"].metadata
    assert ("lead-1", 1) == (metadata["examples"].value, metadata["failing_rows"].value)
