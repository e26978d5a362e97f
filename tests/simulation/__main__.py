"""Run simulated pulls on all cores.

`--scenario` and `--seed` replay one run, `--trace` prints its requests and answers. `--tiny` plays
every order of events of a tiny world, `--tape` one of them. `--planted` plants faults in the
engines and prints the number of runs after which each is found. `--record` writes both to
`docs/figures/simulation.json`, from which `docs/CORRECTNESS.md` is generated. Exit status 1 if a
run was wrong, or a fault was not found.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.repository import ROOT
from tests.simulation.harness import (
    ScenarioSummary,
    Simulator,
    make_parser,
    print_line,
    run_command,
    run_scenarios,
)
from tests.simulation.planted import PLANTED, RUNS_MAX, PlantedFault
from tests.simulation.run import ACCOUNT, MODULE, run
from tests.simulation.scenario import SCENARIOS, SMALL
from tests.simulation.tiny import SHAPES, play

FIGURES = ROOT / "docs" / "figures" / "simulation.json"

RECORDED = 500
"""Runs within which every planted fault must be found, as in the tests."""


def main() -> int:
    """Run the command, and return its exit status."""
    parser = make_parser(MODULE, __doc__)
    parser.add_argument("--warehouse", action="store_true", help="keep history in a warehouse, too")
    parser.add_argument("--depth", type=int, default=3, help="mutations of a tiny world")
    parser.add_argument("--pulls", type=int, default=1, help="pulls of a tiny world")
    parser.add_argument("--planted", action="store_true", help="find planted faults")
    parser.add_argument("--record", action="store_true", help="write runs and faults to a file")
    options = parser.parse_args()
    simulator = Simulator(
        MODULE,
        {**{name: each.about for name, each in SCENARIOS.items()}, ACCOUNT: "a whole account"},
        partial(run, with_warehouse=options.warehouse),
        ("requests", "unproven", "busy unproven"),
        list(SHAPES),
        partial(play, mutations=options.depth, pulls=options.pulls),
        suffix=SMALL,
    )
    if options.planted:
        return _print_planted_faults(options)
    if options.record:
        summaries, seconds = run_scenarios(simulator, options)
        _write_figures(simulator, summaries, seconds, options.workers)
        return int(any(each.wrong for each in summaries.values()))
    return run_command(simulator, options)


def _write_figures(
    simulator: Simulator, summaries: Mapping[str, ScenarioSummary], seconds: float, workers: int
) -> None:
    """Write the results of each scenario and of each planted fault to the figures file."""
    worlds = [
        {
            "scenario": name,
            "about": simulator.scenarios[name],
            "runs": each.runs,
            "wrong": each.wrong,
            "unproven": each.figures["unproven"],
            "requests": each.figures["requests"],
        }
        for name, each in summaries.items()
    ]
    planted = [
        {
            "engine": each.engine,
            "name": each.name,
            "about": (each.plant.__doc__ or "").strip().split("\n\n")[0],
            "scenario": each.scenario,
            "is_harmless": each.is_harmless,
            "seen_after": found[0] if found else None,
            "promise": found[1].split(":")[0] if found else None,
        }
        for each, found in _find_planted_faults(RECORDED, workers)
    ]
    figures = {"worlds": worlds, "planted": planted}
    recorded = {"seconds": round(seconds), "planted_runs": RECORDED, **figures}
    FIGURES.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


def _print_planted_faults(options: argparse.Namespace) -> int:
    """Print when each planted fault is found. Return 1 if a result is unexpected, else 0."""
    runs, is_as_expected = options.runs or RUNS_MAX, True
    for each, found in _find_planted_faults(runs, options.workers):
        is_as_expected &= (found is None) == each.is_harmless
        text = f"{found[0]} runs: {found[1]}" if found else f"not in {runs} runs"
        text += " (harmless: docs/CORRECTNESS.md)" if each.is_harmless else ""
        print_line(f"{each.engine:<12} {each.name:<37} {each.scenario:<22} {text}"[:160])
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
