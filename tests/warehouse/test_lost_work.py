"""A lost or incomplete work file is restored from the published file."""

from __future__ import annotations

import asyncio
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from connector.errors import WarehouseError
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import SandboxAccount, differences, open_read_only
from tests.support.command import KEY, CommandResult
from tests.tiers import first_fast, only_fast

COUNTS = {"jobs": 3, "candidates": 20}
KEYS = {KEY: ("*",)}
RESOURCES = ("jobs", "candidates")
HISTORY = "SELECT * EXCLUDE (_observed_to) FROM history.candidates ORDER BY id, _version"


class AccountWithHistory(SandboxAccount):
    """Account whose history has a changed and a deleted candidate after two pulls."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        super().__init__(sandbox, folder)
        self.environ["CONNECTOR_API_KEY"] = KEY
        self.warehouse = Warehouse(self.data)
        if not self.warehouse.exists:
            assert 0 == self.call_pull().status
            self.change_two_candidates()
            assert 0 == self.call_pull().status
        self.history = self.query(HISTORY)
        self.ids = sorted({row["id"] for row in self.history})
        assert len(self.ids) + 1 == len(self.history)
        self.before = len(sandbox.log)

    def call_pull(self) -> CommandResult:
        """Run `connector pull`."""
        return self.call("pull", *RESOURCES)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query on the published file."""
        with open_read_only(self.warehouse.published) as connection:
            return list(connection.execute(sql).to_arrow_table().to_pylist())


@pytest.fixture(scope="module")
def account_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Folder of an `AccountWithHistory` and its server, and the server's port."""
    folder = tmp_path_factory.mktemp("template")
    with Sandbox(counts=COUNTS, keys=KEYS, data=folder / "platform") as sandbox:
        AccountWithHistory(sandbox, folder)
        return folder, int(sandbox.base_url.rsplit(":", 1)[1])


@pytest.fixture
def account(tmp_path: Path, account_template: tuple[Path, int]) -> Iterator[AccountWithHistory]:
    """Account with history and its running server, copied from the template."""
    folder, port = account_template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with Sandbox(keys=KEYS, data=tmp_path / "platform", port=port) as sandbox:
        yield AccountWithHistory(sandbox, tmp_path)


def test_a_lost_work_file_is_restored_from_the_published_one(account: AccountWithHistory) -> None:
    account.warehouse.work.unlink()
    account.sandbox.store.update("candidates", account.ids[2], {"city": "York"})
    account.sandbox.store.delete("candidates", account.ids[3])

    outputs = [account.call("status").err, account.call("doctor").out]
    assert [] == [
        each for each in outputs if "work.duckdb is missing" not in each.replace("\n", " ")
    ]
    assert not account.warehouse.exists
    before = len(account.sandbox.log)
    pulled = account.call_pull()

    assert 0 == pulled.status, pulled
    assert "the work file was missing. Records and history were restored from" in pulled.err
    assert [] == differences(account.sandbox, account.warehouse.published)
    kept = {(row["id"], row["_version"]): row for row in account.query(HISTORY)}
    changed = {account.ids[2], account.ids[3]}
    for row in account.history:
        if row["id"] not in changed:
            assert row == kept[row["id"], row["_version"]]
    assert len(account.history) + 1 == len(kept)
    assert len(account.sandbox.log) - before < len(account.ids), "it was not loaded again"
    kinds = account.query("SELECT kind FROM sync.events WHERE resource IS NULL")
    assert [{"kind": "work_taken_back"}] == kinds
    assert (
        "the work file was missing. Records and history were restored from"
        not in account.call_pull().err
    )


def test_the_restored_work_file_equals_the_lost_one(account: AccountWithHistory) -> None:
    tables = {
        f"{each['schema_name']}.{each['table_name']}"
        for each in account.query("SELECT schema_name, table_name FROM duckdb_tables()")
    } - {"sync.events"}
    before = {name: account.query(f"FROM {name} ORDER BY ALL") for name in sorted(tables)}
    account.warehouse.work.unlink()

    account.warehouse.prepare()

    with open_read_only(account.warehouse.work) as connection:
        for name, rows in before.items():
            sql = f"FROM {name} ORDER BY ALL"
            assert rows == list(connection.execute(sql).to_arrow_table().to_pylist()), name


