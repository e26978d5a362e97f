"""Checks with warnings: deleted records cause none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.marts.world import NOW, ModelWorld, read_yaml

pytestmark = pytest.mark.slow


def test_records_of_deleted_candidates_and_jobs_do_not_warn(tmp_path: Path) -> None:
    world = ModelWorld(tmp_path)
    world.run_steps(read_yaml("jobs"))
    before = world.publish().publication
    world.load_deletions("2026-03-05 09:00", candidates=("hal",), jobs=("multi",))
    world.mark_verified(NOW)
    after = world.publish().publication

    assert {*after.failed_checks} <= {*before.failed_checks, "company_counters"}
