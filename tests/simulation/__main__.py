"""Run simulated pulls on all cores.

`--scenario` and `--seed` replay one run, `--trace` prints its requests and answers. `--tiny` plays
every order of events of a tiny world, `--tape` one of them. `--planted` plants faults in the
engines and prints the number of runs after which each is found; with `--record`, it also writes
them to `planted.txt`, with which the tests begin. Exit status 1 if a run was wrong, or a fault was
not found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.harness import Simulator, make_parser, print_line, run_command
from tests.simulation.planted import PLANTED, PLANTED_FILE, RUNS_MAX, PlantedFault
from tests.simulation.run import MODULE, run
from tests.simulation.scenario import SCENARIOS, SMALL
from tests.simulation.tiny import SHAPES, play


def main() -> int:
    """Run the command, and return its exit status."""
    parser = make_parser(MODULE, __doc__)
    parser.add_argument("--warehouse", action="store_true", help="keep history in a warehouse, too")
    parser.add_argument("--depth", type=int, default=3, help="mutations of a tiny world")
    parser.add_argument("--pulls", type=int, default=1, help="pulls of a tiny world")
    parser.add_argument("--planted", action="store_true", help="find planted faults")
    parser.add_argument("--record", action="store_true", help="write planted.txt")
    options = parser.parse_args()
    simulator = Simulator(
        MODULE,
        {name: each.about for name, each in SCENARIOS.items()},
        partial(run, with_warehouse=options.warehouse),
        ("requests", "unproven", "busy unproven"),
        list(SHAPES),
        partial(play, mutations=options.depth, pulls=options.pulls),
        suffix=SMALL,
    )
    if options.planted:
        return _print_planted_faults(options)
    return run_command(simulator, options)


def _print_planted_faults(options: argparse.Namespace) -> int:
    """Print when each planted fault is found. Return 1 if a result is unexpected, else 0."""
    runs, is_as_expected, record = options.runs or RUNS_MAX, True, ""
    for each, found in _find_planted_faults(runs, options.workers):
        is_as_expected &= (found is None) == each.is_harmless
        record += f"{found[0] if found else '-'} {each.name} {each.scenario}\n"
        text = f"{found[0]} runs: {found[1]}" if found else f"not in {runs} runs"
        text += " (harmless: docs/CORRECTNESS.md)" if each.is_harmless else ""
        print_line(f"{each.engine:<12} {each.name:<37} {each.scenario:<22} {text}"[:160])
    if options.record:
        PLANTED_FILE.write_text(record, encoding="utf-8")
    return int(not is_as_expected)


def _find_planted_faults(
    runs: int, workers: int
) -> Iterator[tuple[PlantedFault, tuple[int, str] | None]]:
    """Yield each fault with the number of runs until it was found and its promise, or None."""
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(partial(_find_first_run, runs=runs), range(len(PLANTED)))
        yield from zip(PLANTED, found, strict=True)


def _find_first_run(number: int, runs: int) -> tuple[int, str] | None:
    """Find the fault with this index, in a worker process."""
    return PLANTED[number].find_first_run(runs)


if __name__ == "__main__":
    sys.exit(main())
