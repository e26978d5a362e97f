"""Every planted fault with the scenario in which it is found.

Faults of the pull and of the rate limiter are in `ablation.py`, those of the push in
`push/ablation.py`. docs/CORRECTNESS.md describes what each of them shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.client.limiter_simulation import run_single_client
from tests.simulation import ablation
from tests.simulation import run as pull
from tests.simulation.push import ablation as push_ablation
from tests.simulation.push import run as push

PLANTED_FILE = Path(__file__).parent / "planted.txt"
"""Runs after which each fault was found, its name and its scenario; `-` if it is harmless."""

RUNS_MAX = 1000
"""Runs of its scenario after which a fault counts as not found."""


@dataclass(frozen=True)
class PlantedFault:
    """A fault that `plant` patches into an engine. `run_seed` runs the scenario and returns the
    broken promises.

    A harmless fault breaks no promise.
    """

    name: str
    engine: str
    scenario: str
    plant: Callable[[pytest.MonkeyPatch], None]
    run_seed: Callable[[int], list[str]]
    is_harmless: bool = False

    @property
    def id(self) -> str:
        """Name of the fault and its scenario, for the test's id."""
        return f"{self.engine}: {self.name} ({self.scenario})"

    def find_first_run(self, runs: int = RUNS_MAX) -> tuple[int, str] | None:
        """Run with the seeds from 0 until the fault breaks a promise.

        Returns:
            The number of runs and the promise; None if no run was wrong.
        """
        for seed in range(runs):
            if promise := self.find_broken_promise(seed):
                return seed + 1, promise
        return None

    def find_broken_promise(self, seed: int) -> str | None:
        """Return the promise that a run breaks with the fault and keeps without it, or None."""
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            wrong = self.run_seed(seed)
        return wrong[0] if wrong and not self.run_seed(seed) else None


def _pull_fault(name: str, scenario: str, *, is_harmless: bool = False) -> PlantedFault:
    """Return a fault of the pull, run in a pull scenario."""

    def wrong(seed: int) -> list[str]:
        return pull.run(scenario, seed).wrong

    return PlantedFault(name, "pull", scenario, getattr(ablation, name), wrong, is_harmless)


def _push_fault(name: str, scenario: str, obligation: str) -> PlantedFault:
    """Return a fault of the push that is found if the run breaks the given obligation."""

    def wrong(seed: int) -> list[str]:
        verdict = push.run(scenario, seed)
        return verdict.wrong if obligation in verdict.promises else []

    return PlantedFault(name, "push", scenario, getattr(push_ablation, name), wrong)


def _rate_limiter_fault(kind: str) -> PlantedFault:
    """Return the fault of the rate limiter, run with one client and this kind of window."""

    def wrong(seed: int) -> list[str]:
        refused = len(run_single_client(kind, seed).refused_at)
        return [f"refused: {refused} requests of a sole client"] if refused else []

    plant = ablation.requests_in_flight_are_not_counted
    return PlantedFault(plant.__name__, "rate limiter", kind, plant, wrong)


PLANTED: tuple[PlantedFault, ...] = (
    *(_pull_fault(name, scenario) for name, scenario in ablation.SHOWN_IN.items()),
    *(
        _pull_fault(name, scenario, is_harmless=True)
        for name, scenario in ablation.HARMLESS.items()
    ),
    *(_push_fault(name, *shown) for name, shown in push_ablation.SHOWN_IN.items()),
    _rate_limiter_fault("fixed"),
    _rate_limiter_fault("sliding to the oldest"),
)
"""Every planted fault."""
