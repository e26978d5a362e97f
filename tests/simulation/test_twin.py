"""Runs over the twin and over the sandbox's store are identical."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.simulation.harness import Verdict
from tests.simulation.run import run
from tests.simulation.scenario import SMALL

SEEDS = 2


def _run_traced(
    name: str, seed: int, server_kind: Literal["twin", "store"]
) -> tuple[list[str], Verdict]:
    """Run the small scenario over that server, and return the trace and the verdict."""
    lines: list[str] = []
    return lines, run(name + SMALL, seed, server_kind=server_kind, trace=lines.append)


@pytest.mark.parametrize(
    "name", ["B", "D", "E", "F", "H", "killed", "unsorted", "content", "types"]
)
def test_a_run_over_the_store_is_the_run_over_the_twin(name: str) -> None:
    for seed in range(SEEDS):
        store, store_verdict = _run_traced(name, seed, "store")
        twin, twin_verdict = _run_traced(name, seed, "twin")

        assert store == twin, f"{name}, seed {seed}"
        assert store_verdict == twin_verdict, f"{name}, seed {seed}"
