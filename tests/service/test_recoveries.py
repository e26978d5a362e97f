"""What docs/ERRORS.md says after an error: it is done here, and the copy is exact again. A log
that is damaged is recovered from in test 11.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.server import Sandbox
from tests.support.agency import differences
from tests.support.command import COUNTS, KEY, Called, call, variables
from tests.tiers import first_fast

ERRORS = Path(__file__).parents[2] / "docs" / "ERRORS.md"
ALL = ("*",)

KEYS = {KEY: ALL, "new-key": ALL, "jobs": ("jobs.read",)}


class Site:
    """An account that was pulled and backed up, and the platform, which has changed since."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.data, self.backups = sandbox, folder / "data", folder / "backups"
        self.work, self.ledger = self.data / "work.duckdb", self.data / "ledger.sqlite"
        self.environ = variables(sandbox.base_url, self.data)

    def begin(self) -> None:
        """Pull, back up and change, the first time."""
        assert 0 == self.call("pull").status
        assert 0 == self.call("backup", str(self.backups)).status
        store = self.sandbox.store
        first, second, *_ = sorted(store.records("candidates"))
        store.update("candidates", first, {"city": "Leeds"})
        store.delete("candidates", second)

    def call(self, *arguments: str, **environ: str) -> Called:
        """Call a command, as somebody would type it."""
        return call(arguments, self.environ | environ)

    def fails(self, code: str, *arguments: str, status: int = 1, **environ: str) -> None:
        """The command ends so, and the page of errors says what to do then."""
        called = self.call(*(arguments or ("pull",)), "--json", **environ)
        assert (status, code) == (called.status, _code(called.object)), called
        assert f"`{code}`" in ERRORS.read_text(encoding="utf-8")

    def restore(self) -> None:
        """Restore the backup in place of what is here."""
        (file,) = self.backups.glob("*.tar")
        assert 0 == self.call("restore", str(file), "--check").status
        assert 0 == self.call("restore", str(file), "--replace").status

    def is_well_after(self, *arguments: str, **environ: str) -> None:
        """After one more pull the copy is exact, and `doctor` finds nothing that failed."""
        pulled = self.call(*(arguments or ("pull",)), "--json", **environ)
        assert (0, "done") == (pulled.status, pulled.object.get("outcome")), pulled
        assert [] == differences(self.sandbox, self.data / "recruitment.duckdb")
        checks = self.call("doctor", "--json").object["checks"]
        assert [] == [each for each in checks if each["state"] == "failed"]


def _code(told: dict[str, Any]) -> str | None:
    """The error's code in what a command prints: what ended the run, or the resources that failed
    alike.
    """
    error = told.get("error") or told
    codes = {each["error_code"] for each in told.get("resources", {}).values()} - {None}
    return error.get("code") or (codes.pop() if len(codes) == 1 else None)


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of a site and of its platform, and the platform's port; tests use copies."""
    folder = tmp_path_factory.mktemp("site")
    with Sandbox(counts=COUNTS, keys=KEYS, data=folder / "platform") as sandbox:
        Site(sandbox, folder).begin()
        return folder, int(sandbox.base_url.rsplit(":", 1)[1])


@pytest.fixture
def site(tmp_path: Path, pattern: tuple[Path, int]) -> Iterator[Site]:
    """Since the backup a candidate was changed and another one deleted."""
    folder, port = pattern
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    # The data folder belongs to one address.
    with Sandbox(keys=KEYS, data=tmp_path / "platform", port=port) as sandbox:
        yield Site(sandbox, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("has_backup", first_fast([True, False]))
def test_a_work_file_that_is_none(site: Site, has_backup: bool) -> None:
    site.work.write_bytes(b"no database any more")
    site.fails("not_a_warehouse")

    site.restore() if has_backup else site.work.rename(site.data / "moved-away")

    site.is_well_after()


@pytest.mark.parametrize("has_backup", first_fast([True, False]))
def test_a_ledger_that_is_none(site: Site, has_backup: bool) -> None:
    for each in site.data.glob("ledger.sqlite*"):
        each.unlink()
    site.ledger.write_bytes(b"no database any more" * 100)
    site.fails("not_a_ledger")

    if has_backup:
        site.restore()
    else:
        assert "new ledger" in site.call("doctor", "--new-ledger").out

    site.is_well_after()


def test_a_key_that_is_refused(site: Site) -> None:
    site.fails("unauthorized", CONNECTOR_API_KEY="withdrawn")
    site.fails("forbidden", "pull", "candidates", CONNECTOR_API_KEY="jobs")

    site.environ["CONNECTOR_API_KEY"] = "new-key"

    site.is_well_after()


def test_a_budget_that_is_spent(site: Site) -> None:
    site.fails("budget_spent", "pull", "--full", "--max-requests", "4", status=4)

    site.is_well_after()


def test_a_month_that_is_spent(site: Site) -> None:
    site.fails("quota_spent", status=4, CONNECTOR_MONTHLY_REQUESTS="1")

    site.is_well_after("pull", "--ignore-quota", CONNECTOR_MONTHLY_REQUESTS="1000")


def test_an_address_of_something_else(site: Site) -> None:
    for address in ("http://127.0.0.1:9", f"{site.sandbox.base_url}/elsewhere"):
        site.fails("other_workspace", status=2, CONNECTOR_BASE_URL=address)

    site.is_well_after()


def test_everything_is_lost(site: Site) -> None:
    shutil.rmtree(site.data)

    (file,) = site.backups.glob("*.tar")
    assert 0 == site.call("restore", str(file)).status

    site.is_well_after()
