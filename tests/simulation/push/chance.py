"""Random decisions of a play."""

from __future__ import annotations

import random
from typing import Protocol


class Chance(Protocol):
    """Makes the decisions of a play: drawn from a seed, or every possibility in turn."""

    def happens(self, share: float, kind: str = "") -> bool:
        """Return True with this probability; `kind` names events that are limited in number."""

    def pick(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""

    def pause(self, most: float) -> float:
        """Return the seconds of a pause, from 0 to `most`."""

    def commit_delay(self, most: float) -> float:
        """Return the seconds by which a late write is delayed, from 0 to `most`."""


class RandomChance:
    """Decisions drawn from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def happens(self, share: float, kind: str = "") -> bool:
        """Return True with this probability."""
        return share > 0 and self._random.random() < share

    def pick(self, count: int) -> int:
        """Return a random number from 0 to `count` - 1."""
        return self._random.randrange(count)

    def pause(self, most: float) -> float:
        """Return random seconds from 0 to `most`."""
        return self._random.random() * most

    def commit_delay(self, most: float) -> float:
        """Return random seconds from 0 to `most`."""
        return self.pause(most)
