"""Checks with warnings: deleted records cause none."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.models.publish import publish
from connector.settings import load_settings
from connector.state.runs import Publication
from tests.models.marts.world import NOW, ModelWorld, read_yaml

pytestmark = pytest.mark.slow


def publish_account(folder: Path) -> Publication:
    """Publish the folder's account with the shipped models, and return the publication."""
    environ = {"CONNECTOR_DATA_DIR": str(folder), "CONNECTOR_MODELS": "on"}
    return publish(load_settings({}, environ, folder)).publication


def test_records_of_deleted_candidates_and_jobs_do_not_warn(tmp_path: Path) -> None:
    world = ModelWorld(tmp_path)
    world.run_steps(read_yaml("jobs"))
    before = publish_account(tmp_path)
    world.load_deletions("2026-03-05 09:00", candidates=("hal",), jobs=("multi",))
    world.mark_verified(NOW)
    after = publish_account(tmp_path)

    assert {*after.failed_checks} <= {*before.failed_checks, "company_counters"}
