"""Pulls report lost files of a data folder."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.support.agency import differences
from tests.support.command import KEY, call, variables


def test_a_pull_without_both_databases_loads_again_only_if_it_is_asked_to(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        data = tmp_path / "data"
        environ = variables(sandbox.base_url, data)
        assert 0 == call(["pull", "jobs"], environ).status
        for name in ("work.duckdb", "recruitment.duckdb"):
            (data / name).unlink()
        refused = [call([each, "jobs"], environ) for each in ("pull", "pull")]
        full = call(["pull", "jobs", "--full"], environ)
        found = differences(sandbox, data / "recruitment.duckdb")

    for each in refused:
        assert 1 == each.status
        assert "work.duckdb is missing, and the history is in it" in each.err
        assert "'connector pull --full'" in each.err
    assert 0 == full.status
    assert [] == found
