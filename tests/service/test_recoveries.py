"""Recoveries in docs/ERRORS.md: each documented recovery ends with an exact copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.server import Sandbox
from tests.support.agency import SandboxAccount, differences
from tests.support.command import COUNTS, KEY
from tests.tiers import first_fast

ERRORS = Path(__file__).parents[2] / "docs" / "ERRORS.md"
ALL = ("*",)

KEYS = {KEY: ALL, "new-key": ALL, "jobs": ("jobs.read",)}


class RestorableAccount(SandboxAccount):
    """Account that has a backup and whose server changed after it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        super().__init__(sandbox, folder)
        self.environ["CONNECTOR_API_KEY"] = KEY
        self.backups = folder / "backups"
        self.work, self.state = self.data / "work.duckdb", self.data / "state.sqlite"

    def pull_and_back_up(self) -> None:
        """Pull, make a backup, and change two candidates on the server."""
        assert 0 == self.call("pull").status
        assert 0 == self.call("backup", str(self.backups)).status
        self.change_two_candidates()

    def assert_fails(self, code: str, *arguments: str, status: int = 1, **environ: str) -> None:
        """Assert that a command (by default `pull`) fails with a code that docs/ERRORS.md has."""
        called = self.call(*(arguments or ("pull",)), "--json", **environ)
        assert (status, code) == (called.status, _read_error_code(called.object)), called
        assert f"`{code}`" in ERRORS.read_text(encoding="utf-8")

    def restore_backup(self) -> None:
        """Check and restore the only backup."""
        (file,) = self.backups.glob("*.tar")
        assert 0 == self.call("restore", str(file), "--check").status
        if self.data.exists():
            self.data.rename(self.data.with_name("former"))
        assert 0 == self.call("restore", str(file)).status

    def assert_exact_pull(self, *arguments: str, **environ: str) -> None:
        """Pull, and assert that the copy equals the server and that `doctor` reports no failure."""
        pulled = self.call(*(arguments or ("pull",)), "--json", **environ)
        assert (0, "done") == (pulled.status, pulled.object.get("outcome")), pulled
        assert [] == differences(self.sandbox, self.data / "recruitment.duckdb")
        checks = self.call("doctor", "--json").object["checks"]
        assert [] == [each for each in checks if each["state"] == "failed"]


def _read_error_code(output: dict[str, Any]) -> str | None:
    """Return the error code of the run, or the one that all failed resources have."""
    error = output.get("error") or output
    codes = {each["error_code"] for each in output.get("resources", {}).values()} - {None}
    return error.get("code") or (codes.pop() if len(codes) == 1 else None)


@pytest.fixture(scope="module")
def account_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Folder of a `RestorableAccount` and its server, and the server's port. Tests use copies."""
    folder = tmp_path_factory.mktemp("site")
    with Sandbox(counts=COUNTS, keys=KEYS, data=folder / "platform") as sandbox:
        RestorableAccount(sandbox, folder).pull_and_back_up()
        return folder, int(sandbox.base_url.rsplit(":", 1)[1])


@pytest.fixture
def account(tmp_path: Path, account_template: tuple[Path, int]) -> Iterator[RestorableAccount]:
    """Account whose server changed one candidate and deleted another since the backup."""
    folder, port = account_template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    # The data folder belongs to one address.
    with Sandbox(keys=KEYS, data=tmp_path / "platform", port=port) as sandbox:
        yield RestorableAccount(sandbox, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("has_backup", first_fast([True, False]))
def test_recovery_from_an_invalid_work_file_gives_an_exact_copy(
    account: RestorableAccount, has_backup: bool
) -> None:
    account.work.write_bytes(b"no database any more")
    account.assert_fails("not_a_warehouse")

    if has_backup:
        account.restore_backup()
        account.assert_exact_pull()
    else:
        account.work.rename(account.data / "moved-away")
        account.assert_fails("work_lost")
        account.assert_exact_pull("pull", "--full")


@pytest.mark.parametrize("has_backup", first_fast([True, False]))
def test_recovery_from_an_invalid_state_gives_an_exact_copy(
    account: RestorableAccount, has_backup: bool
) -> None:
    for each in account.data.glob("state.sqlite*"):
        each.unlink()
    account.state.write_bytes(b"no database any more" * 100)
    account.assert_fails("not_a_state")

    if has_backup:
        account.restore_backup()
    else:
        account.data.rename(account.data.with_name("former"))

    account.assert_exact_pull()


def test_recovery_from_a_rejected_key_gives_an_exact_copy(account: RestorableAccount) -> None:
    account.assert_fails("unauthorized", CONNECTOR_API_KEY="withdrawn")
    account.assert_fails("forbidden", "pull", "candidates", CONNECTOR_API_KEY="jobs")

    account.environ["CONNECTOR_API_KEY"] = "new-key"

    account.assert_exact_pull()


def test_recovery_from_a_reached_request_limit_gives_an_exact_copy(
    account: RestorableAccount,
) -> None:
    account.assert_fails("budget_spent", "pull", "--full", "--max-requests", "4", status=4)

    account.assert_exact_pull()


def test_recovery_from_a_used_up_quota_gives_an_exact_copy(account: RestorableAccount) -> None:
    account.assert_fails("quota_spent", status=4, CONNECTOR_MONTHLY_REQUESTS="1")

    account.assert_exact_pull("pull", "--ignore-quota", CONNECTOR_MONTHLY_REQUESTS="1000")


def test_recovery_from_a_wrong_address_gives_an_exact_copy(account: RestorableAccount) -> None:
    for address in ("http://127.0.0.1:9", f"{account.sandbox.base_url}/elsewhere"):
        account.assert_fails("other_workspace", status=2, CONNECTOR_BASE_URL=address)

    account.assert_exact_pull()


def test_recovery_from_a_lost_data_folder_gives_an_exact_copy(account: RestorableAccount) -> None:
    shutil.rmtree(account.data)

    (file,) = account.backups.glob("*.tar")
    assert 0 == account.call("restore", str(file)).status

    account.assert_exact_pull()
