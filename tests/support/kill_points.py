"""How much of a large family of faults a run of the tests tries: a share, or all of it.

`FAULTS=all` tries every point. Otherwise every k-th is tried, beginning at an offset that the
run's seed moves (`tests/seeds.py`), so that other seeds try other points.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.seeds import SEED

IS_ALL = os.environ.get("FAULTS") == "all"
SHARES = 2
"""Into how many tests a family is split, so that as many workers can try it."""


def sample_points(points: Sequence[int], count: int, share: int) -> list[int]:
    """Return the points that this share tries: about `count` over all shares, or all with
    `FAULTS=all`.
    """
    step = 1 if IS_ALL else max(1, len(points) // count)
    return list(points[SEED % step :: step][share::SHARES])
