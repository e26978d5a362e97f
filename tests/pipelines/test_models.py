"""Models as assets: their dependencies, and the metadata of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from connector.models.project import load_project
from connector.warehouse.file import open_file
from connector.warehouse.warehouse import Warehouse
from pipelines.accounts import Account, Accounts
from pipelines.definitions import define
from pipelines.models import SOURCES, TESTS, model_assets
from tests.cli.test_models import create_warehouse_with_lead
from tests.pipelines.running import KEYS, PUBLISHED, published

PROJECT = load_project()


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
    return next(
        each
        for each in define(Account(environ={})).resolve_all_asset_specs()
        if each.key.path[-1] == name and each.group_name != "landing"
    )


def find_dependencies(name: str) -> set[dg.AssetKey]:
    """Return the assets that an asset depends on."""
    return {each.asset_key for each in find_asset(name).deps}


def model_key(name: str) -> dg.AssetKey:
    """Return the key of a seed or model."""
    return dg.AssetKey([PROJECT.nodes[name].schema, name])


def test_each_model_is_an_asset_that_depends_on_its_refs() -> None:
    marts = {model_key(n) for n, node in PROJECT.nodes.items() if node.schema == "marts"}
    assert marts == set(published.keys) - {PUBLISHED}
    assert {KEYS["jobs"]} == find_dependencies("stg_jobs")
    assert {KEYS["content_types"]} == find_dependencies("content_columns")
    assert set(KEYS.values()) == find_dependencies("as_of")
    assert set() == find_dependencies("people")
    placements = find_asset("fct_placements")
    parents = PROJECT.nodes["fct_placements"].parents
    assert {model_key(name) for name in parents} == {each.asset_key for each in placements.deps}
    assert "marts" == placements.group_name
    grain = "one row per permanent or contract booking that was agreed."
    description = placements.description or ""
    assert f"\n\n**Grain:** {grain}\n\n**Excluded:** drafts, " in description
    assert "\n" not in description.replace("\n\n", "")


def test_each_model_with_tests_has_one_check_and_each_audit_has_one() -> None:
    tested = {each.model for each in PROJECT.checks if each.line is not None}
    audits = {each.name for each in PROJECT.checks if each.line is None}
    marts = [key for key in published.keys if key.path[0] == "marts"]

    expected = {dg.AssetCheckKey(key, TESTS) for key in marts if key.path[-1] in tested}
    expected |= {dg.AssetCheckKey(PUBLISHED, name) for name in (*audits, SOURCES)}
    assert expected == set(published.check_keys)


def test_own_models_are_assets_and_broken_ones_do_not_stop_loading(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "open_jobs.sql").write_text("select * from {{ ref('stg_jobs') }}")
    environ = {"CONNECTOR_MODELS_FOLDER": str(tmp_path / "own")}
    here = Account(environ=environ, cwd=tmp_path)
    made = model_assets(Accounts.read(here))[0]
    (tmp_path / "own" / "open_jobs.sql").write_text("select * from {{ ref('nothing') }}")
    without = model_assets(Accounts.read(here))[0]

    own = dg.AssetKey(["own", "open_jobs"])
    assert own in made.keys
    assert {model_key("stg_jobs")} == {each.asset_key for each in made.get_asset_spec(own).deps}
    assert own not in without.keys


@pytest.mark.slow
def test_a_run_records_rows_columns_and_checks(folder: Path) -> None:
    tested = next(key.asset_key for key in published.check_keys if key.name == TESTS)
    result = dg.materialize(
        [published],
        selection=[model_key("fct_leads"), tested, PUBLISHED],
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
    leads: Any = done[model_key("fct_leads")]

    assert {model_key("fct_leads"), tested, PUBLISHED} == set(done)
    assert 1 == leads["dagster/row_count"].value
    assert Warehouse(folder).published.as_uri() == leads["dagster/uri"].value
    columns = {each.name: each for each in leads["dagster/column_schema"].value.columns}
    assert "The lead." == columns["lead_id"].description
    assert checks[dg.AssetCheckKey(tested, TESTS)].passed
    assert checks[dg.AssetCheckKey(PUBLISHED, SOURCES)].passed
    # The audits of severity warn fail: the folder has no verified pull, and default seeds.
    failed = {key.name for key, each in checks.items() if not each.passed}
    assert {"copy_is_fresh", "seeds_are_complete"} == failed


@pytest.mark.slow
def test_a_failed_blocking_check_fails_the_step(folder: Path) -> None:
    with open_file(Warehouse(folder).work) as connection:
        connection.execute("INSERT INTO landing.leads FROM landing.leads")

    @dg.asset(deps=[PUBLISHED])
    def afterwards() -> None:
        raise AssertionError("what is gated must not run")

    result = dg.materialize(
        [published, afterwards],
        selection=[PUBLISHED, dg.AssetKey("afterwards")],
        resources={"account": make_account(folder)},
        raise_on_error=False,
    )
    failed = {e.check_name: e for e in result.get_asset_check_evaluations() if not e.passed}

    assert not result.success
    assert ["publish"] == [each.step_key for each in result.get_step_failure_events()]
    assert "unique_landing_leads_id: 1 rows. " in str(failed[SOURCES].description)
    metadata = failed[SOURCES].metadata
    assert ("lead-1", 1) == (
        metadata["unique_landing_leads_id/examples"].value,
        metadata["unique_landing_leads_id/rows"].value,
    )
