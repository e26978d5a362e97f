"""A plan estimates the requests of a pull with few requests and without loading anything."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.pulls.plan import CostEstimate, estimate_cost
from connector.sandbox.server import Sandbox
from tests.support.agency import SMALL, published, pulled, settings_of
from tests.tiers import first_fast

COUNT = 300
PAGES = math.ceil(COUNT / 100)


def plan_pull(sandbox: Sandbox, folder: Path, *names: str) -> CostEstimate:
    """Plan a pull of the given resources, or of all."""
    return asyncio.run(estimate_cost(settings_of(sandbox, folder), names))


def make_changes(count: int) -> Callable[[Sandbox], None]:
    """Return a function that updates `count` random candidates."""

    def happen(sandbox: Sandbox) -> None:
        ids = sorted(sandbox.store.records("candidates"))
        for id in random.Random(count).sample(ids, count):  # no secret is drawn
            sandbox.store.update("candidates", id, {"notes": f"change {count}"})

    return happen


@pytest.mark.parametrize("count", first_fast([250, 0, 1, COUNT], 2))
def test_a_plan_expects_as_many_changes_as_the_last_pull_found(tmp_path: Path, count: int) -> None:
    with Sandbox(counts={"candidates": COUNT}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")
        make_changes(count)(sandbox)
        pulled(sandbox, tmp_path, "candidates")
        make_changes(count)(sandbox)
        before = published(tmp_path).read_bytes()
        found = plan_pull(sandbox, tmp_path, "candidates")
        assert before == published(tmp_path).read_bytes()
        spent = pulled(sandbox, tmp_path, "candidates").requests

        assert abs(found.requests - spent) <= 0.05 * spent
        assert 1 == found.spent


def test_a_plan_of_a_first_load_is_exact(tmp_path: Path) -> None:
    with Sandbox(counts=SMALL) as sandbox:
        found = plan_pull(sandbox, tmp_path)
        report = pulled(sandbox, tmp_path)

        costs = {name: each.requests for name, each in report.resources.items()}
        assert costs == {name: each.requests for name, each in found.by_resource.items()}
        assert all(each.is_first for each in found.by_resource.values())
