"""The published file as an asset: it comes last, and a failed check leaves it unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from connector.catalog import CATALOG
from connector.sandbox.server import Sandbox
from connector.warehouse.user_query import query
from connector.warehouse.warehouse import Warehouse
from pipelines.definitions import definitions
from pipelines.graph import PUBLISHED
from pipelines.jobs import nightly_pull_job
from tests.models.agency import LONG, PublishingAccount
from tests.pipelines.running import (
    COUNTS,
    KEY,
    landing,
    make_account,
    materialize_resources,
    published,
)
from tests.support.recorded import last_publications


def test_the_published_file_depends_on_every_other_asset() -> None:
    job = definitions.resolve_job_def(nightly_pull_job.name)
    graph = definitions.resolve_asset_graph()
    keys = graph.materializable_asset_keys - {dg.AssetKey("push_from_query")}

    assert keys == job.asset_layer.executable_asset_keys
    assert keys - {PUBLISHED} == dg.AssetSelection.assets(PUBLISHED).upstream().resolve(graph) & (
        keys - {PUBLISHED}
    )


def test_a_run_loads_records_and_publishes_once(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        result = dg.materialize(
            [landing, published],
            resources={"account": make_account(sandbox.base_url, tmp_path)},
            raise_on_error=False,
        )

    assert result.success
    metadata = published_metadata(result)
    warehouse = Warehouse(tmp_path)
    assert warehouse.published.stat().st_size == metadata["bytes"].value
    assert "keep" == metadata["personal"].value
    assert 1 == len(last_publications(warehouse.folder, 5))
    landed = query(warehouse.published, "SELECT count(*) FROM landing.candidates").rows
    assert ((COUNTS["candidates"],),) == landed


def test_loaded_records_are_published_although_a_scope_is_missing(tmp_path: Path) -> None:
    scopes = [f"{each.scope}.read" for each in CATALOG.values() if each.name != "leads"]
    with Sandbox(counts=COUNTS, keys={KEY: scopes}) as sandbox:
        ran = materialize_resources(make_account(sandbox.base_url, tmp_path))

    assert not ran.success
    landed = query(Warehouse(tmp_path).published, "SELECT count(*) FROM landing.jobs").rows
    assert ((COUNTS["jobs"],),) == landed


def published_metadata(result: dg.ExecuteInProcessResult) -> Any:
    """Return the metadata of the published file in a run."""
    (made,) = (
        each
        for each in result.asset_materializations_for_node("publish")
        if each.asset_key == PUBLISHED
    )
    return made.metadata


def test_a_failed_check_fails_the_published_asset_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agency = PublishingAccount(tmp_path)
    agency.use_project(monkeypatch)
    agency.insert_rows("jobs", {"id": "j1", "title": LONG})
    there = type(make_account("", tmp_path))(environ=agency.environ, cwd=tmp_path)

    result = dg.materialize([published], resources={"account": there}, raise_on_error=False)

    assert not result.success
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "titles_are_short (1 row)" in str(data.description)
    assert ["titles_are_short"] == data.metadata["failed_checks"].value
    assert not agency.published_file.exists()
