"""Selection of the points at which tests plant a fault: a sample, or all of them.

`FAULTS=all` tries every point. Otherwise every k-th point is tried. The run's seed moves the first
one (`tests/seeds.py`), so that other seeds try other points.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.seeds import SEED

IS_ALL = os.environ.get("FAULTS") == "all"
SHARES = 2
"""Number of tests that share the points, so that as many workers can run them."""


def sample_points(points: Sequence[int], count: int, share: int) -> list[int]:
    """Return the points of this share: about `count` in all shares, or all with `FAULTS=all`."""
    step = 1 if IS_ALL else max(1, len(points) // count)
    return list(points[SEED % step :: step][share::SHARES])
