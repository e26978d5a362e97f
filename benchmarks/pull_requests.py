"""Requests spent by a pull beside the least possible, over a real socket: `python -m benchmarks
pull_requests`.

The least possible: ids come a hundred at a time and each changed record's fields only in its
detail; that nothing has changed takes one list and one detail, since an edit of the newest record
changes no list.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connector.run import pull
from connector.sandbox import Sandbox
from connector.settings import load_settings

RECORDS = 2_000
CHANGED = (0, 1, 10, 99)


def spent(sandbox: Sandbox, folder: Path) -> int:
    """Pull the candidates and return the requests spent."""
    environ = {
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
    }
    report = asyncio.run(pull(load_settings({}, environ, folder), ("candidates",)))
    assert report.outcome == "done", report.as_json()
    return report.requests


class Clock:
    """The sandbox's time, which an hour can be put on: what changed is then old enough."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        """The time now."""
        return datetime.now(UTC) + self._ahead

    def pass_an_hour(self) -> None:
        """Put an hour on."""
        self._ahead += timedelta(hours=1)


def main() -> int:
    """Print each case; 0 if every case is within its bound."""
    chance, clock, is_met = random.Random(1), Clock(), True  # noqa: S311  # no secret is drawn
    pages = math.ceil(RECORDS / 100)
    print(f"{'case':<24}{'requests':>10}{'least':>8}{'ratio':>8}{'bound':>8}")
    counts = {"candidates": RECORDS}
    with tempfile.TemporaryDirectory() as name, Sandbox(counts=counts, clock=clock) as sandbox:
        for changed in (None, *CHANGED):
            if changed is None:
                case, least, bound = "first load", RECORDS + pages, RECORDS + 2 * pages + 2
            else:
                case, least = f"{changed} changed", changed + 1 + math.ceil((changed + 1) / 100)
                bound = least
                for id in chance.sample(sorted(sandbox.store.records("candidates")), changed):
                    sandbox.store.update("candidates", id, {"notes": case})
            clock.pass_an_hour()
            requests = spent(sandbox, Path(name))
            is_met = is_met and requests <= bound
            print(f"{case:<24}{requests:>10}{least:>8}{requests / least:>8.3f}{bound:>8}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
