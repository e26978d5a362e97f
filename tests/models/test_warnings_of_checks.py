"""Checks with warnings: seeds that are not filled in and deleted records cause none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from connector.models.publish import publish
from connector.models.seeds import AUDIT
from connector.settings import load_settings
from connector.state.runs import Publication
from tests.models.marts.world import NOW, ModelWorld

pytestmark = pytest.mark.slow


def publish_account(folder: Path) -> Publication:
    """Publish the folder's account with the shipped models, and return the publication."""
    environ = {"CONNECTOR_DATA_DIR": str(folder), "CONNECTOR_MODELS": "on"}
    return publish(load_settings({}, environ, folder)).publication


def test_empty_seeds_and_records_of_deleted_candidates_do_not_warn(tmp_path: Path) -> None:
    world = ModelWorld(tmp_path)
    world.load_file("jobs")
    shutil.rmtree(world.seeds)
    world.seeds.mkdir()
    written = publish_account(tmp_path)
    world.write_seed("people", "id,name,team", "u1,,", "u2,Ben,")
    begun = publish_account(tmp_path)
    world.load_deletions("2026-03-05 09:00", candidates=("hal",), jobs=("multi",))
    world.mark_verified(NOW)
    after = publish_account(tmp_path)

    assert {"people", "exchange_rates"} == {*written.unfilled_seeds}
    assert AUDIT not in written.failed_checks
    assert "people" not in begun.unfilled_seeds
    assert AUDIT in begun.failed_checks
    assert not [each for each in after.failed_checks if "relationships" in each]
    assert {*after.failed_checks} <= {*begun.failed_checks, "company_counters"}
