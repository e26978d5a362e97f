"""The published file as an asset: it comes last, and a failed check leaves it unchanged."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import definitions
from pipelines.graph import PUBLISHED
from pipelines.jobs import nightly_pull_job
from tests.models.agency import LONG, PublishingAccount
from tests.pipelines.running import make_account, published


def test_the_published_file_depends_on_every_other_asset() -> None:
    job = definitions.resolve_job_def(nightly_pull_job.name)
    graph = definitions.resolve_asset_graph()
    keys = graph.materializable_asset_keys - {dg.AssetKey("push_from_query")}

    assert keys == job.asset_layer.executable_asset_keys
    assert keys - {PUBLISHED} == dg.AssetSelection.assets(PUBLISHED).upstream().resolve(graph) & (
        keys - {PUBLISHED}
    )


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
