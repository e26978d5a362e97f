"""The `sync` tables record the outcome and requests of each run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import connector.pulls.run as pull_run
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings import load_settings
from connector.state.database import Database
from tests.support.agency import published, pulled, rows

COUNTS = {"jobs": 4, "candidates": 9}


def test_the_requests_of_each_resource_are_recorded(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        given = load_settings(
            {"base_url": sandbox.base_url, "models": "off"},
            {"CONNECTOR_API_KEY": sandbox.key, "CONNECTOR_DATA_DIR": str(tmp_path / "data")},
            tmp_path,
        )
        report = asyncio.run(pull(given, ["jobs", "candidates"], budget=300))
        seen = [each.path.split("/")[3] for each in sandbox.log]

    found = {r["resource"]: r for r in rows(published(tmp_path), "FROM sync.run_resources")}
    for name in COUNTS:
        assert seen.count(name) == found[name]["requests"]
        assert 0 == found[name]["scrubs"]
        assert 120.0 == found[name]["lateness_seconds"]
        read = rows(published(tmp_path), f"SELECT min(_hydrated_at) AS at FROM landing.{name}")
        assert read[0]["at"] == found[name]["oldest_read_at"]
        assert {} == json.loads(found[name]["anomalies"])
    # The published file shows the run as ended: it is no longer under way.
    (run,) = rows(published(tmp_path), "FROM sync.runs")
    assert ("done", 300) == (run["outcome"], run["budget"])
    assert report.month is not None
    assert len(seen) == report.month.used


def test_the_work_file_is_compacted_after_many_runs_with_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_run, "RUNS_UNTIL_COMPACTION", 2)
    compacted = []
    with Sandbox(counts={"jobs": 4}) as sandbox, Database(tmp_path / "data") as state:
        (first, *_) = sandbox.store.records("jobs")
        for number in range(4):
            if number != 1:
                sandbox.store.update("jobs", first, {"title": f"Welder {number}"})
            pulled(sandbox, tmp_path, "jobs")
            compacted.append(state.fact("compacted_at"))

    # The second run changed nothing, so the third is only the second with changes.
    assert [None, None, None] == compacted[:3]
    assert compacted[3] is not None
