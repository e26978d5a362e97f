"""The worlds that the tests of the marts share; each is landed and built once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.publishing.marts import jobs_and_placements, people
from tests.publishing.marts.recomputed import ExpectedMonth
from tests.publishing.marts.world import BuiltWorld, ModelWorld


@pytest.fixture(scope="session")
def people_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """Candidates on their way through the pipeline, and leads."""
    yield from _built(tmp_path_factory.mktemp("people"), people.fill)


@pytest.fixture(scope="session")
def jobs_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """Jobs, interviews, placements and clients."""
    yield from _built(tmp_path_factory.mktemp("jobs"), jobs_and_placements.fill)


@pytest.fixture(scope="session")
def empty_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltWorld]:
    """A warehouse in which nothing ever landed."""
    yield from _built(tmp_path_factory.mktemp("empty"), lambda _: None)


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExpectedMonth]:
    """A simulated month, with what pandas makes of its truth."""
    found = ExpectedMonth(tmp_path_factory.mktemp("month"))
    yield found
    found.world.connection.close()


def _built(folder: Path, fill: Callable[[ModelWorld], None]) -> Iterator[BuiltWorld]:
    world = ModelWorld(folder)
    with world.warehouse.keep_open():
        fill(world)
    built = world.built()
    yield built
    built.connection.close()
