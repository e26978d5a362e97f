"""Requests spent by a pull beside the least possible, over a real socket: `python -m benchmarks
pull_requests`.

The least possible: ids come a hundred at a time and each changed record's fields only in its
detail; that nothing has changed takes one list and one detail, since an edit of the newest record
changes no list. To find d deleted records among P pages, each answer tells at most in which of
d + 1 ways to go on.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings

RECORDS = 10_000
PAGES = math.ceil(RECORDS / 100)


@dataclass(frozen=True)
class Case:
    """What happens between two pulls, the fewest requests that can show it, and our bound."""

    name: str
    happen: Callable[[Sandbox, random.Random], None]
    least: int
    bound: int


def update(sandbox: Sandbox, ids: list[str], chance: random.Random) -> None:
    """Change these candidates, one after another."""
    for id in ids:
        sandbox.store.update("candidates", id, {"notes": f"note {chance.random()}"})


def changed(count: int) -> Callable[[Sandbox, random.Random], None]:
    """Change so many candidates drawn at random."""

    def happen(sandbox: Sandbox, chance: random.Random) -> None:
        update(sandbox, chance.sample(sorted(sandbox.store.records("candidates")), count), chance)

    return happen


def touched(count: int) -> Callable[[Sandbox, random.Random], None]:
    """Change the newest once more, in the order that they have, as a nightly job does."""

    def happen(sandbox: Sandbox, chance: random.Random) -> None:
        records = sandbox.store.records("candidates")
        newest = sorted(records, key=lambda each: records[each]["updated_at"], reverse=True)
        update(sandbox, newest[:count][::-1], chance)

    return happen


def deleted(count: int) -> Callable[[Sandbox, random.Random], None]:
    """Delete so many candidates drawn at random."""

    def happen(sandbox: Sandbox, chance: random.Random) -> None:
        for id in chance.sample(sorted(sandbox.store.records("candidates")), count):
            sandbox.store.delete("candidates", id)

    return happen


def least_for(changes: int) -> int:
    """One list per hundred, one detail for each changed record, one for the first that is not."""
    return math.ceil((changes + 1) / 100) + changes + 1


def cases() -> Iterator[Case]:
    """The first load, and what follows it."""
    nothing = changed(0)
    # The last page is full, which costs a list of the newest to see that none stands beyond it.
    yield Case("first load", nothing, RECORDS + PAGES, RECORDS + 2 * PAGES + 3)
    yield Case("nothing changed", nothing, 2, 2)
    for count in (1, 10, 99):
        yield Case(f"{count} changed", changed(count), least_for(count), least_for(count))
    yield Case("500 changed", changed(500), least_for(500), 516)
    yield Case("500 in the same order", touched(500), least_for(500), 516)
    one = 2 + math.ceil(math.log2(PAGES + 1))
    yield Case("1 deleted", deleted(1), one, int(math.log2(PAGES) + 4))
    ten = 2 + math.ceil(math.log2(math.comb(PAGES, 10)) / math.log2(11))
    yield Case("10 deleted", deleted(10), ten, 53)


def spent(sandbox: Sandbox, folder: Path) -> int:
    """Pull the candidates and return the requests spent."""
    environ = {
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
    }
    report = asyncio.run(pull(load_settings({}, environ, folder), ("candidates",)))
    assert report.outcome == "done", report.as_json()
    candidates = report.resources["candidates"]
    assert candidates.proven
    assert candidates.live == len(sandbox.store.records("candidates"))
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
    counts = {"candidates": RECORDS}
    print(f"{'case':<24}{'requests':>10}{'least':>8}{'ratio':>8}{'bound':>8}")
    with tempfile.TemporaryDirectory() as name, Sandbox(counts=counts, clock=clock) as sandbox:
        for case in cases():
            case.happen(sandbox, chance)
            clock.pass_an_hour()
            requests = spent(sandbox, Path(name))
            is_met = is_met and requests <= case.bound
            ratio = requests / case.least
            print(f"{case.name:<24}{requests:>10}{case.least:>8}{ratio:>8.3f}{case.bound:>8}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
