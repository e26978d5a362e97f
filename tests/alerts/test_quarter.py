"""A quarter of five accounts: each incident is told once, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.alerts.incidents import PLANS
from tests.alerts.quarter import BEGINS, ENDS, NIGHTS, PAGE, Incident, Plan, rows_of, spend_quarter

INCIDENTS = 40


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_each_incident_is_told_once_and_mended_by_its_action(plan: Plan, tmp_path: Path) -> None:
    rows = rows_of(plan, spend_quarter(plan, tmp_path))
    page = PAGE.read_text(encoding="utf-8").partition(BEGINS)[2].partition(ENDS)[0]
    shown = [line for line in page.splitlines() if f"| {plan.name} |" in line]

    assert rows == shown, "run python -m tests.alerts"


def test_the_script_is_as_long_as_the_page_says() -> None:
    incidents = [
        (plan.name, each.night)
        for plan in PLANS
        for each in plan.script
        if isinstance(each, Incident)
    ]

    assert (5, INCIDENTS, INCIDENTS) == (len(PLANS), len(incidents), len(set(incidents)))
    assert all(night < NIGHTS for _, night in incidents)
