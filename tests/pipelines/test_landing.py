"""Landing assets in real runs: loaded records, recorded metadata, and failures."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from connector.catalog import CATALOG
from connector.sandbox.server import Sandbox
from connector.warehouse.file import make_folder
from pipelines.landing import CHECK
from tests.faults.network_faults import wrong_total
from tests.pipelines.running import COUNTS, KEY, KEYS, make_account, materialize_resources
from tests.support.processes import OtherProcess, shorten_wait

CHECK_ALONE = dg.AssetSelection.checks(dg.AssetCheckKey(KEYS["jobs"], CHECK))


def test_a_missing_scope_fails_the_run_after_other_resources_are_loaded(tmp_path: Path) -> None:
    scopes = [f"{each.scope}.read" for each in CATALOG.values() if each.name != "leads"]
    with Sandbox(counts=COUNTS, keys={KEY: scopes}) as sandbox:
        ran = materialize_resources(make_account(sandbox.base_url, tmp_path))

    assert not ran.success
    assert set(COUNTS) - {"leads"} == set(ran.materialized) - {"published"}
    assert {"leads"} == {name for name, each in ran.checks.items() if not each.passed}
    assert ran.failure_reason.startswith("leads skipped: ")
    assert "Give the key the scope 'leads.read', or pull only the other" in ran.failure_reason


def test_a_pull_is_skipped_while_a_push_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        account = make_account(sandbox.base_url, tmp_path)
        folder = account.settings().folder
        make_folder(folder)
        other = OtherProcess(folder, "push")
        shorten_wait(monkeypatch)
        ran = materialize_resources(account)
        other.kill()

        assert (True, {}, []) == (ran.success, ran.materialized, sandbox.log)

        other = OtherProcess(folder, "pull")
        shorten_wait(monkeypatch)
        refused = materialize_resources(account)
        other.kill()
    assert not refused.success
    assert f"pull (process {other.process.pid}" in refused.failure_reason


def test_the_check_fails_if_rows_and_the_apis_total_differ(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 30, "leads": 3}, keys={KEY: ("*",)}) as sandbox:
        materialize_resources(make_account(sandbox.base_url, tmp_path))
        sandbox.faults.add(wrong_total(5000), path="/api/v1/jobs", times=None)
        ran = materialize_resources(make_account(sandbox.base_url, tmp_path), ["jobs", "leads"])

    assert {"jobs": False, "leads": True} == {n: c.passed for n, c in ran.checks.items()}
    live, total = (ran.checks["jobs"].metadata[name].value for name in ("live", "total"))
    assert live != total
    assert f"{live} live rows and the API has {total:,}" in str(ran.checks["jobs"].description)
