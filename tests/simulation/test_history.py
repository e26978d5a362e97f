"""The history that a run keeps, held against the world's own: every interval of every version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from connector.catalog.resource import Resource
from connector.warehouse import versions as edits
from connector.warehouse import versions as version
from connector.warehouse.versions import Version
from tests.seeds import seeds
from tests.simulation import history
from tests.simulation.run import run
from tests.simulation.scenario import SMALL
from tests.support.kill_points import IS_ALL
from tests.tiers import first_fast

LANDED = ("B", "E", "H", "killed-load", "content", "types", "clock")
"""Scenarios with deletions, ties, changes without a date, kills, dated lists, unsorted lists, and a
clock that steps.
"""


@pytest.mark.parametrize("name", first_fast(LANDED, 3))
def test_the_history_of_a_warehouse_follows_the_rules(name: str) -> None:
    verdicts = [run(name + SMALL, seed, lands=True) for seed in seeds(8 if IS_ALL else 1)]

    assert [] == [str(each) for each in verdicts if each.wrong]


def a_clock_that_is_exact(patch: pytest.MonkeyPatch) -> None:
    """An answer is taken to be of the beginning of its second."""
    for module in (version, edits, history):
        patch.setattr(module, "SECOND", timedelta(0))
    patch.setattr(history, "SECOND", timedelta(seconds=1))


def lists_that_show_all(patch: pytest.MonkeyPatch) -> None:
    """A detail completes what a list showed, whenever it says that it was changed."""
    patch.setattr(Version, "is_outdated_by", lambda *_: False)
    whole = version.completed_version

    def completed(listed: Version, *rest: object) -> Version:
        done = whole(listed, *rest)  # type: ignore[arg-type]
        return replace(done, observed_from=listed.observed_from)

    patch.setattr(edits, "completed_version", completed)


def rows_of_two_versions(patch: pytest.MonkeyPatch) -> None:
    """What lists do not show is put into a list's version as the last detail had it."""
    whole = edits.HistoryEdits.add_list_item

    def listed(self: edits.HistoryEdits, item: Resource, *rest: object) -> None:
        whole(self, item, *rest)  # type: ignore[arg-type]
        before = rest[-1]
        if item.id in self.begun and isinstance(before, edits.RecordState):
            begun, record = self.begun[item.id]
            mixed = self.declaration.record({**before.known_values, **record.raw})
            self.begun[item.id] = begun, mixed

    patch.setattr(edits.HistoryEdits, "add_list_item", listed)


@pytest.mark.parametrize(
    ("ablation", "name"),
    [
        (a_clock_that_is_exact, "B"),
        (lists_that_show_all, "killed-load"),
        (rows_of_two_versions, "killed-load"),
    ],
)
def test_a_fault_in_the_history_rules_is_detected(
    ablation: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ablation(monkeypatch)

    assert any(_denied(run(name + SMALL, seed).wrong) for seed in range(20))


def _denied(wrong: Iterable[str]) -> bool:
    return any(each.startswith("history") for each in wrong)
