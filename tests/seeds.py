"""Seed of the random tests: 0, so that every run is the same, unless `TEST_SEED` names another.

`make test-all` draws a new seed for each run. A test that fails in it prints the command that
replays it.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("TEST_SEED", "0"))


def seeds(count: int, first: int = 0) -> range:
    """Return `count` consecutive seeds for one test, from the run's seed plus `first`."""
    return range(SEED + first, SEED + first + count)
