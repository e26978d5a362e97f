"""Upkeep checks of `doctor`, and `status --check`, which prints one line."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.operations.backup import make_backup
from connector.operations.doctor import DoctorCheck, diagnose
from connector.settings import Settings, load_settings
from connector.state.database import Database
from tests.support.command import call, variables
from tests.support.recorded import record_verified_pull

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ADDRESS = "https://acme.example"
NOBODY = "http://127.0.0.1:9"


def load_folder_settings(folder: Path, **more: str) -> Settings:
    """Return the settings of an account in the folder."""
    return load_settings({}, {**variables(ADDRESS, folder / "data"), **more}, folder)


def run_upkeep_checks(settings: Settings) -> dict[str, DoctorCheck]:
    """Return the checks of `doctor` by name, without those of the API."""
    checks = asyncio.run(diagnose(settings)).checks
    return {each.name: each for each in checks}


def test_a_missing_or_old_backup_is_reported(tmp_path: Path) -> None:
    settings = load_folder_settings(tmp_path, CONNECTOR_BASE_URL=NOBODY)
    record_verified_pull(settings, NOW)
    with Database(settings.folder) as database:
        database.note("anything", 1)

    assert "there is no backup" == run_upkeep_checks(settings)["backup"].found
    make_backup(settings, tmp_path / "b", now=lambda: datetime.now(UTC) - timedelta(days=9))
    old = run_upkeep_checks(settings)["backup"]
    made, _ = make_backup(settings, tmp_path / "b")
    fresh = run_upkeep_checks(settings)["backup"]
    made.unlink()
    gone = run_upkeep_checks(settings)["backup"]

    assert ["warning", "ok", "warning"] == [each.state for each in (old, fresh, gone)]
    assert str(made) in fresh.found
    assert "does not exist" in gone.found
    assert "connector backup" in (old.action or "")


def test_an_address_for_notifications_is_checked_without_showing_it(tmp_path: Path) -> None:
    there = load_folder_settings(
        tmp_path, CONNECTOR_NOTIFY_URLS="json://127.0.0.1:9/T0KEN", CONNECTOR_BASE_URL=NOBODY
    )
    check = run_upkeep_checks(there)["notifications"]

    assert "ok" == check.state
    assert "T0KEN" not in check.found


def test_doctor_all_checks_every_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "connector.toml").write_text(
        f'data_dir = "{tmp_path}/data"\n[accounts.acme]\nbilling_day = 99\n[accounts.globex]\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    called = call(["doctor", "--all"], {})
    with_json = call(["doctor", "--all", "--json"], {})

    assert (2, 2) == (called.status, with_json.status)
    assert "acme\t" in called.out
    assert "globex\t" in called.out
    assert ["acme", "globex"] == [each["account"] for each in with_json.object["accounts"]]
    assert "billing_day" in with_json.object["accounts"][0]["error"]["message"]
    assert "failed" == with_json.object["accounts"][1]["checks"][0]["state"]
