"""The simulator can see: an engine that lacks one of its parts is found wrong, and soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.simulation import ablation
from tests.simulation.run import run


@contextmanager
def _without(part: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remove: Callable[[pytest.MonkeyPatch], None] = getattr(ablation, part)
        remove(patch)
        yield


@pytest.mark.parametrize(
    ("part", "name", "seeds"),
    [
        ("no_lookback", "D", 40),
        ("no_coverage_certificate", "E", 40),
        ("no_verify_sweep", "E", 120),
        ("bookmark_from_data", "D", 40),
        ("tombstones_without_evidence", "B", 10),
    ],
)
def test_an_engine_that_lacks_a_part_is_found_wrong(part: str, name: str, seeds: int) -> None:
    """Each part of the engine is there for a reason that some seed shows."""
    with _without(part):
        found = next((seed for seed in range(seeds) if run(name, seed).wrong), None)

    assert found is not None
