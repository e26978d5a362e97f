"""All measurements of `make bench`: `python -m benchmarks`.

Prints the lines of the table of `docs/SCALE.md`. `python -m benchmarks pulls pushes` measures
these topics only, and `--quick` the smallest sizes.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime

from benchmarks import publication, pulls, pushes, scale, spreadsheets
from benchmarks.measure import HEADINGS, Benchmark

TOPICS: dict[str, Benchmark] = {
    "pulls": pulls.measure,
    "pushes": pushes.measure,
    "spreadsheets": spreadsheets.measure,
    "publication": publication.measure,
    "scale": scale.measure,
}


def main(arguments: list[str]) -> int:
    """Measure the named topics, or all. Return 0, or 2 for an unknown topic."""
    is_quick = "--quick" in arguments
    names = [each for each in arguments if each != "--quick"]
    if unknown := set(names) - TOPICS.keys():
        print(f"Unknown topics: {', '.join(sorted(unknown))}. Allowed: {', '.join(TOPICS)}.")
        return 2
    began = time.monotonic()
    print(f"Measured on {datetime.now(UTC):%Y-%m-%d}, on a machine with {os.cpu_count()} cores.")
    for row in (HEADINGS, ["---"] * len(HEADINGS)):
        print(f"| {' | '.join(row)} |")
    for name in names or TOPICS:
        for line in TOPICS[name](is_quick):
            print(f"| {' | '.join(line.cells())} |", flush=True)
    print(f"Measured in {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
