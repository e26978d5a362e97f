"""What decides in a play wherever something may happen."""

from __future__ import annotations

import random
from typing import Protocol


class Chance(Protocol):
    """Decides what happens in a play: drawn from a seed, or every possibility in turn."""

    def yes(self, share: float, kind: str = "") -> bool:
        """Return True with this probability; `kind` names events that are limited in number."""

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""

    def within(self, most: float) -> float:
        """Return a length, up to `most`."""

    def delay(self, most: float) -> float:
        """Return the seconds of a delay, up to `most`."""


class RandomChance:
    """Chance from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def yes(self, share: float, kind: str = "") -> bool:
        """Return True with this probability; `kind` names events that are limited in number."""
        return share > 0 and self._random.random() < share

    def pick(self, count: int) -> int:
        """One of 0 to `count` - 1."""
        return self._random.randrange(count)

    def within(self, most: float) -> float:
        """Return a length, up to `most`."""
        return self._random.random() * most

    def delay(self, most: float) -> float:
        """Return the seconds of a delay, up to `most`."""
        return self.within(most)