@pytest.mark.parametrize(
    "changed_setting",
    first_fast([{"CONNECTOR_PUBLISH_PERSONAL": "drop"}, {"CONNECTOR_PUBLISH_WITHOUT": "history"}]),
    ids=["personal", "schema"],
)
def test_an_incomplete_published_file_is_not_replaced_after_a_loss(
    account: AccountWithHistory, changed_setting: dict[str, str]
) -> None:
    assert 0 == account.call("publish", **changed_setting).status
    account.warehouse.work.unlink()
    before = account.warehouse.published.read_bytes()

    pulled = account.call("pull", "--json", **changed_setting)

    assert (1, "work_lost") == (pulled.status, pulled.object["error"]["code"]), pulled
    assert before == account.warehouse.published.read_bytes()
    assert account.before == len(account.sandbox.log)
    assert not account.warehouse.work.exists()
    account.warehouse.published.rename(account.warehouse.folder.parent / "kept.duckdb")
    assert 0 == account.call_pull().status
    assert [] == differences(account.sandbox, account.warehouse.published)


def test_the_write_ahead_log_of_a_lost_work_file_is_renamed(account: AccountWithHistory) -> None:
    account.warehouse.work.with_name("work.duckdb.wal").write_bytes(b"of the lost file")
    account.warehouse.work.unlink()

    assert 0 == account.call_pull().status

    (kept,) = account.warehouse.folder.glob("work.duckdb.damaged-*")
    assert b"of the lost file" == kept.read_bytes()
    assert [] == differences(account.sandbox, account.warehouse.published)


def test_threads_that_prepare_together_restore_the_work_file_once(
    account: AccountWithHistory,
) -> None:
    account.warehouse.work.unlink()

    async def prepare_together() -> None:
        others = (Warehouse(account.warehouse.folder) for _ in range(4))
        await asyncio.gather(*(asyncio.to_thread(each.prepare) for each in others))

    asyncio.run(prepare_together())

    with open_read_only(account.warehouse.work) as connection:
        counted = "SELECT count(*) FROM sync.events WHERE kind = 'work_taken_back'"
        assert [(1,)] == connection.execute(counted).fetchall()


@pytest.mark.slow
@pytest.mark.usefixtures("without_warehouse_template")
@pytest.mark.parametrize("has_published", only_fast([False, True], [True]))
def test_a_full_disk_during_a_restore_leaves_no_partial_work_file(
    account: AccountWithHistory, has_published: bool
) -> None:
    account.warehouse.work.unlink()
    if not has_published:
        account.warehouse.published.unlink()
    sizes = [*range(0, 64, 8), *range(64, 512, 128)]
    starved = 0
    for size in sizes:
        with limit_file_size(size * 1024), suppress(WarehouseError):
            account.warehouse.prepare()
        if not account.warehouse.work.exists():
            starved += 1
            assert [] == list(account.warehouse.folder.glob("work.*")), size
            continue
        account.warehouse.work.unlink()
    assert starved > 3

    assert 0 == account.call_pull().status
    assert [] == differences(account.sandbox, account.warehouse.published)
    assert has_published == (len(account.query(HISTORY)) > len(account.ids))


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size in bytes of files that this process writes during the `with` block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size_in_bytes", only_fast([0, 4096, 8192], [4096]))
def test_a_truncated_work_file_is_replaced_by_the_next_pull(
    account: AccountWithHistory, size_in_bytes: int
) -> None:
    content = account.warehouse.work.read_bytes()[:size_in_bytes]
    shutil.rmtree(account.warehouse.folder)
    account.warehouse.folder.mkdir(mode=0o700)
    account.warehouse.work.write_bytes(content)

    assert 0 == account.call_pull().status
    assert [] == differences(account.sandbox, account.warehouse.published)
