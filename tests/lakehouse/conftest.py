"""Fixtures of the lakehouse tests: a real PostgreSQL, and a new lakehouse for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.publishing import lakehouse_connection
from tests.lakehouse.group import AccountGroup
from tests.lakehouse.pool import ConnectionPool
from tests.lakehouse.server import PostgresServer, find_postgres_programs, run_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """PostgreSQL server, started once for all tests of this process."""
    programs = find_postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: on Debian, apt-get install postgresql")
    with run_postgres(programs) as running:
        yield running


@pytest.fixture(scope="session")
def pool() -> Iterator[ConnectionPool]:
    """Connections to in-memory databases, shared by all tests of this process."""
    made = ConnectionPool()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _keep_extensions_loaded(pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the connector take its DuckDB connections from the pool, whose extensions are loaded."""
    monkeypatch.setattr(lakehouse_connection, "connect_with_extensions", pool.connect)


@pytest.fixture
def group(server: PostgresServer, tmp_path: Path) -> AccountGroup:
    """Accounts without publications that share a new, empty lakehouse."""
    return AccountGroup(server, tmp_path)
