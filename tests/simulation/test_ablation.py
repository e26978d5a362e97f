"""The simulator can see: every fault planted in an engine is found, and soon."""

from __future__ import annotations

import json

import pytest

from connector.pulls.listing import Listing
from tests.repository import ROOT
from tests.simulation import ablation
from tests.simulation.planted import PLANTED, PlantedFault
from tests.simulation.push import ablation as push_ablation
from tests.tiers import only_fast

SOON = 500
"""Runs within which each fault is seen; most are within ten."""

HARMLESS_RUNS = 30


SEEN_LATE = {
    *("closing_floor_is_forgotten", "closing_id_is_forgotten"),
    *("certificate_off_by_one", "no_verify_sweep"),
}
"""Faults that take more than a second to be seen."""

HARMFUL = [each for each in PLANTED if not each.is_harmless]


@pytest.mark.parametrize(
    "planted",
    only_fast(HARMFUL, [each for each in HARMFUL if each.name not in SEEN_LATE]),
    ids=[each.id for each in HARMFUL],
)
def test_a_planted_fault_is_seen(planted: PlantedFault) -> None:
    assert planted.first_seen(SOON) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if each.is_harmless], ids=lambda each: each.id
)
def test_a_harmless_fault_is_not_seen(planted: PlantedFault) -> None:
    assert planted.first_seen(HARMLESS_RUNS) is None


@pytest.mark.parametrize("module", [ablation, push_ablation])
def test_every_fault_is_planted(module: object) -> None:
    faults = {
        name
        for name, each in vars(module).items()
        if callable(each)
        and getattr(each, "__module__", "") == getattr(module, "__name__", None)
        and not name.startswith("_")
        and name != "changed"
    }

    assert faults <= {each.name for each in PLANTED}
    assert faults


def test_the_document_shows_no_fault_that_is_gone() -> None:
    """The table in docs/CORRECTNESS.md is made of this file."""
    recorded = json.loads((ROOT / "docs" / "figures" / "simulation.json").read_text("utf-8"))

    assert {each["name"] for each in recorded["planted"]} <= {each.name for each in PLANTED}


def test_a_line_that_is_gone_is_noticed() -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(AssertionError, match="add has 'no such line' 0 times"),
    ):
        ablation.changed(patch, Listing, "add", ("no such line", ""))
