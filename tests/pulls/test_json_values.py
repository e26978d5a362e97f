"""`as_json()` of results: values that JSON has, for programs that do not use the terminal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from connector.operations.problems import Problem
from connector.pulls.plan import estimate_cost
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of
from tests.support.clock import START


def test_results_convert_to_json_values(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 3}, behaviours={"extra_fields": "shown"}) as sandbox:
        settings = settings_of(sandbox, tmp_path)
        pulled = asyncio.run(pull(settings, ["candidates"])).as_json()
        plan = asyncio.run(estimate_cost(settings, ["candidates"]))
    problem = Problem("pull_failed", "Title", "What", "Next", START).as_json()

    assert {"anomalies", "month"} <= pulled.keys()
    assert START.isoformat() == problem["since"]
    for each in (pulled, plan.as_json(), problem):
        assert each == json.loads(json.dumps(each))
