"""Record of the simulated pulls and pushes: what each costs, and whether a promise was broken."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from tests.records import program
from tests.records.record import Record

SEEDS = range(50)

PUSH_FIGURES = ("writes", "reads")


def record_pulls(processes: int) -> Record:
    """Return the requests, errors and unverified runs of each pull scenario with every seed."""
    return dict(_run_all(_run_pulls, list(program.PULL_SCENARIOS), processes))


def record_pushes(processes: int) -> Record:
    """Return the requests, outcomes and errors of each push scenario with every seed."""
    return dict(_run_all(_run_pushes, list(program.PUSH_SCENARIOS), processes))


def _run_all(
    run: Callable[[str], list[tuple[str, str]]], names: list[str], processes: int
) -> Iterator[tuple[str, str]]:
    with ProcessPoolExecutor(processes, initializer=partial(gc.set_threshold, 100_000)) as pool:
        for lines in pool.map(run, names):
            yield from lines


def _run_pulls(name: str) -> list[tuple[str, str]]:
    verdicts = [program.pull_simulator.run(name, seed) for seed in SEEDS]
    reasons: dict[str, list[int]] = {}
    for each in verdicts:
        if each.reason is not None:
            reasons.setdefault(each.reason, []).append(each.seed)
    return [
        *_sums(name, "requests", verdicts),
        (f"{name} verified", f"{sum(each.reason is None for each in verdicts)} of {len(SEEDS)}"),
        *((f"{name} not verified", f"{why}; seeds {seeds}") for why, seeds in reasons.items()),
        *_errors(name, verdicts),
    ]


def _run_pushes(name: str) -> list[tuple[str, str]]:
    verdicts = [program.push_simulator.run(name, seed) for seed in SEEDS]
    outcomes = sorted({each for verdict in verdicts for each in verdict.figures})
    kept = [each for each in outcomes if each not in (*PUSH_FIGURES, "kills")]
    return [
        *(line for figure in PUSH_FIGURES for line in _sums(name, figure, verdicts)),
        *((f"{name} {e}", f"{sum(verdict.figures[e] for verdict in verdicts)}") for e in kept),
        *_errors(name, verdicts),
    ]


def _sums(name: str, figure: str, verdicts: list[Any]) -> Iterator[tuple[str, str]]:
    values = [verdict.figures[figure] for verdict in verdicts]
    yield f"{name} {figure}", f"{sum(values)} = {' '.join(map(str, values))}"


def _errors(name: str, verdicts: list[Any]) -> Iterator[tuple[str, str]]:
    wrong = {each.seed: "; ".join(each.wrong) for each in verdicts if each.wrong}
    yield f"{name} wrong", f"{len(wrong)} of {len(verdicts)}"
    yield from ((f"{name} wrong, seed {seed}", what) for seed, what in wrong.items())
