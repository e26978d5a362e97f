"""How much of a large family of faults a run of the tests tries: a share, or all of it.

`FAULTS=all` tries every point. Otherwise every k-th is tried, beginning at an offset that the
seed in `FAULTS_SEED` moves, so that other seeds try other points.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

IS_ALL = os.environ.get("FAULTS") == "all"
SEED = int(os.environ.get("FAULTS_SEED", "0"))
SHARES = 2
"""Into how many tests a family is split, so that as many workers can try it."""


def sample_points(points: Sequence[int], count: int, share: int) -> list[int]:
    """The points of one share: about `count` over all shares, or every one."""
    step = 1 if IS_ALL else max(1, len(points) // count)
    return list(points[SEED % step :: step][share::SHARES])


def seeded_random(name: str) -> random.Random:
    """Chance of the seed's own for one test."""
    return random.Random(f"{name} {SEED}")
