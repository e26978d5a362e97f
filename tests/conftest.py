"""What every test shares: new warehouses begin as copies of one that was made the real way, and
DuckDB keeps to one core, since as many tests run side by side as there are.
"""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, settings

from connector.ledger.ledger import Identity
from connector.warehouse.duckdb_file import convert_errors, make_folder
from connector.warehouse.warehouse import Warehouse
from tests.seeds import SEED

SHARED_FIXTURES = re.compile(r"tests/(publishing/marts|report|lakehouse)/")
"""Folders with session fixtures that take seconds: building models, drawing charts, PostgreSQL."""

_prepare = Warehouse.prepare

# No test of Hypothesis fails because the machine is busy.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=not SEED,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis draw from the run's seed too."""
    if SEED:
        config.option.hypothesis_seed = str(SEED)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: many tests wait for a socket or a process."""
    return (os.cpu_count() or 1) + 1


def work_unit(nodeid: str) -> str:
    """Return the file, or the folder with shared fixtures, whose tests one worker gets."""
    folder = SHARED_FIXTURES.match(nodeid)
    return folder[0] if folder else nodeid.split("::", 1)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `--dist loadfile` give a folder with shared fixtures to one worker."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # noqa: PLC0415

    scheduler = LoadFileScheduling(config, log)
    setattr(scheduler, "_split_scope", work_unit)  # noqa: B010 # a method for subclasses
    return scheduler


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the largest work units first, so that no worker ends long after the others.

    A test that takes as long as several slow tests has their number as `weight`.
    """
    slow = Counter[str]()
    for each in items:
        if marker := each.get_closest_marker("slow"):
            slow[work_unit(each.nodeid)] += marker.kwargs.get("weight", 1)
    items.sort(key=lambda each: -slow[work_unit(each.nodeid)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the command that replays a failed test."""
    report = yield
    if SEED and report.failed:
        command = f"TEST_SEED={SEED} .venv/bin/python -m pytest '{item.nodeid}'"
        report.sections.append(("Replay this test", command))
    return report


# A test makes many objects and few cycles: looking for them less often saves a tenth of the time.
gc.set_threshold(100_000, 20, 20)


class WarehouseTemplate:
    """A new work file, made once by the connector itself, that others begin as.

    Making one takes half a second, of which nearly all goes into the comments of its columns; a
    copy of its bytes is the same file, and `prepare` then finds everything in place. While `is_off`
    every file is made the real way. Other processes always make theirs so.
    """

    def __init__(self, folder: Path) -> None:
        made = Warehouse(folder)
        _prepare(made)
        self._bytes = made.work.read_bytes()
        self.is_off = False

    def prepare(self, warehouse: Warehouse, identity: Identity | None = None) -> None:
        """`Warehouse.prepare`, with a copy in place of a file that was never there."""
        make_folder(warehouse.folder)
        if not self.is_off and not warehouse.published.exists():
            with convert_errors(warehouse.work):
                self._begin(warehouse.work)
        _prepare(warehouse, identity)

    def _begin(self, work: Path) -> None:
        if work.exists():
            return
        # Whole before it has its name, since two may begin the same file at once.
        handle, name = tempfile.mkstemp(dir=work.parent)
        with os.fdopen(handle, "wb") as copy:
            copy.write(self._bytes)
        with suppress(FileExistsError):
            os.link(name, work)
        os.unlink(name)


_connect = duckdb.connect


def _connect_on_one_core(
    database: str = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    return _connect(database, read_only, {"threads": 1, **(config or {})})


@pytest.fixture(scope="session", autouse=True)
def _duckdb_keeps_to_one_core() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", _connect_on_one_core)
        yield


@pytest.fixture(scope="session")
def _pattern(
    tmp_path_factory: pytest.TempPathFactory, _duckdb_keeps_to_one_core: None
) -> Iterator[WarehouseTemplate]:
    with pytest.MonkeyPatch.context() as patch:
        pattern = WarehouseTemplate(tmp_path_factory.mktemp("pattern"))

        def prepare(warehouse: Warehouse, identity: Identity | None = None) -> None:
            pattern.prepare(warehouse, identity)

        patch.setattr(Warehouse, "prepare", prepare)
        yield pattern


@pytest.fixture(scope="session", autouse=True)
def _work_files_are_copies(_pattern: WarehouseTemplate) -> None:
    """For all tests, but those that ask for `made_the_real_way`."""


@pytest.fixture
def made_the_real_way(_pattern: WarehouseTemplate) -> Iterator[None]:
    """For tests of how a work file is made: none of theirs begins as a copy."""
    _pattern.is_off = True
    yield
    _pattern.is_off = False
