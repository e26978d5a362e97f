"""What decides in a play wherever something may happen."""

from __future__ import annotations

import random
from typing import Protocol


class Chance(Protocol):
    """What decides in a play: drawn from a seed, or every way in turn."""

    def yes(self, share: float, kind: str = "") -> bool:
        """Whether it happens, so often; `kind` is what there may be only some of."""

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""

    def within(self, most: float) -> float:
        """A length up to that."""

    def delay(self, most: float) -> float:
        """How late something comes, up to that."""


class Drawn:
    """Chance from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def yes(self, share: float, kind: str = "") -> bool:
        """Whether it happens, so often; `kind` is what there may be only some of."""
        return share > 0 and self._random.random() < share

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""
        return self._random.randrange(count)

    def within(self, most: float) -> float:
        """A length up to that."""
        return self._random.random() * most

    def delay(self, most: float) -> float:
        """How late something comes, up to that."""
        return self.within(most)
