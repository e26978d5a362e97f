"""Whole accounts: purges, undo, lost files and restores among pulls and pushes."""

from __future__ import annotations

import pytest

from tests.seeds import seeds
from tests.simulation.run import ACCOUNT, run
from tests.tiers import first_fast


@pytest.mark.parametrize("seed", first_fast(seeds(4), 0))
def test_random_steps_of_an_account_keep_its_promises(seed: int) -> None:
    verdict = run(ACCOUNT, seed)

    assert [] == verdict.wrong, verdict
