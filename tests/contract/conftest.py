"""Fixtures of the contract tests: one server per process, and agencies that are copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.kit import Account, Server, World, make_world

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for each in items:
        if FOLDER in each.path.parents:
            each.add_marker("contract")


@pytest.fixture(scope="session")
def server() -> Server:
    """The server of this process. Its address stays, since a folder knows its account's address."""
    return Server()


@pytest.fixture(scope="session")
def world(server: Server, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small agency, pulled once."""
    return make_world(server, tmp_path_factory.mktemp("world"))


@pytest.fixture
def account(world: World, tmp_path: Path) -> Iterator[Account]:
    """An account of the small agency that was pulled once. The test may change everything."""
    with world.copy(tmp_path) as account:
        yield account


@pytest.fixture
def empty(server: Server, tmp_path: Path) -> Iterator[Account]:
    """An account of an agency without records, never pulled."""
    with server.serve():
        yield Account(server, tmp_path)
