"""All measurements of `make bench`: `python -m benchmarks`.

Writes `docs/figures/benchmarks.json`, of which `make generate` makes the table and the plot of
`docs/BENCHMARKS.md`. `python -m benchmarks pulls pushes` measures these topics again and keeps the
other lines. `--quick` measures the smallest sizes and writes nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime

from benchmarks import publication, pulls, pushes, scale, spreadsheets
from benchmarks.measure import ROOT, Benchmark

TOPICS: dict[str, Benchmark] = {
    "pulls": pulls.measure,
    "pushes": pushes.measure,
    "spreadsheets": spreadsheets.measure,
    "publication": publication.measure,
    "scale": scale.measure,
}
MEASURED = ROOT / "docs" / "figures" / "benchmarks.json"


def main(arguments: list[str]) -> int:
    """Measure the named topics, or all. Return 0, or 2 for an unknown topic."""
    is_quick = "--quick" in arguments
    names = [each for each in arguments if each != "--quick"]
    if unknown := set(names) - TOPICS.keys():
        print(f"Unknown topics: {', '.join(sorted(unknown))}. Allowed: {', '.join(TOPICS)}.")
        return 2
    known = json.loads(MEASURED.read_text("utf-8"))["lines"] if MEASURED.exists() else {}
    began = time.monotonic()
    lines = {name: known.get(name, []) for name in TOPICS}
    for name in names or TOPICS:
        lines[name] = []
        for line in TOPICS[name](is_quick):
            print(*line.cells(), sep=" | ", flush=True)
            lines[name].append(asdict(line))
    print(f"Measured in {time.monotonic() - began:.0f} s.")
    if not is_quick:
        written = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "cores": os.cpu_count(), "lines": lines}
        MEASURED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
