"""Random decisions of a play."""

from __future__ import annotations

import random


class Chance:
    """Makes the decisions of a play, drawn from a seed; subclasses decide otherwise."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def happens(self, share: float, kind: str = "") -> bool:
        """Return True with this probability; `kind` names events that are limited in number."""
        return share > 0 and self._random.random() < share

    def pick(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        return self._random.randrange(count)

    def pause(self, most: float) -> float:
        """Return the seconds of a pause, from 0 to `most`."""
        return self._random.random() * most

    def commit_delay(self, most: float) -> float:
        """Return the seconds by which a late write is delayed, from 0 to `most`."""
        return self.pause(most)
