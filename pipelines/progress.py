"""How far long work has come, told to a run's log now and then.

Dagster writes each line to its storage, which takes as long as a request to the API does. So it is
told for people, and not for each thing that was done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SECONDS_BETWEEN = 5.0
"""So much time is between a line and the next, at least, and before the first one."""


class Progress:
    """Tells a run's log how far something is, on the clock that `now` reads in seconds."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log, self._now = log, now
        self._told_at = now()

    def tell(self, line: str) -> None:
        """Tell it, if nothing was told for a while."""
        if self._now() - self._told_at >= SECONDS_BETWEEN:
            self._log.debug(line)
            self._told_at = self._now()
