"""The key is in nothing that Dagster stores or shows of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from pipelines.accounts import Account
from tests.pipelines.running import COUNTS, KEY, make_account, materialize_resources, open_instance


def find_files_with(secret: str, folder: Path) -> list[Path]:
    """Return the files below the folder that contain the secret."""
    return [p for p in folder.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "refused"])
def test_dagster_stores_no_file_with_the_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], *, is_accepted: bool
) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    data.mkdir()
    keys = {KEY if is_accepted else "another-key": ("*",)}
    with Sandbox(counts=COUNTS, keys=keys) as sandbox, open_instance(home) as instance:
        ran = materialize_resources(make_account(sandbox.base_url, data), instance=instance)
        (kept,) = instance.get_run_records()
        events = [str(entry) for entry in instance.all_logs(kept.dagster_run.run_id)]
    shown = capfd.readouterr()

    assert is_accepted == ran.success
    assert len(events) > 5
    assert "done" in shown.err or not is_accepted
    assert [] == [text for text in (*events, str(kept), shown.out, shown.err) if KEY in text]
    assert [] == find_files_with(KEY, tmp_path)
    assert [home / "dagster.yaml"] == find_files_with("telemetry", home)


def test_the_repr_of_an_account_does_not_show_its_environment(tmp_path: Path) -> None:
    assert KEY not in repr(make_account("http://127.0.0.1:1", tmp_path))
    assert KEY not in repr(Account(environ={"CONNECTOR_API_KEY": KEY}).settings())
