"""Every planted fault with the scenario that is made to show it, and how soon it does.

The faults of the pull and of the rate limiter are in `ablation.py`, those of the push in
`push/ablation.py`; what each of them shows is in docs/CORRECTNESS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.client.rate_limiter_simulation import run_single_client
from tests.simulation import ablation
from tests.simulation import run as pull
from tests.simulation.push import ablation as push_ablation
from tests.simulation.push import run as push

RUNS_MAX = 1000
"""A fault that is not seen in so many runs of its scenario is not seen."""


@dataclass(frozen=True)
class PlantedFault:
    """A planted fault. `wrong` plays the run of a seed and returns the promises that it broke;
    `is_harmless` says that none can be.
    """

    name: str
    engine: str
    scenario: str
    plant: Callable[[pytest.MonkeyPatch], None]
    wrong: Callable[[int], list[str]]
    is_harmless: bool = False

    @property
    def id(self) -> str:
        """The fault and its scenario, in a line."""
        return f"{self.engine}: {self.name} ({self.scenario})"

    def first_seen(self, runs: int = RUNS_MAX) -> tuple[int, str] | None:
        """Return the number of runs, with seeds from 0, until the fault breaks a promise.

        Returns:
            The number of runs and the promise; None if no run was wrong.
        """
        for seed in range(runs):
            if promise := self.broken_promise(seed):
                return seed + 1, promise
        return None

    def broken_promise(self, seed: int) -> str | None:
        """Return the promise that breaks in the run with this seed only because of the fault."""
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            wrong = self.wrong(seed)
        return wrong[0] if wrong and not self.wrong(seed) else None


def _pulled(name: str, scenario: str, *, is_harmless: bool = False) -> PlantedFault:
    def wrong(seed: int) -> list[str]:
        return pull.run(scenario, seed).wrong

    return PlantedFault(name, "pull", scenario, getattr(ablation, name), wrong, is_harmless)


def _pushed(name: str, scenario: str, obligation: str) -> PlantedFault:
    def wrong(seed: int) -> list[str]:
        verdict = push.run(scenario, seed)
        return verdict.wrong if obligation in verdict.promises else []

    return PlantedFault(name, "push", scenario, getattr(push_ablation, name), wrong)


def _limited(kind: str) -> PlantedFault:
    def wrong(seed: int) -> list[str]:
        refused = len(run_single_client(kind, seed).refused_at)
        return [f"refused: {refused} requests of a sole client"] if refused else []

    plant = ablation.requests_in_flight_are_not_counted
    return PlantedFault(plant.__name__, "rate limiter", kind, plant, wrong)


PLANTED: tuple[PlantedFault, ...] = (
    *(_pulled(name, scenario) for name, scenario in ablation.SHOWN_IN.items()),
    *(_pulled(name, scenario, is_harmless=True) for name, scenario in ablation.HARMLESS.items()),
    *(_pushed(name, *shown) for name, shown in push_ablation.SHOWN_IN.items()),
    _limited("fixed"),
    _limited("sliding to the oldest"),
)
"""Every planted fault."""
