"""What the tests of the lakehouse share: a real PostgreSQL, and for each test a lake of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.publishing import lakehouse_connection
from tests.lakehouse.group import Group
from tests.lakehouse.pool import Pool
from tests.lakehouse.server import PostgresServer, binaries, serving


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A server for all tests of this process that need one."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: on Debian, apt-get install postgresql")
    with serving(programs) as running:
        yield running


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """The databases of this process."""
    made = Pool()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _extensions_stay_loaded(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all tests here; those that start other processes load them there."""
    monkeypatch.setattr(lakehouse_connection, "connect_with_extensions", pool.extended)


@pytest.fixture
def group(server: PostgresServer, tmp_path: Path) -> Group:
    """A group of agencies that have published nothing yet, with a lake of their own."""
    return Group(server, tmp_path)
