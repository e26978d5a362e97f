"""The work file is lost, or was never made whole: what is published is not lost with it."""

from __future__ import annotations

import asyncio
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from connector.errors import DiskFull
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import differences, reading
from tests.support.command import Called, call, variables
from tests.tiers import first_fast, only_fast

COUNTS = {"jobs": 3, "candidates": 20}
RESOURCES = ("jobs", "candidates")
HISTORY = "SELECT * EXCLUDE (_observed_to) FROM history.candidates ORDER BY id, _version"


class Site:
    """An account whose history has changes and a deletion, and whose platform has changed since."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.warehouse = Warehouse(folder / "data")
        self.environ = variables(sandbox.base_url, folder / "data", sandbox.key)
        self.environ["CONNECTOR_MODELS"] = "off"
        self.ids = sorted(sandbox.store.records("candidates"))
        assert 0 == self.pull().status
        sandbox.store.update("candidates", self.ids[0], {"city": "Leeds"})
        sandbox.store.delete("candidates", self.ids[1])
        assert 0 == self.pull().status
        self.history = self.rows(HISTORY)
        assert len(self.ids) + 1 == len(self.history)
        self.before = len(sandbox.log)

    def call(self, *arguments: str, **environ: str) -> Called:
        """Call a command."""
        return call(arguments, self.environ | environ)

    def pull(self) -> Called:
        """Pull."""
        return self.call("pull", *RESOURCES)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of the published file."""
        with reading(self.warehouse.published) as connection:
            return list(connection.execute(sql).to_arrow_table().to_pylist())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The account."""
    with Sandbox(counts=COUNTS) as sandbox:
        yield Site(sandbox, tmp_path)


def test_a_lost_work_file_is_made_of_the_published_one(site: Site) -> None:
    site.warehouse.work.unlink()
    site.sandbox.store.update("candidates", site.ids[2], {"city": "York"})
    site.sandbox.store.delete("candidates", site.ids[3])

    told = [site.call("status").err, site.call("doctor").out]
    assert [] == [each for each in told if "work.duckdb is missing" not in each.replace("\n", " ")]
    assert not site.warehouse.exists
    before = len(site.sandbox.log)
    pulled = site.pull()

    assert 0 == pulled.status, pulled
    assert "the work file was missing. Records and history were restored from" in pulled.err
    assert [] == differences(site.sandbox, site.warehouse.published)
    kept = {(row["id"], row["_version"]): row for row in site.rows(HISTORY)}
    changed = {site.ids[2], site.ids[3]}
    for row in site.history:
        if row["id"] not in changed:
            assert row == kept[row["id"], row["_version"]]
    assert len(site.history) + 1 == len(kept)
    assert len(site.sandbox.log) - before < len(site.ids), "it was not loaded anew"
    kinds = site.rows("SELECT kind FROM sync.events WHERE resource IS NULL")
    assert [{"kind": "work_taken_back"}] == kinds
    assert (
        "the work file was missing. Records and history were restored from" not in site.pull().err
    )


def test_what_is_taken_back_is_the_work_file_as_it_was(site: Site) -> None:
    tables = {
        f"{each['schema_name']}.{each['table_name']}"
        for each in site.rows("SELECT schema_name, table_name FROM duckdb_tables()")
    } - {"sync.events"}
    before = {name: site.rows(f"FROM {name} ORDER BY ALL") for name in sorted(tables)}
    site.warehouse.work.unlink()

    site.warehouse.prepare()

    with reading(site.warehouse.work) as connection:
        for name, rows in before.items():
            sql = f"FROM {name} ORDER BY ALL"
            assert rows == list(connection.execute(sql).to_arrow_table().to_pylist()), name


@pytest.mark.parametrize(
    "setting",
    first_fast([{"CONNECTOR_PUBLISH_PERSONAL": "drop"}, {"CONNECTOR_PUBLISH_WITHOUT": "history"}]),
    ids=["personal", "schema"],
)
def test_a_published_file_that_lacks_something_is_not_published_over(
    site: Site, setting: dict[str, str]
) -> None:
    assert 0 == site.call("publish", **setting).status
    site.warehouse.work.unlink()
    before = site.warehouse.published.read_bytes()

    pulled = site.call("pull", "--json", **setting)

    assert (1, "work_lost") == (pulled.status, pulled.object["error"]["code"]), pulled
    assert before == site.warehouse.published.read_bytes()
    assert site.before == len(site.sandbox.log)
    assert not site.warehouse.work.exists()
    site.warehouse.published.rename(site.warehouse.folder.parent / "kept.duckdb")
    assert 0 == site.pull().status
    assert [] == differences(site.sandbox, site.warehouse.published)


def test_a_log_of_a_lost_file_is_set_aside(site: Site) -> None:
    site.warehouse.work.with_name("work.duckdb.wal").write_bytes(b"of the lost file")
    site.warehouse.work.unlink()

    assert 0 == site.pull().status

    (kept,) = site.warehouse.folder.glob("work.duckdb.damaged-*")
    assert b"of the lost file" == kept.read_bytes()
    assert [] == differences(site.sandbox, site.warehouse.published)


def test_processes_that_begin_together_make_it_once(site: Site) -> None:
    site.warehouse.work.unlink()

    async def together() -> None:
        others = (Warehouse(site.warehouse.folder) for _ in range(4))
        await asyncio.gather(*(asyncio.to_thread(each.prepare) for each in others))

    asyncio.run(together())

    with reading(site.warehouse.work) as connection:
        counted = "SELECT count(*) FROM sync.events WHERE kind = 'work_taken_back'"
        assert [(1,)] == connection.execute(counted).fetchall()


@pytest.mark.slow
@pytest.mark.usefixtures("made_the_real_way")
@pytest.mark.parametrize("has_published", only_fast([False, True], [True]))
def test_a_disk_that_fills_while_the_file_is_made(site: Site, has_published: bool) -> None:
    site.warehouse.work.unlink()
    if not has_published:
        site.warehouse.published.unlink()
    sizes = [*range(0, 64, 4), *range(64, 512, 64)]
    starved = 0
    for size in sizes:
        with room_for(size * 1024), suppress(DiskFull):
            site.warehouse.prepare()
        if not site.warehouse.work.exists():
            starved += 1
            assert [] == list(site.warehouse.folder.glob("work.*")), size
            continue
        site.warehouse.work.unlink()
    assert starved > 3

    assert 0 == site.pull().status
    assert [] == differences(site.sandbox, site.warehouse.published)
    assert has_published == (len(site.rows(HISTORY)) > len(site.ids))


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", only_fast([0, 4096, 8192], [4096]))
def test_a_half_made_file_of_an_earlier_version(site: Site, size: int) -> None:
    content = site.warehouse.work.read_bytes()[:size]
    shutil.rmtree(site.warehouse.folder)
    site.warehouse.folder.mkdir(mode=0o700)
    site.warehouse.work.write_bytes(content)

    assert 0 == site.pull().status
    assert [] == differences(site.sandbox, site.warehouse.published)
