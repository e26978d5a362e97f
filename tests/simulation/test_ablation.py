"""The simulator finds every fault planted in an engine within a number of runs."""

from __future__ import annotations

import pytest

from connector.pulls.pull import Listing
from tests.simulation import ablation
from tests.simulation.planted import PLANTED, PLANTED_FILE, PlantedFault
from tests.simulation.push import ablation as push_ablation

HARMLESS_RUNS = 30

RECORDED = [line.split(maxsplit=2) for line in PLANTED_FILE.read_text("utf-8").splitlines()]
SEEN_AFTER = {(name, scenario): int(runs) for runs, name, scenario in RECORDED if runs != "-"}


@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if not each.is_harmless], ids=lambda each: each.id
)
def test_a_planted_fault_breaks_a_promise_within_the_recorded_runs(planted: PlantedFault) -> None:
    """The recorded run is tried first, then others in case the engine has changed since."""
    recorded = SEEN_AFTER.get((planted.name, planted.scenario), 1)

    assert planted.find_broken_promise(recorded - 1) or planted.find_first_run()


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if each.is_harmless], ids=lambda each: each.id
)
def test_a_harmless_planted_fault_breaks_no_promise(planted: PlantedFault) -> None:
    assert planted.find_first_run(HARMLESS_RUNS) is None


@pytest.mark.parametrize("module", [ablation, push_ablation])
def test_every_defined_fault_is_in_the_list_of_planted_faults(module: object) -> None:
    faults = {
        name
        for name, each in vars(module).items()
        if callable(each)
        and getattr(each, "__module__", "") == getattr(module, "__name__", None)
        and not name.startswith("_")
        and name != "patch_source"
    }

    assert faults <= {each.name for each in PLANTED}
    assert faults


def test_the_record_lists_only_existing_faults() -> None:
    assert {name for name, _ in SEEN_AFTER} <= {each.name for each in PLANTED}


def test_a_fault_whose_source_line_no_longer_exists_raises() -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(AssertionError, match="add has 'no such line' 0 times"),
    ):
        ablation.patch_source(patch, Listing, "add", ("no such line", ""))
