"""A plan estimates the requests of a pull with few requests and without loading anything."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from connector.pulls.plan import CostEstimate, estimate_cost
from connector.sandbox.server import Sandbox
from tests.support.agency import SMALL, pulled, settings_of

COUNT = 300
PAGES = math.ceil(COUNT / 100)


def plan_pull(sandbox: Sandbox, folder: Path, *names: str) -> CostEstimate:
    """Plan a pull of the given resources, or of all."""
    return asyncio.run(estimate_cost(settings_of(sandbox, folder), names))


def test_a_plan_of_a_first_load_is_exact(tmp_path: Path) -> None:
    with Sandbox(counts=SMALL) as sandbox:
        found = plan_pull(sandbox, tmp_path)
        report = pulled(sandbox, tmp_path)

        costs = {name: each.requests for name, each in report.resources.items()}
        assert costs == {name: each.requests for name, each in found.by_resource.items()}
        assert all(each.is_first for each in found.by_resource.values())
