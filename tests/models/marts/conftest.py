"""Warehouses that all tests of the marts share. Each is loaded and built once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.marts.world import BuiltWorld, ModelWorld, read_yaml


@pytest.fixture(scope="session")
def people_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """Warehouse with candidates in all pipeline stages, and leads."""
    yield from fill_and_build_world(tmp_path_factory.mktemp("people"), "people")


@pytest.fixture(scope="session")
def jobs_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """Warehouse with jobs, interviews, placements and clients."""
    yield from fill_and_build_world(tmp_path_factory.mktemp("jobs"), "jobs")


@pytest.fixture(scope="session")
def empty_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """A warehouse without records."""
    yield from fill_and_build_world(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def world(tmp_path: Path) -> ModelWorld:
    """An empty work file that the test fills and builds."""
    return ModelWorld(tmp_path)


def fill_and_build_world(folder: Path, *files: str) -> Iterator[BuiltWorld]:
    """Load these files of records, build all models, and yield the result."""
    world = ModelWorld(folder)
    with world.warehouse.keep_open():
        for name in files:
            world.run_steps(read_yaml(name))
    built = world.build()
    yield built
    built.connection.close()
