"""Set-up of all tests: new warehouses begin as copies of a template, and DuckDB uses one thread,
since one test runs on each core.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, settings

from connector.warehouse.file import convert_errors, make_folder
from connector.warehouse.warehouse import Warehouse
from tests.seeds import SEED

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


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests with asyncio."""
    return "asyncio"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis draw from the run's seed, too, and accept Ctrl-C."""
    # A background job of a shell ignores SIGINT. Dagster then ignores SIGTERM, too, and its child
    # processes inherit it, so that each of them is waited for in vain for 30 seconds.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if SEED:
        config.option.hypothesis_seed = str(SEED)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than cores, because many tests wait for a socket or a process."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the largest files first, so that no worker ends long after the others.

    A test that takes as long as several slow tests has their number as `weight`.
    """
    slow = Counter[Path]()
    for each in items:
        if marker := each.get_closest_marker("slow"):
            slow[each.path] += marker.kwargs.get("weight", 1)
    items.sort(key=lambda each: -slow[each.path])


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


# Tests make many objects and few cycles: rare collections save a tenth of the time.
gc.set_threshold(100_000, 20, 20)


class WarehouseTemplate:
    """An empty work file, made once by the connector. Tests begin with copies of it.

    Making a work file takes half a second, nearly all of it for the comments of its columns.
    `prepare` then finds a complete file. While `is_off`, every file is made without the template;
    other processes never use it.
    """

    def __init__(self, folder: Path) -> None:
        made = Warehouse(folder)
        _prepare(made)
        self._bytes = made.work.read_bytes()
        self.is_off = False

    def prepare(self, warehouse: Warehouse, *, loads_again: bool) -> None:
        """Prepare the warehouse like `Warehouse.prepare`, from a copy if it has no files yet."""
        make_folder(warehouse.folder)
        if not self.is_off and not warehouse.published.exists():
            with convert_errors(warehouse.work):
                self._copy_to(warehouse.work)
        _prepare(warehouse, loads_again=loads_again)

    def _copy_to(self, work: Path) -> None:
        """Write the template to this path, unless a file exists there."""
        if work.exists():
            return
        # Complete before it gets its name, since two processes may make the same file.
        handle, name = tempfile.mkstemp(dir=work.parent)
        with os.fdopen(handle, "wb") as copy:
            copy.write(self._bytes)
        with suppress(FileExistsError):
            os.link(name, work)
        os.unlink(name)


_connect = duckdb.connect


def _connect_with_one_thread(
    database: str = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Connect like `duckdb.connect`, with one thread unless `config` sets a number."""
    return _connect(database, read_only, {"threads": 1, **(config or {})})


@pytest.fixture(scope="session", autouse=True)
def _one_duckdb_thread() -> Iterator[None]:
    """Limit DuckDB to one thread in all tests, since one test runs per core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", _connect_with_one_thread)
        yield


@pytest.fixture(scope="session")
def _warehouse_template(
    tmp_path_factory: pytest.TempPathFactory, _one_duckdb_thread: None
) -> Iterator[WarehouseTemplate]:
    """Replace `Warehouse.prepare` by the template's."""
    with pytest.MonkeyPatch.context() as patch:
        template = WarehouseTemplate(tmp_path_factory.mktemp("template"))

        def prepare(warehouse: Warehouse, *, loads_again: bool = False) -> None:
            template.prepare(warehouse, loads_again=loads_again)

        patch.setattr(Warehouse, "prepare", prepare)
        yield template


@pytest.fixture(scope="session", autouse=True)
def _use_warehouse_template(_warehouse_template: WarehouseTemplate) -> None:
    """Make all tests use the template, except those with `without_warehouse_template`."""


@pytest.fixture
def without_warehouse_template(_warehouse_template: WarehouseTemplate) -> Iterator[None]:
    """Make the test's work files without the template."""
    _warehouse_template.is_off = True
    yield
    _warehouse_template.is_off = False
