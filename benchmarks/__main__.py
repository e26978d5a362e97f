"""Every headline figure, one benchmark after another: `python -m benchmarks`.

Each is a file of this folder with a `main` that prints its figures beside their targets and
returns 0 if all are met; the naive scripts are what some of them are measured against.
`python -m benchmarks NAME ...` runs only those named.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

_NO_BENCHMARKS = ("_", "naive")
NAMES = sorted(
    p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith(_NO_BENCHMARKS)
)


def main(names: list[str]) -> int:
    """Run the benchmarks of these names, or all; 0 if every target is met."""
    unknown = set(names) - set(NAMES)
    if unknown:
        print(f"There is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}.")
        return 2
    missed = []
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        if import_module(f"benchmarks.{name}").main():
            missed.append(name)
    print("all targets are met" if not missed else f"targets missed in: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
