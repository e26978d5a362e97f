"""Figures of the marts, computed by hand: of two agencies (`jobs.yml`, `people.yml`), whose figures
are in `figures.yml`, and of a staged case for each definition (`cases.yml`).
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.models.marts.world import BuiltWorld, ModelWorld, build_models, read_yaml

CASES = [each for each in read_yaml("cases") if "case" in each]


def parametrize(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """Return the mark that runs a test once for each case."""
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(each, id=each["case"], marks=[pytest.mark.slow] * each.get("slow", False))
            for each in cases
        ],
    )


@parametrize(CASES)
def test_a_staged_case_has_its_right_values(world: ModelWorld, case: dict[str, Any]) -> None:
    world.run_steps(case["steps"])
    named = re.findall(r"(?:marts|staging)\.(\w+)", " ".join(case["rows"]))
    shown = build_models(world, *(() if "build" in case else named))

    shown.assert_rows(case["rows"])
    warned = {each.check.name for each in shown.built.failed("warn")}
    assert case.get("warns") in {None, *warned}


@parametrize(read_yaml("figures"))
def test_figures_of_an_agency_are_those_computed_by_hand(
    jobs_world: BuiltWorld, people_world: BuiltWorld, case: dict[str, Any]
) -> None:
    {"jobs": jobs_world, "people": people_world}[case["world"]].assert_rows(case["rows"])


def test_every_definition_has_a_case() -> None:
    named = {word for case in CASES for word in re.findall(r"\bE\d+\b", case["case"])}

    # E9 is in test_descriptions, the goals of E12 are in test_seeds.
    assert {f"E{number}" for number in range(1, 13)} - {"E9"} == named
